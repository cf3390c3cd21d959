"""Thousands of clients that go away while they wait, over real sockets: the process does not grow, no place and no file
stays taken, and the next order goes to the next worker who really waits.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import httpx
import psutil
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from ordergateway.v1.account_queries_pb2 import WatchQueryRequest
from ordergateway.v1.account_queries_pb2_grpc import AccountQueryServiceStub
from ordergateway.v1.order_leases_pb2 import LeaseOrdersRequest
from ordergateway.v1.order_leases_pb2_grpc import OrderLeaseServiceStub
from ordergateway.v1.orders_pb2 import WatchOrderRequest
from ordergateway.v1.orders_pb2_grpc import OrderServiceStub
from ordergateway.v1.query_leases_pb2 import LeaseQueriesRequest
from ordergateway.v1.query_leases_pb2_grpc import QueryLeaseServiceStub

from gateway.api.grpc.health import MAX_READ
from gateway.store.grouped import READERS
from tests.gateway.support.grpc_api import duration
from tests.gateway.support.process import GatewayProcess, gateway_process

BATCH = 250
WARM_UP, BATCHES = 4, 20
MIB = 2**20
MOST_GROWTH_MIB = 8
"""In five thousand waits. What a wait holds, a task with its coroutine and its request, would come to far more."""

Clients = Callable[["Callers", int], Awaitable[None]]
_WAITING = re.compile(rb"^ordergateway_waiting (\S+)$", re.MULTILINE)


@dataclass
class Callers:
    """Whoever calls a gateway."""

    gateway: GatewayProcess
    channel: grpc.aio.Channel
    http: httpx.AsyncClient

    async def until_waiting(self, count: int) -> None:
        """Asks the gateway's own figures until so many wait."""
        async with asyncio.timeout(60):
            while True:
                found = _WAITING.search((await self.http.get("/metrics")).content)
                assert found is not None
                if float(found[1]) == count:
                    return

    async def file(self, path: str, **fields: Any) -> None:
        """Files an order or a query."""
        answer = await self.http.post(path, json=fields)
        assert answer.json()["success"], answer.text

    async def go_away(self, calls: "list[grpc.aio.UnaryStreamCall[Any, Any]]") -> None:
        """Cancels streams that have brought their first message, and so wait."""
        await asyncio.gather(*(call.read() for call in calls))
        for call in calls:
            call.cancel()

    async def hang_up(self, request: str, count: int) -> None:
        """Sends a request on so many connections, and closes them once all wait."""
        made = await asyncio.gather(
            *(asyncio.open_connection("127.0.0.1", self.gateway.http_port) for _ in range(count))
        )
        try:
            for _, writer in made:
                writer.write(request.encode())
            await self.until_waiting(count)
        finally:
            for _, writer in made:
                writer.close()
            await asyncio.gather(*(writer.wait_closed() for _, writer in made))


def lease_request(session_id: str) -> LeaseOrdersRequest:
    return LeaseOrdersRequest(
        worker_id="w1", session_id=session_id, journal_id="journal-of-worker-1", sites=["sandbox"], wait=duration(50)
    )


async def order_streams(callers: Callers, count: int) -> None:
    stub: OrderLeaseServiceStub = OrderLeaseServiceStub(callers.channel)
    await callers.go_away([stub.LeaseOrders(lease_request(f"session-of-worker-{number}")) for number in range(count)])


async def query_streams(callers: Callers, count: int) -> None:
    stub: QueryLeaseServiceStub = QueryLeaseServiceStub(callers.channel)
    wanted = LeaseQueriesRequest(worker_id="w1", session_id="session-of-worker-1", sites=["sandbox"], wait=duration(50))
    await callers.go_away([stub.LeaseQueries(wanted) for _ in range(count)])


async def order_watches(callers: Callers, count: int) -> None:
    stub: OrderServiceStub = OrderServiceStub(callers.channel)
    await callers.go_away([stub.WatchOrder(WatchOrderRequest(task_id="t-watched")) for _ in range(count)])


async def query_watches(callers: Callers, count: int) -> None:
    stub: AccountQueryServiceStub = AccountQueryServiceStub(callers.channel)
    await callers.go_away([stub.WatchQuery(WatchQueryRequest(query_id="q-watched")) for _ in range(count)])


