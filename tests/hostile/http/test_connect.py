"""Connect: JSON that protobuf's own reader takes in good faith, and what connectrpc refuses by itself."""

import base64
import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from ordergateway.v1 import errors_pb2

from tests.gateway.support.in_process import running_gateway
from tests.gateway.support.rest_api import rest_client, submit

ORDERS = "/ordergateway.v1.OrderService/"
OPERATIONS = "/ordergateway.v1.OperationsService/"
JSON = {"Content-Type": "application/json"}


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a gateway that all rows share."""
    async with running_gateway(tmp_path_factory.mktemp("gateway")) as gateway, rest_client(gateway.http_port) as client:
        await submit(client)
        yield client


def detail_of(error: dict[str, Any]) -> errors_pb2.ErrorDetail:
    """The ErrorDetail of an error, of which there must be exactly one."""
    (packed,) = error["details"]
    assert packed["type"] == errors_pb2.ErrorDetail.DESCRIPTOR.full_name
    value = packed["value"]
    return errors_pb2.ErrorDetail.FromString(base64.b64decode(value + "=" * (-len(value) % 4)))


READ_TWO_WAYS: dict[str, tuple[str, str, str]] = {
    "enum with a fraction": (ORDERS + "ListOrders", '{"status": 1.5}', "status"),
    "enum as a whole fraction": (ORDERS + "ListOrders", '{"status": 1.0}', "status"),
    "enum true": (ORDERS + "ListOrders", '{"status": true}', "status"),
    "enum in a text": (ORDERS + "ListOrders", '{"status": "1"}', "status"),
    "enum in another spelling": (ORDERS + "ListOrders", '{"status": "task_status_queued"}', "status"),
    "enum with an underscore": (ORDERS + "ListOrders", '{"status": "1_0"}', "status"),
    "enum an array": (ORDERS + "ListOrders", '{"status": [1]}', "status"),
    "whole number with an underscore": (ORDERS + "ListOrders", '{"pageSize": "1_0"}', "page_size"),
    "whole number with a sign": (ORDERS + "ListOrders", '{"pageSize": "+5"}', "page_size"),
    "whole number in other digits": (ORDERS + "ListOrders", '{"pageSize": "\uff15"}', "page_size"),
    "whole number with spaces": (ORDERS + "ListOrders", '{"pageSize": "\\t5"}', "page_size"),
    "whole number with a fraction": (ORDERS + "ListOrders", '{"pageSize": 1.5}', "request"),
    "whole number true": (ORDERS + "ListOrders", '{"pageSize": true}', "request"),
    "whole number huge": (ORDERS + "ListOrders", '{"pageSize": 1e300}', "request"),
    "both names, the same": (ORDERS + "GetOrder", '{"taskId": "po-1", "task_id": "po-1"}', "task_id"),
    "both names": (ORDERS + "GetOrder", '{"taskId": "po-1", "task_id": "po-2"}', "task_id"),
    "both names, one null": (ORDERS + "GetOrder", '{"task_id": null, "taskId": "po-2"}', "task_id"),
    "one name twice": (ORDERS + "GetOrder", '{"taskId": "po-1", "taskId": "po-2"}', "request"),
    "one name twice, escaped": (ORDERS + "GetOrder", '{"taskId": "po-1", "task\\u0049d": "po-2"}', "request"),
    "time with an underscore": (OPERATIONS + "ListEvents", '{"since": "2026-01-01T00:00:00.1_0Z"}', "since"),
    "time without an offset": (OPERATIONS + "ListEvents", '{"since": "2026-01-01T00:00:00"}', "since"),
    "text a number": (ORDERS + "GetOrder", '{"taskId": 1}', "request"),
    "no object": (ORDERS + "GetOrder", '["po-1"]', "request"),
    "NaN": (ORDERS + "ListOrders", '{"pageSize": NaN}', "request"),
    "many values": (ORDERS + "ListOrders", '{"x": [' + "{}," * 2000 + "{}]}", "request"),
    "deep": (ORDERS + "ListOrders", '{"x": ' + "[" * 80 + "]" * 80 + "}", "request"),
    "long page token": (ORDERS + "ListOrders", '{"pageToken": "' + "W" * 20_000 + '"}', "page_token"),
}


@pytest.mark.parametrize("name", READ_TWO_WAYS)
async def test_what_can_be_read_in_two_ways_is_refused_by_its_field(client: httpx.AsyncClient, name: str) -> None:
    path, body, field = READ_TWO_WAYS[name]
    answer = await client.post(path, content=body.encode(), headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_argument"), answer.text
    detail = detail_of(answer.json())
    assert detail.reason == errors_pb2.ERROR_REASON_INVALID_FIELD
    assert [violation.field for violation in detail.violations] == [field]
    assert len(answer.content) < 4_000


TAKEN: dict[str, tuple[str, str]] = {
    "names of the contract": (ORDERS + "ListOrders", '{"page_size": 5, "status": "TASK_STATUS_QUEUED"}'),
    "names of JSON": (ORDERS + "ListOrders", '{"pageSize": "5", "status": 1}'),
    "a whole number as JSON may write it": (ORDERS + "ListOrders", '{"pageSize": 5.0}'),
    "null for absent": (ORDERS + "ListOrders", '{"pageSize": null, "status": null}'),
    "unknown fields": (ORDERS + "ListOrders", '{"of_tomorrow": {"a": [1, 1.5, null]}}'),
    "a time": (OPERATIONS + "ListEvents", '{"since": "2026-01-01T09:00:00.123+09:00", "kinds": ["submit"]}'),
}


@pytest.mark.parametrize("name", TAKEN)
async def test_what_json_of_protobuf_allows_is_taken(client: httpx.AsyncClient, name: str) -> None:
    path, body = TAKEN[name]
    answer = await client.post(path, content=body.encode(), headers=JSON)
    assert answer.status_code == 200, answer.text


PROTO = {"Content-Type": "application/proto"}
STREAM = {"Content-Type": "application/connect+json"}
FRAME = b"\0\0\0\0\x12" + b'{"taskId": "po-1"}'
INVALID = "invalid_argument"
OWN: dict[str, tuple[str, str, dict[str, str], bytes, int, str]] = {
    "unknown compression": ("POST", "GetOrder", JSON | {"Content-Encoding": "br"}, b"{}", 501, "unimplemented"),
    "broken gzip": ("POST", "GetOrder", JSON | {"Content-Encoding": "gzip"}, b"no gzip", 400, INVALID),
    "a bomb": (
        "POST", "GetOrder", JSON | {"Content-Encoding": "gzip"}, gzip.compress(b" " * 10_000_000), 429,
        "resource_exhausted",
    ),
    "timeout no number": ("POST", "GetOrder", JSON | {"Connect-Timeout-Ms": "1_0"}, b"{}", 400, INVALID),
    "timeout of 11 digits": ("POST", "GetOrder", JSON | {"Connect-Timeout-Ms": "1" * 11}, b"{}", 400, INVALID),
    "timeout negative": ("POST", "GetOrder", JSON | {"Connect-Timeout-Ms": "-1"}, b"{}", 400, INVALID),
    "timeout of a stream": ("POST", "WatchOrder", STREAM | {"Connect-Timeout-Ms": "x"}, FRAME, 400, INVALID),
    "version 2": ("POST", "GetOrder", JSON | {"Connect-Protocol-Version": "2"}, b"{}", 400, INVALID),
    "no message": ("POST", "GetOrder", PROTO, b"\xff\xff", 400, INVALID),
    "another type": ("POST", "GetOrder", {"Content-Type": "text/plain"}, b"{}", 415, INVALID),
    "no such method": ("POST", "GetOrders", JSON, b"{}", 404, "unimplemented"),
    "PUT": ("PUT", "GetOrder", JSON, b"{}", 405, INVALID),
    "GET of what changes something": ("GET", "CancelOrder?encoding=json&message=%7B%7D", {}, b"", 405, INVALID),
}  # fmt: skip


@pytest.mark.parametrize("name", OWN)
async def test_what_connectrpc_refuses_itself_comes_with_a_detail(client: httpx.AsyncClient, name: str) -> None:
    method, path, headers, body, status, code = OWN[name]
    answer = await client.request(method, ORDERS + path, content=body, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert detail_of(answer.json()).message


IN_STREAMS: dict[str, tuple[dict[str, str], bytes]] = {
    "unknown compression": (STREAM | {"Connect-Content-Encoding": "br"}, FRAME),
    "marked as compressed": (STREAM, b"\1" + FRAME[1:]),
    "no message": (STREAM, b"\0\0\0\0\1{"),
    "cut off": (STREAM, FRAME[:-1]),
    "unknown flags": (STREAM, b"\x80" + FRAME[1:]),
    "two requests": (STREAM, FRAME + FRAME),
    "none": (STREAM, b""),
    "both names": (STREAM, b"\0\0\0\0\x23" + b'{"taskId": "po-1","task_id":"po-1"}'),
    "too large": (STREAM, b"\0\xff\xff\xff\xff" + FRAME),
}


@pytest.mark.parametrize("name", IN_STREAMS)
async def test_in_a_stream_too(client: httpx.AsyncClient, name: str) -> None:
    headers, body = IN_STREAMS[name]
    async with client.stream("POST", ORDERS + "WatchOrder", content=body, headers=headers) as answer:
        assert answer.status_code == 200
        data = b"".join([part async for part in answer.aiter_bytes()])
    end = json.loads(data[data.rindex(b'{"error"') :])
    assert detail_of(end["error"]).message
