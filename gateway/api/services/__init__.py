"""The services of the contract, free of any transport: what a message asks for, checked, done, told in a message.

A service is a class whose methods have the contract's names in snake case and take (request, call). gRPC and Connect
both serve these very objects. mypy refuses one that lacks a method of the contract.
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
from ordergateway.v1 import services as contract

from gateway.api.call import Call


@dataclass(frozen=True, slots=True)
class Services:
    """Everything that the contract's transports offer."""

    orders: contract.OrderService[Call]
    order_leases: contract.OrderLeaseService[Call]
    account_queries: contract.AccountQueryService[Call]
    query_leases: contract.QueryLeaseService[Call]
    catalog: contract.CatalogService[Call]
    operations: contract.OperationsService[Call]

    def offered(self) -> Iterator[tuple[ServiceDescriptor, object]]:
        """Yield each service with its place in the contract."""
        yield orders_pb2.DESCRIPTOR.services_by_name["OrderService"], self.orders
        yield order_leases_pb2.DESCRIPTOR.services_by_name["OrderLeaseService"], self.order_leases
        yield account_queries_pb2.DESCRIPTOR.services_by_name["AccountQueryService"], self.account_queries
        yield query_leases_pb2.DESCRIPTOR.services_by_name["QueryLeaseService"], self.query_leases
        yield catalog_pb2.DESCRIPTOR.services_by_name["CatalogService"], self.catalog
        yield operations_pb2.DESCRIPTOR.services_by_name["OperationsService"], self.operations
