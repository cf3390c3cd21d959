"""The services of the contract, free of any transport: what a message asks for, checked, done, told in a message.

A service is a class whose methods have the contract's names in snake case and take (request, call). A method that is
not there answers UNIMPLEMENTED. gRPC and Connect both serve these very objects.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from google.protobuf.descriptor import ServiceDescriptor
from ordergateway.v1 import (
    account_queries_pb2,
    catalog_pb2,
    operations_pb2,
    order_leases_pb2,
    orders_pb2,
    query_leases_pb2,
)

from gateway.api.services.account_queries import AccountQueryService
from gateway.api.services.catalog import CatalogService
from gateway.api.services.operations import OperationsService
from gateway.api.services.order_leases import OrderLeaseService
from gateway.api.services.orders import OrderService
from gateway.api.services.query_leases import QueryLeaseService


@dataclass(frozen=True, slots=True)
class Services:
    """Everything that the contract's transports offer."""

    orders: OrderService
    order_leases: OrderLeaseService
    account_queries: AccountQueryService
    query_leases: QueryLeaseService
    catalog: CatalogService
    operations: OperationsService

    def offered(self) -> Iterator[tuple[ServiceDescriptor, object]]:
        """Yield each service with its place in the contract."""
        yield orders_pb2.DESCRIPTOR.services_by_name["OrderService"], self.orders
        yield order_leases_pb2.DESCRIPTOR.services_by_name["OrderLeaseService"], self.order_leases
        yield account_queries_pb2.DESCRIPTOR.services_by_name["AccountQueryService"], self.account_queries
        yield query_leases_pb2.DESCRIPTOR.services_by_name["QueryLeaseService"], self.query_leases
        yield catalog_pb2.DESCRIPTOR.services_by_name["CatalogService"], self.catalog
        yield operations_pb2.DESCRIPTOR.services_by_name["OperationsService"], self.operations
