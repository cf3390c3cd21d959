"""Large answers: a page is bounded by bytes, and what nobody reads is bounded in all."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import grpc
import pytest
import pytest_asyncio
from ordergateway.v1 import account_queries_pb2, orders_pb2
from ordergateway.v1.account_queries_pb2_grpc import AccountQueryServiceStub
from ordergateway.v1.orders_pb2_grpc import OrderServiceStub

from tests.gateway.support.rest_api import data_of, post, rest_client, submit
from tests.hostile.http.test_framing import request
from tests.hostile.watched import MIB, WatchedGateway, watched_gateway

LARGE = 250 * 1024
TASKS = 60
PAGE = 4 * MIB
LONGEST_STALL_MS = 250

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def full(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WatchedGateway]:
    """A gateway with orders and queries of 250 KiB each."""
    async with (
        watched_gateway(tmp_path_factory.mktemp("gateway")) as gateway,
        rest_client(gateway.http_port) as client,
    ):
        for number in range(TASKS):
            await submit(client, f"po-{number}", text="x" * LARGE)
            body = {"query_id": f"aq-{number}", "kind": "order_list", "params": {"x": "y" * LARGE}}
            data_of(await post(client, "/api/account/queries", body))
        yield gateway


@pytest.mark.parametrize("path", ["/api/orders", "/api/account/queries"])
async def test_a_client_of_the_documented_contract_gets_all(full: WatchedGateway, path: str) -> None:
    """Whether it goes on at what it got, at `limit` or at `next_offset`: it meets every one, and each once."""
    async with rest_client(full.http_port) as client:
        for way in ("items", "limit", "next_offset"):
            met: list[str] = []
            offset: int | None = 0
            while offset is not None and offset < TASKS:
                answer = await client.get(path, params={"limit": 200, "offset": offset})
                assert len(answer.content) < PAGE
                page = data_of(answer)
                assert page["total"] == TASKS
                assert page["offset"] == offset
                met += [item.get("task_id") or item["query_id"] for item in page["items"]]
                steps = {"items": offset + len(page["items"]), "limit": offset + page["limit"]}
                offset = steps.get(way, page["next_offset"])
            assert len(met) == len(set(met)) == TASKS, way
        assert data_of(await client.get(path, params={"offset": TASKS}))["next_offset"] is None


async def test_pages_over_grpc_fit_a_client(full: WatchedGateway) -> None:
    """The 4 MiB that a client takes by default; further limits of the same kind for every list that may be large."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{full.grpc_port}") as channel:
        orders = await OrderServiceStub(channel).ListOrders(orders_pb2.ListOrdersRequest(page_size=200))
        assert 0 < len(orders.tasks) < TASKS
        queries = await AccountQueryServiceStub(channel).ListQueries(
            account_queries_pb2.ListQueriesRequest(page_size=200)
        )
        assert 0 < len(queries.queries) < TASKS
        assert queries.next_page_token


ATTACKS = {
    "REST, 200 orders": request("GET /api/orders?limit=200"),
    "REST, 200 queries": request("GET /api/account/queries?limit=200"),
    "Connect, 200 orders": request(
        "POST /ordergateway.v1.OrderService/ListOrders", "Content-Type: application/json", "Accept-Encoding: gzip",
        "Content-Length: 17", body=b'{"pageSize": 200}',
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
async def test_thirty_that_are_not_read_hold_nobody_up_and_little_memory(full: WatchedGateway, name: str) -> None:
    await full.begin()
    before = (await full.figures()).memory_mib
    async with AsyncExitStack() as stack, rest_client(full.http_port) as client:
        for _ in range(30):
            reader, writer = await asyncio.open_connection("127.0.0.1", full.http_port, limit=1024)
            stack.callback(writer.close)
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(ATTACKS[name])
            del reader
        for _ in range(20):
            assert data_of(await client.get("/health"))["queued_count"] == TASKS
        figures = await full.figures()
    assert figures.longest_stall_ms < LONGEST_STALL_MS, figures
    assert figures.most_memory_mib - before < 400, figures


@pytest.mark.parametrize("name", ATTACKS)
async def test_a_hundred_and_fifty_at_once_are_made_a_few_at_a_time(full: WatchedGateway, name: str) -> None:
    """Whoever waits for too long is told to come back; nobody else is held up."""
    await full.begin()
    before = (await full.figures()).memory_mib
    async with AsyncExitStack() as stack, rest_client(full.http_port) as client:
        for _ in range(150):
            _, writer = await asyncio.open_connection("127.0.0.1", full.http_port, limit=1024)
            stack.callback(writer.close)
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(ATTACKS[name])
        for _ in range(20):
            assert data_of(await client.get("/health"))["queued_count"] == TASKS
        figures = await full.figures()
    assert figures.longest_stall_ms < LONGEST_STALL_MS, figures
    assert figures.most_memory_mib - before < 150, figures
