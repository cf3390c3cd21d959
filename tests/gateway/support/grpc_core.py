"""The core of orders served over gRPC, whose inside a test can look at."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import ServiceDescriptor
from ordergateway.v1 import order_leases_pb2, orders_pb2

from gateway.api.auth.admission import Admission
from gateway.api.auth.authenticator import Authenticator
from gateway.api.grpc.server import GrpcServer
from gateway.api.services.order_leases import OrderLeaseService
from gateway.api.services.orders import OrderService
from tests.gateway.support.core import Core, running_core

ORDERS = orders_pb2.DESCRIPTOR.services_by_name["OrderService"]
LEASES = order_leases_pb2.DESCRIPTOR.services_by_name["OrderLeaseService"]


@dataclass
class Offered:
    """Services to serve, in the form that the server takes."""

    services: dict[ServiceDescriptor, object]

    def offered(self) -> Iterator[tuple[ServiceDescriptor, object]]:
        yield from self.services.items()


@dataclass
class GrpcCore:
    """The core and its server."""

    core: Core
    server: GrpcServer
    port: int


@asynccontextmanager
async def served(services: dict[ServiceDescriptor, object], tls: Any = None) -> AsyncIterator[GrpcServer]:
    """Serve these services on a free port, open to everybody."""
    offered: Any = Offered(services)
    server = GrpcServer(offered, Admission(Authenticator({})))
    await server.start("127.0.0.1", 0, tls)
    try:
        yield server
    finally:
        await server.stop(2)


@asynccontextmanager
async def grpc_core(path: Path, heartbeat_seconds: float = 10) -> AsyncIterator[GrpcCore]:
    """Serve orders and their leases."""
    numbers = count(1)
    async with running_core(path, heartbeat_seconds=heartbeat_seconds) as core:
        services: dict[ServiceDescriptor, object] = {
            ORDERS: OrderService(core.store, core.notifier, core.policy, lambda: f"t-{next(numbers)}"),
            LEASES: OrderLeaseService(core.store, core.dispatcher, core.policy, lambda: f"again-{next(numbers):037d}"),
        }
        async with served(services) as server:
            try:
                yield GrpcCore(core, server, server.port)
            finally:
                core.notifier.close()
