"""One of two gateways is lost under many workers that wait, and under one that works: all goes on at the other soon."""

import asyncio
import re
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest

from demo.programs import free_port
from tests.faults.chaos import ChaosTest
from tests.faults.program import PATIENCE_SECONDS
from tests.faults.promises import rows
from tests.faults.stage import Stage, running_stage
from tests.faults.waiting_workers import SITE, WaitingWorker, waiting_workers
from tests.gateway.support import postgres
from tests.gateway.support.grpc_api import GrpcApi
from tests.gateway.support.process import GatewayProcess, gateway_process
from worker.failpoints import FailpointName

pytestmark = [pytest.mark.needs("postgresql"), pytest.mark.timeout(120)]

WORKERS = 500
ORDERS = 50
PATIENT = {
    "RAKUTEN_LEASE_TTL_SECONDS": "60",
    "RAKUTEN_LEASE_ACK_SECONDS": "30",
    "RAKUTEN_PERMIT_TTL_SECONDS": "30",
}


@pytest.fixture
async def url() -> AsyncIterator[str]:
    """A database of the test server."""
    with postgres.database() as made:
        yield made


async def waiting_at(gateway: GatewayProcess) -> int:
    """How many streams are open there, by its own count."""
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{gateway.http_port}") as http:
        text = (await http.get("/metrics")).text
    found = re.search(r"^ordergateway_waiting (\d+)", text, re.MULTILINE)
    assert found, text
    return int(found[1])


async def wait_at(count: int, *gateways: GatewayProcess) -> bool:
    return sum([await waiting_at(gateway) for gateway in gateways]) == count


async def hold(workers: Sequence[WaitingWorker], count: int) -> bool:
    return sum(worker.holds for worker in workers) >= count


async def until(so: Callable[[], Awaitable[bool]]) -> float:
    """Returns how many seconds it took until it was so."""
    begun = time.monotonic()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await so():  # noqa: ASYNC110 - it is asked of another process
            await asyncio.sleep(0.05)
    return time.monotonic() - begun


@pytest.mark.parametrize(
    ("by", "spread", "within"),
    [
        # 1 to 3 s on a machine with nothing else to do.
        pytest.param(signal.SIGKILL, False, 30, id="killed, all are there"),
        pytest.param(signal.SIGKILL, True, 30, id="killed, half are there"),
        # Nothing but the silence tells of it: a ping every 10 s, and 5 s for its answer.
        pytest.param(signal.SIGSTOP, False, 60, id="frozen, all are there", marks=pytest.mark.extended),
    ],
)
async def test_all_who_waited_at_a_gateway_that_is_lost_wait_at_the_other_within_seconds(
    url: str, tmp_path: Path, by: signal.Signals, spread: bool, within: float, record_property: Any
) -> None:
    # A slot an account, so that many orders are in execution at once.
    settings: Any = {"gateway_db_url": url, "lease_scope": "account"}
    ports = free_port(), free_port()
    workers = [WaitingWorker(number, f"a{number % ORDERS}", ports) for number in range(WORKERS)]
    there = WORKERS // 2 if spread else WORKERS

    async with AsyncExitStack() as stack:
        lost = await stack.enter_async_context(gateway_process(tmp_path, gateway_grpc_port=str(ports[0]), **settings))
        await stack.enter_async_context(waiting_workers(workers[:there]))
        await until(lambda: wait_at(there, lost))
        other = await stack.enter_async_context(gateway_process(tmp_path, gateway_grpc_port=str(ports[1]), **settings))
        await stack.enter_async_context(waiting_workers(workers[there:]))
        await until(lambda: wait_at(WORKERS, lost, other))
        moving = await waiting_at(lost)
        lost.process.send_signal(by)
        seconds = await until(lambda: wait_at(WORKERS, other))
        record_property("failover", f"{moving} of {WORKERS} streams moved in {seconds:.2f} s")
        assert moving >= there
        assert seconds < within

        begun = time.monotonic()
        await submit_all(other)
        await until(lambda: hold(workers, ORDERS))
        record_property("leased", f"{ORDERS} orders in {time.monotonic() - begun:.2f} s")
    taken = Counter(lease.task_id for worker in workers for lease in worker.leases)
    assert taken == Counter(f"po-{number}" for number in range(ORDERS))
    leases = rows(url, "SELECT * FROM leases")
    assert len(leases) == ORDERS
    assert all(lease["acknowledged_at"] for lease in leases)
    assert not rows(url, "SELECT * FROM events WHERE kind IN ('undo', 'expire')")


async def submit_all(gateway: GatewayProcess) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{gateway.port}") as channel:
        api = GrpcApi(channel)
        await asyncio.gather(*(api.submit(f"po-{number}", site=SITE, account=f"a{number}") for number in range(ORDERS)))


@pytest.mark.parametrize(
    "by", [signal.SIGKILL, pytest.param(signal.SIGSTOP, marks=pytest.mark.extended)], ids=["killed", "frozen"]
)
async def test_an_order_goes_on_when_the_gateway_of_its_worker_is_lost_behind_a_load_balancer(
    tmp_path: Path, by: signal.Signals, record_property: Any
) -> None:
    async with running_stage(tmp_path, 1, PATIENT, {}, 2) as stage:
        chaos, (lost, other) = ChaosTest(stage), stage.gateways
        await lost.program.start()
        await lost.channel.channel_ready()
        await stage.worker.start()
        await stage.worker.armed(FailpointName.CONFIRMED, signal.SIGSTOP)
        await until(lambda: exist(stage, "SELECT 1 FROM streams"))
        await other.program.start()
        await other.channel.channel_ready()
        await chaos.submit("t-1")
        await stage.worker.until_frozen()
        lost.program.send(by)
        stage.worker.send(signal.SIGCONT)
        seconds = await until(lambda: exist(stage, "SELECT 1 FROM tasks WHERE status = 'succeeded'"))
        record_property("went on", f"after {seconds:.1f} s")
        assert len(chaos.ordered("t-1")) == 1
        assert stage.worker.starts == 1
        (task,) = rows(stage.database, "SELECT lease_count FROM tasks")
        assert task["lease_count"] == 1, "in one hand all the time"
        assert not chaos.contradictions()


async def exist(stage: Stage, sql: str) -> bool:
    return bool(await asyncio.to_thread(rows, stage.database, sql))
