"""A gateway on a real socket that answers as a table says, and in everything else as the scripted one of the tests.

A new lie is a line in `lies.py`: which call, what is made of its honest answer, and what the worker says of it.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf import message_factory
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from ordergateway.v1 import order_leases_pb2, query_leases_pb2

from tests.worker.account_queries.scripted import ScriptedQueries
from tests.worker.scripted_gateway import ScriptedGateway

Bend = Callable[[Any], list[Any]]
"""What is sent in place of an honest answer (of a stream: of each message): messages, or bytes as they are."""

SERVICES = (
    order_leases_pb2.DESCRIPTOR.services_by_name["OrderLeaseService"],
    query_leases_pb2.DESCRIPTOR.services_by_name["QueryLeaseService"],
)


@dataclass
class HostileGateway:
    """`orders` and `queries` hold what was asked, and what is offered; `bends` says, by method, how it lies."""

    orders: ScriptedGateway = field(default_factory=ScriptedGateway)
    queries: ScriptedQueries = field(default_factory=ScriptedQueries)
    bends: dict[str, Bend] = field(default_factory=dict)

    def servicer_of(self, method: str) -> Any:
        return self.orders if hasattr(ScriptedGateway, method) else self.queries

    def handlers(self) -> Iterator[grpc.GenericRpcHandler]:
        for service in SERVICES:
            made = {method.name: self._handler(method) for method in service.methods}
            yield grpc.method_handlers_generic_handler(service.full_name, made)

    def _handler(self, method: MethodDescriptor) -> grpc.RpcMethodHandler:
        honest = getattr(self.servicer_of(method.name), method.name)
        read = message_factory.GetMessageClass(method.input_type).FromString

        async def one(request: Message, context: grpc.aio.ServicerContext) -> Any:
            (answer,) = self._bent(method.name, await honest(request, context))
            return answer

        async def many(request: Message, context: grpc.aio.ServicerContext) -> AsyncIterator[Any]:
            async for message in honest(request, context):
                answers = self._bent(method.name, message)
                for answer in answers:
                    yield answer
                if not answers:
                    return

        if method.server_streaming:
            return grpc.unary_stream_rpc_method_handler(many, read, _as_bytes)
        return grpc.unary_unary_rpc_method_handler(one, read, _as_bytes)

    def _bent(self, method: str, answer: Any) -> list[Any]:
        bend = self.bends.get(method)
        return [answer] if bend is None else bend(answer)


def _as_bytes(answer: Message | bytes) -> bytes:
    return answer if isinstance(answer, bytes) else answer.SerializeToString()


@asynccontextmanager
async def serving(gateway: HostileGateway) -> AsyncIterator[str]:
    """Serves on a free loopback port; yields `host:port`."""
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(tuple(gateway.handlers()))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(0)
