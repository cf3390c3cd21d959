"""Texts that cost more to read than to send: while eight at once are read, nobody else is held up.

Held up is counted in processor time (tests/hostile/watched.py), so the bound holds on a slow machine that is busy with
something else; docs/security.md has what was measured. To add an attack, add a row.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable

import grpc
import pytest
import pytest_asyncio
from ordergateway.v1 import orders_pb2
from ordergateway.v1.orders_pb2_grpc import OrderServiceStub

from tests.gateway.support.rest_api import exchange
from tests.hostile.http.test_framing import answers_in, request
from tests.hostile.watched import MIB, WatchedGateway, watched_gateway

AT_ONCE = 8
LONGEST_STALL_MS = 250
"""What is measured is a tenth of it; before there were limits it was ten times as much and more."""

SUBMIT_RPC = "/ordergateway.v1.OrderService/SubmitOrder"
KIB = 1024


def many(value: str, size: int, last: str = "1") -> str:
    """An array of so many bytes."""
    return "[" + (value + ",") * ((size - len(last) - 2) // (len(value) + 1)) + last + "]"


def post(path: str, body: bytes, content_type: str = "application/json") -> bytes:
    headers = (f"Content-Type: {content_type}", f"Content-Length: {len(body)}", "Connection: close")
    return request(f"POST {path}", *headers, body=body)


def rest(value: str, task_id: str = "a") -> bytes:
    """A submission over REST whose intent holds this."""
    return post("/api/orders", f'{{"task_id": "{task_id}", "site": "rakuten", "intent": {{"x": {value}}}}}'.encode())


def connect(value: str) -> bytes:
    """A submission over Connect whose intent_json holds this."""
    told = {"taskId": "b", "site": "rakuten", "intentJson": f'{{"x": {value}}}'}
    return post(SUBMIT_RPC, json.dumps(told).encode())


TAKEN = rest(many("2.5", 49_000 * 4), "taken")
FULL = 4 * MIB - 200
LONGEST = 6 * 256 * KIB
HTTP: dict[str, Callable[[], bytes]] = {
    "REST, 4 MiB of {}": lambda: rest(many("{}", FULL)),
    "REST, 4 MiB of []": lambda: rest(many("[]", FULL)),
    'REST, 4 MiB of ""': lambda: rest(many('""', FULL)),
    "REST, 4 MiB of numbers": lambda: rest(many("1", FULL)),
    "REST, 4 MiB of members": lambda: post("/api/orders", b"{" + b'"a":1,' * (FULL // 6) + b'"b":1}'),
    "REST, 4 MiB of [": lambda: post("/api/orders", b"[" * FULL),
    "REST, a text of escapes": lambda: rest('"' + "\\u0041" * (FULL // 6) + '"'),
    "REST, a text of quotes and commas": lambda: rest('"' + '\\",' * (FULL // 3) + '"'),
    "REST, a text of three bytes a letter": lambda: rest('"' + "\u65e5" * (FULL // 3) + '"'),
    "REST, a number of 4 million digits": lambda: rest("0." + "1" * FULL),
    "REST, as many values as are allowed": lambda: rest(many("{}", 49_000 * 3)),
    "REST, another intent under a key that is taken": lambda: rest(many("1.5", 49_000 * 4), "taken"),
    "Connect, intent of {}": lambda: connect(many("{}", 250 * KIB)),
    "Connect, as many values as are allowed": lambda: connect(many("{}", 49_000 * 3)),
    "Connect, 4 MiB of {}": lambda: post(SUBMIT_RPC, b'{"x": ' + many("{}", FULL).encode() + b"}"),
    "Connect, 4 MiB of line ends": lambda: post(SUBMIT_RPC, b'{"intentJson": "' + b"\\n" * (FULL // 2) + b'"}'),
    "Connect, the longest text, of line ends": lambda: post(
        SUBMIT_RPC, b'{"intentJson": "' + b"\\n" * (LONGEST // 2) + b'"}'
    ),
    "Connect, a page token of 2 MiB": lambda: post(
        "/ordergateway.v1.OrderService/ListOrders", b'{"pageToken": "' + b"MSwx" * (MIB // 2) + b'"}'
    ),
    "Connect, two million kinds": lambda: post(
        "/ordergateway.v1.OperationsService/ListEvents", b"\x12\x00" * (FULL // 2), "application/proto"
    ),
}
GRPC = {
    "gRPC, intent of {}": many("{}", 250 * KIB),
    "gRPC, as many values as are allowed": many("{}", 49_000 * 3),
    "gRPC, 4 MiB of {}": many("{}", FULL),
    "gRPC, deep": "[" * 60 + "]" * 60,
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WatchedGateway]:
    async with watched_gateway(tmp_path_factory.mktemp("gateway")) as gateway:
        await exchange(gateway.http_port, TAKEN)
        yield gateway


@pytest.mark.parametrize("name", HTTP)
@pytest.mark.asyncio(loop_scope="module")
async def test_while_it_is_read_nobody_is_held_up(gateway: WatchedGateway, name: str) -> None:
    attack = HTTP[name]()
    await gateway.begin()
    answers = await asyncio.gather(*(exchange(gateway.http_port, attack) for _ in range(AT_ONCE)))
    figures = await gateway.figures()
    assert {status for answer in answers for status in answers_in(answer)} <= {200, 400, 413, 422, 429}
    assert figures.longest_stall_ms < LONGEST_STALL_MS, figures


@pytest.mark.parametrize("name", GRPC)
@pytest.mark.asyncio(loop_scope="module")
async def test_over_grpc_neither(gateway: WatchedGateway, name: str) -> None:
    order = orders_pb2.SubmitOrderRequest(task_id="c", site="rakuten", intent_json=f'{{"x": {GRPC[name]}}}')
    await gateway.begin()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{gateway.grpc_port}") as channel:
        submit = OrderServiceStub(channel).SubmitOrder
        ended = await asyncio.gather(*(submit(order) for _ in range(AT_ONCE)), return_exceptions=True)
    figures = await gateway.figures()
    codes = {each.code().name for each in ended if isinstance(each, grpc.aio.AioRpcError)}
    assert codes <= {"INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"}
    assert figures.longest_stall_ms < LONGEST_STALL_MS, figures
