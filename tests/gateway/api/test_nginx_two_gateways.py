"""docs/nginx.conf before two gateways: if one dies its clients go on at the other; nginx repeats nothing wrongly."""

import asyncio
import itertools
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from ordergateway.v1 import order_leases_pb2

from demo.programs import free_port
from gateway.domain.states import OrderState
from tests.gateway.api.test_auth import certificates
from tests.gateway.support import postgres
from tests.gateway.support.grpc_api import GrpcApi, RefusedCallError
from tests.gateway.support.in_process import running_gateway
from tests.gateway.support.nginx import nginx
from tests.gateway.support.process import GatewayProcess, gateway_process
from tests.gateway.support.rest_api import data_of, post

__all__ = ["certificates"]

pytestmark = [pytest.mark.needs("nginx", "openssl"), pytest.mark.timeout(240)]

TOKEN = "a-token-of-this-test"
WORKERS = 12
SECONDS = 60.0
"""Ten times what it takes."""


@dataclass
class Client:
    """Clients of both protocols on the far side of nginx."""

    api: GrpcApi
    http: httpx.AsyncClient


@asynccontextmanager
async def clients(folder: Path, port: int) -> AsyncIterator[Client]:
    trust = grpc.ssl_channel_credentials((folder / "ca.pem").read_bytes())
    async with (
        grpc.aio.secure_channel(f"localhost:{port}", trust) as channel,
        httpx.AsyncClient(
            base_url=f"https://localhost:{port}",
            verify=ssl.create_default_context(cafile=str(folder / "ca.pem")),
            headers={"Authorization": f"Bearer {TOKEN}"},
            timeout=30,
        ) as http,
    ):
        yield Client(GrpcApi(channel, TOKEN), http)


@dataclass
class Work:
    """What workers and upstreams did: who was given which order, and which submissions were answered."""

    leased: list[str] = field(default_factory=list)
    answered: set[str] = field(default_factory=set)
    repeats: int = 0

    async def again(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """Call until it is answered, as every client does that gets UNAVAILABLE or 502."""
        while True:
            try:
                answer = await call()
            except grpc.aio.AioRpcError as error:
                # A stream that had begun is reset: INTERNAL (worker/gateway/refusals.py).
                if error.code() not in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL}:
                    raise
            except RefusedCallError as refused:
                if refused.status != "UNAVAILABLE":
                    raise
            else:
                if not (isinstance(answer, httpx.Response) and answer.status_code in {502, 503, 504}):
                    return answer
            self.repeats += 1
            await asyncio.sleep(0.05)

    async def carry_out(self, api: GrpcApi, name: str, lease: order_leases_pb2.Lease) -> None:
        self.leased.append(lease.task_id)
        await self.again(lambda: api.renew(lease, name))
        await self.again(lambda: api.report(lease, OrderState.PAID, 1, name, terminal=True))

    async def submit(self, client: Client, task_id: str, *, rest: bool) -> None:
        """File an order over one protocol."""
        order = {"task_id": task_id, "site": "rakuten", "account": f"a{len(self.answered) % WORKERS}", "intent": {}}
        if rest:
            data_of(await self.again(lambda: post(client.http, "/api/orders", order)))
        else:
            await self.again(lambda: client.api.submit(task_id, account=order["account"]))
        self.answered.add(task_id)


@pytest.fixture
async def pair(certificates: Path) -> AsyncIterator[tuple[GatewayProcess, GatewayProcess, Client]]:
    """Two gateway processes on one database, and clients behind nginx."""
    async with AsyncExitStack() as stack:
        url = stack.enter_context(postgres.database())
        started = []
        for name in ("a", "b"):
            (certificates / name).mkdir()
            settings = {"gateway_db_url": url, "gateway_name": name, "api_token": TOKEN, "lease_scope": "account"}
            started.append(await stack.enter_async_context(gateway_process(certificates / name, **settings)))
        a, b = started
        port = await stack.enter_async_context(nginx(certificates, [(one.http_port, one.port) for one in started]))
        yield a, b, await stack.enter_async_context(clients(certificates, port))


async def waiting_at(client: Client, wanted: Callable[[dict[str, int]], bool]) -> dict[str, int]:
    """Ask the health until the numbers of those who wait at each living gateway are as wanted."""
    work = Work()
    async with asyncio.timeout(SECONDS):
        while True:
            found = data_of(await work.again(lambda: client.http.get("/health")))
            waiting = {one["name"]: one["waiting_count"] for one in found["gateways"] if not one["gone"]}
            if wanted(waiting):
                return waiting
            await asyncio.sleep(0.1)


@pytest.mark.needs("postgresql")
async def test_one_gateway_dies_under_orders_of_both_protocols_and_everybody_goes_on(
    pair: tuple[GatewayProcess, GatewayProcess, Client],
) -> None:
    a, _, client = pair
    work, numbers = Work(), itertools.count()
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(work_for(work, client, f"w{number}", f"a{number}")) for number in range(WORKERS)]
        await waiting_at(client, lambda now: sum(now.values()) >= WORKERS and min(now.values()) > 0)
        for _ in range(10):
            await work.submit(client, f"po-{next(numbers)}", rest=next(numbers) % 4 == 0)
        filing = group.create_task(file_on(work, client, numbers))
        a.kill()
        await a.process.wait()
        await until(lambda: len(work.answered) >= 30)
        filing.cancel()
        await waiting_at(client, lambda now: now.get("b", 0) >= WORKERS)
        await until(lambda: set(work.leased) >= work.answered)
        for worker in running:
            worker.cancel()
    assert len(work.leased) == len(set(work.leased)), "an order was given out twice"
    problems = data_of(await work.again(lambda: client.http.get("/health")))["problems"]
    assert {problem["kind"] for problem in problems} <= {"gateway_gone", "alert_standing", "decision_waiting"}


