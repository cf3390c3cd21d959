"""The same call over each transport, its refusal in one form."""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc
import httpx
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from ordergateway.v1 import (
    account_queries_pb2,
    catalog_pb2,
    errors_pb2,
    operations_pb2,
    order_leases_pb2,
    orders_pb2,
    query_leases_pb2,
)

from tests.gateway.support.grpc_api import RefusedCallError, told

SERVICES = {
    service.name: service
    for file in (
        orders_pb2,
        order_leases_pb2,
        account_queries_pb2,
        query_leases_pb2,
        catalog_pb2,
        operations_pb2,
    )
    for service in file.DESCRIPTOR.services_by_name.values()
}
TRANSPORTS = ("grpc", "connect", "rest")


class RefusedError(Exception):
    """A refusal: the documented code, the words, and the transport's own status."""

    def __init__(self, code: int, message: str, status: str | int, reason: str | None) -> None:
        super().__init__(f"{status} {code} {reason}: {message}")
        self.code, self.message, self.status, self.reason = code, message, status, reason


@dataclass
class Clients:
    """Connections to one gateway over every transport."""

    channel: grpc.aio.Channel
    http: httpx.AsyncClient
    token: str | None = None

    def with_token(self, token: str | None) -> "Clients":
        return Clients(self.channel, self.http, token)

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.token is None else {"Authorization": f"Bearer {self.token}"}

    async def file(self, transport: str, task_id: str = "po-1", **fields: Any) -> list[str]:
        """File a task and return in what it differs from the one that existed."""
        if transport == "rest":
            body = {"task_id": task_id, "site": "sandbox", "intent": {}, **fields}
            return list((await self.rest("POST", "/api/orders", body))["differs"])
        answer = await getattr(self, transport)(
            "OrderService/SubmitOrder", task_id=task_id, site="sandbox", intent_json="{}", **fields
        )
        return list(answer.differs)

    async def grpc(self, rpc: str, **fields: Any) -> Any:
        """Call Service/Method with these fields; a stream's first answer that is no heartbeat counts."""
        service, _, method = rpc.partition("/")
        descriptor = SERVICES[service].methods_by_name[method]
        request = GetMessageClass(descriptor.input_type)(**fields)
        answer_type = GetMessageClass(descriptor.output_type)
        path = f"/{SERVICES[service].full_name}/{method}"
        metadata = tuple((key.lower(), value) for key, value in self.headers.items())
        try:
            if not descriptor.server_streaming:
                call = self.channel.unary_unary(path, _to_bytes, answer_type.FromString)
                return await told(call(request, metadata=metadata))
            stream = self.channel.unary_stream(path, _to_bytes, answer_type.FromString)
            return await told(_last(stream(request, metadata=metadata)))
        except RefusedCallError as error:
            raise _refused(error.detail, error.status) from None

    async def connect(self, rpc: str, **fields: Any) -> Any:
        """Call a unary method over Connect with binary messages."""
        service, _, method = rpc.partition("/")
        descriptor = SERVICES[service].methods_by_name[method]
        path = f"/{SERVICES[service].full_name}/{method}"
        request = GetMessageClass(descriptor.input_type)(**fields)
        headers = self.headers | {"Content-Type": "application/proto"}
        answer = await self.http.post(path, content=request.SerializeToString(), headers=headers)
        if answer.status_code == httpx.codes.OK:
            return GetMessageClass(descriptor.output_type).FromString(answer.content)
        raise connect_refusal(answer.json())

    async def rest(self, method: str, path: str, body: Any = None, **parameters: Any) -> Any:
        """Send a request and return its data."""
        content = None if body is None else body if isinstance(body, str | bytes) else json.dumps(body)
        headers = self.headers | ({} if content is None else {"Content-Type": "application/json"})
        answer = await self.http.request(method, path, content=content, params=parameters or None, headers=headers)
        told = answer.json()
        assert told.keys() == {"success", "msg", "data", "code"}
        if told["success"]:
            assert (answer.status_code, told["code"]) == (200, 0)
            return told["data"]
        assert told["data"] is None
        raise RefusedError(told["code"], told["msg"], answer.status_code, None)


def _to_bytes(message: Message) -> bytes:
    return message.SerializeToString()


async def _last(stream: Any) -> Any:
    last = None
    async for message in stream:
        last = message
    return last


def connect_refusal(told: dict[str, Any]) -> RefusedError:
    """Read a Connect error."""
    (packed,) = told["details"]
    assert packed["type"] == "ordergateway.v1.ErrorDetail"
    detail = errors_pb2.ErrorDetail.FromString(base64.b64decode(packed["value"] + "=="))
    assert detail.message == told["message"]
    return _refused(detail, told["code"].upper())


def _refused(detail: errors_pb2.ErrorDetail, status: str) -> RefusedError:
    reason = errors_pb2.ErrorReason.Name(detail.reason).removeprefix("ERROR_REASON_")
    return RefusedError(detail.code, detail.message, status, reason)


@asynccontextmanager
async def clients(grpc_port: int, http_port: int, token: str | None = None) -> AsyncIterator[Clients]:
    """Connect to a gateway over every transport."""
    async with (
        grpc.aio.insecure_channel(
            f"127.0.0.1:{grpc_port}", options=(("grpc.use_local_subchannel_pool", 1),)
        ) as channel,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{http_port}", timeout=60) as http,
    ):
        yield Clients(channel, http, token)
