"""The core of orders served over gRPC, whose inside a test can look at."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import ServiceDescriptor
from ordergateway.v1 import order_leases_pb2, orders_pb2

from gateway.api.auth.admission import Admission
from gateway.api.auth.authenticator import Authenticator
from gateway.api.grpc.server import GrpcServer
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
    """Serve the core, open to everybody."""
    async with running_core(path, heartbeat_seconds=heartbeat_seconds) as core:
        server = GrpcServer(core.gateway.services, core.gateway.admission)
        await server.start("127.0.0.1", 0, None)
        try:
            yield GrpcCore(core, server, server.port)
        finally:
            core.notifier.close()
            await server.stop(2)