async def until(reached: Callable[[], bool]) -> None:
    """Wait for what the clients of this test write down."""
    async with asyncio.timeout(SECONDS):
        while not reached():  # noqa: ASYNC110 - the work goes on in other tasks
            await asyncio.sleep(0.05)


async def work_for(work: Work, client: Client, name: str, account: str) -> None:
    """A worker of one account."""
    while True:
        lease = await work.again(lambda: lease_of(client.api, name, account))
        if lease is not None:
            await work.carry_out(client.api, name, lease)


async def lease_of(api: GrpcApi, name: str, account: str) -> order_leases_pb2.Lease | None:
    found: order_leases_pb2.Lease | None = None
    request = order_leases_pb2.LeaseOrdersRequest(
        worker_id=name,
        session_id=f"session-of-{name:0<6}",
        journal_id="journal-of-" + f"{name:0<6}",
        sites=["rakuten"],
        accounts=[account],
    )
    request.wait.FromSeconds(30)
    stream: Any = api.leases.LeaseOrders(request, metadata=(("authorization", f"Bearer {TOKEN}"),))
    async for message in stream:
        if message.WhichOneof("event") == "lease":
            found = message.lease
    return found


async def file_on(work: Work, client: Client, numbers: "itertools.count[int]") -> None:
    """File one order after the other, over both protocols in turn."""
    for number in numbers:
        await work.submit(client, f"po-{number}", rest=number % 2 == 0)


class DyingGateway:
    """Takes requests, and closes the connection without an answer: as a gateway that dies in the middle of each."""

    def __init__(self) -> None:
        self.requests = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.read(65_536):
            self.requests += 1
        writer.close()


@pytest.fixture
async def beside_a_dying_one(certificates: Path) -> AsyncIterator[tuple[DyingGateway, Client]]:
    """Clients behind nginx, before a gateway and one that dies in each request; nginx always tries that one again."""
    dying = DyingGateway()
    http, over_grpc = [await asyncio.start_server(dying, "127.0.0.1", 0) for _ in range(2)]
    ports = (http.sockets[0].getsockname()[1], over_grpc.sockets[0].getsockname()[1])
    async with (
        running_gateway(certificates, token=TOKEN, api_token=(TOKEN,)) as gateway,
        nginx(certificates, [ports, (gateway.http_port, gateway.port)], max_fails=0) as port,
        clients(certificates, port) as client,
    ):
        yield dying, client
    for server in (http, over_grpc):
        server.close()
        await server.wait_closed()


async def is_filed(client: Client, task_id: str) -> bool:
    return (await client.http.get(f"/api/orders/{task_id}")).status_code == 200


async def test_what_was_sent_to_a_gateway_that_dies_nginx_sends_to_no_other(
    beside_a_dying_one: tuple[DyingGateway, Client],
) -> None:
    dying, client = beside_a_dying_one

    async def over_rest(number: int) -> bool:
        body = {"task_id": f"rest-{number}", "site": "rakuten", "intent": {}}
        return (await post(client.http, "/api/orders", body)).status_code == 200

    async def over_grpc(number: int) -> bool:
        try:
            await client.api.submit(f"grpc-{number}")
        except grpc.aio.AioRpcError as error:
            return error.code() is not grpc.StatusCode.UNAVAILABLE
        return True

    async def lease_over_rest(number: int) -> bool:
        answer = await client.http.get("/api/orders/lease?worker_id=w1&site=sandbox&wait=0")
        return answer.status_code == 200

    for kind, call in (("rest", over_rest), ("grpc", over_grpc), ("", lease_over_rest)):
        before = dying.requests
        answered = [await call(number) for number in range(6)]
        lost = dying.requests - before
        assert 0 < lost < 6, "both are tried"
        assert answered.count(False) == lost, "who asked is told, and repeats it"
        if kind:
            assert [await is_filed(client, f"{kind}-{number}") for number in range(6)] == answered


async def test_what_only_reads_nginx_asks_another_gateway(beside_a_dying_one: tuple[DyingGateway, Client]) -> None:
    dying, client = beside_a_dying_one
    assert {(await client.http.get("/health")).status_code for _ in range(6)} == {200}
    assert dying.requests > 0


async def test_what_no_gateway_has_got_goes_to_the_one_that_lives(certificates: Path) -> None:
    dead = (free_port(), free_port())
    async with (
        running_gateway(certificates, token=TOKEN, api_token=(TOKEN,)) as gateway,
        nginx(certificates, [dead, (gateway.http_port, gateway.port)], max_fails=0) as port,
        clients(certificates, port) as client,
    ):
        for number in range(4):
            await client.api.submit(f"grpc-{number}")
            data_of(await post(client.http, "/api/orders", {"task_id": f"r-{number}", "site": "rakuten", "intent": {}}))