async def health_watches(callers: Callers, count: int) -> None:
    stub: health_pb2_grpc.HealthStub = health_pb2_grpc.HealthStub(callers.channel)
    for begun in range(0, count, MAX_READ):  # of more at once, those whose requests are slow are sent away
        some = min(MAX_READ, count - begun)
        await callers.go_away([stub.Watch(health_pb2.HealthCheckRequest()) for _ in range(some)])


async def order_polls(callers: Callers, count: int) -> None:
    await callers.hang_up(
        "GET /api/orders/lease?worker_id=w1&wait=50&site=sandbox HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", count
    )


async def query_polls(callers: Callers, count: int) -> None:
    where = "/api/account/queries/lease?worker_id=w1&wait=50&site=sandbox"
    await callers.hang_up(f"GET {where} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", count)


async def connect_watches(callers: Callers, count: int) -> None:
    message = '{"taskId": "t-watched"}'
    await callers.hang_up(
        "POST /ordergateway.v1.OrderService/WatchOrder HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        "Content-Type: application/connect+json\r\n"
        f"Content-Length: {len(message) + 5}\r\n\r\n\0\0\0\0{chr(len(message))}{message}",
        count,
    )


KINDS: tuple[Clients, ...] = (
    order_streams,
    query_streams,
    order_watches,
    query_watches,
    health_watches,
    order_polls,
    query_polls,
    connect_watches,
)


@pytest.fixture
async def callers(tmp_path: Path) -> AsyncIterator[Callers]:
    """Callers of a gateway with something to watch."""
    async with gateway_process(tmp_path) as gateway:
        http_address = f"http://127.0.0.1:{gateway.http_port}"
        async with (
            grpc.aio.insecure_channel(f"127.0.0.1:{gateway.port}") as channel,
            httpx.AsyncClient(base_url=http_address, timeout=60) as http,
        ):
            callers = Callers(gateway, channel, http)
            await callers.file("/api/orders", task_id="t-watched", site="rakuten", intent={})
            await callers.file("/api/account/queries", query_id="q-watched", kind="order_list", site="rakuten")
            yield callers


@pytest.mark.extended
@pytest.mark.timeout(600)
async def test_forty_thousand_clients_that_go_away_leave_no_growth(callers: Callers) -> None:
    for kind in KINDS:
        await come_and_go(callers, kind, WARM_UP)
    process = psutil.Process(callers.gateway.process.pid)
    files, threads = process.num_fds(), process.num_threads()
    grown = {}
    for kind in KINDS:
        before = process.memory_info().rss
        await come_and_go(callers, kind, BATCHES)
        grown[kind.__name__] = round((process.memory_info().rss - before) / MIB, 1)
    assert max(grown.values()) < MOST_GROWTH_MIB, grown
    # The second reader's thread is only started when two look at once, which a sweep may do at any time.
    assert process.num_threads() < threads + READERS
    async with asyncio.timeout(60):
        while process.num_fds() > files:  # noqa: ASYNC110 -- it gives no signal
            await asyncio.sleep(0.05)
    await next_goes_to_who_waits(callers)


async def come_and_go(callers: Callers, kind: Clients, batches: int) -> None:
    for _ in range(batches):
        await kind(callers, BATCH)
        await callers.until_waiting(0)


async def next_goes_to_who_waits(callers: Callers) -> None:
    orders: OrderLeaseServiceStub = OrderLeaseServiceStub(callers.channel)
    waiting = orders.LeaseOrders(lease_request("the-last-who-waits"))
    assert (await waiting.read()).HasField("heartbeat")
    poll = asyncio.create_task(callers.http.get("/api/account/queries/lease?worker_id=w2&wait=20&site=sandbox"))
    await callers.until_waiting(2)
    await callers.file("/api/orders", task_id="t-next", site="sandbox", intent={})
    await callers.file("/api/account/queries", query_id="q-next", kind="order_list", site="sandbox")
    assert (await waiting.read()).lease.task_id == "t-next"
    assert (await poll).json()["data"]["query_id"] == "q-next"
