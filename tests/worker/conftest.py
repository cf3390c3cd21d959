"""A worker wired as in production, beside a scripted gateway and a sandbox shop, all on real sockets."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.worker.running_shop import RunningShop, running_shop
from tests.worker.scripted_gateway import ScriptedGateway, serving
from tests.worker.virtual import LeapingClock, ManualClock
from worker.failpoints import Failpoint, no_failpoint
from worker.journal.journal import Journal
from worker.journal.records import ReclaimRequest
from worker.main import run_worker
from worker.settings import WorkerSettings

T = TypeVar("T")


def make_settings(folder: Path, **settings: Any) -> WorkerSettings:
    """Settings for a test: everything in the test's folder, nothing from the environment's .env, no slow waits."""
    defaults: dict[str, Any] = {
        "worker_id": "worker-1",
        "trading_db_path": folder / "trading.db",
        "evidence_dir": folder / "evidence",
        "worker_token": "secret-token",
        "order_max_total_yen": 1_000_000,
        "lost_answer_look_seconds": 0.5,
        "lost_answer_interval_seconds": 0.1,
        "monitor_interval_seconds": 3600,
        "min_free_disk_mib": 1,
        "screenshots": False,
    }
    return WorkerSettings(_env_file=None, **(defaults | settings))  # type: ignore[call-arg]


@dataclass
class Bench:
    """The parts around a worker, and the means to run it."""

    folder: Path
    gateway: ScriptedGateway
    target: str
    shop: RunningShop
    settings: dict[str, Any] = field(default_factory=dict)
    clock: LeapingClock = field(default_factory=LeapingClock)

    def intent(self, code: str = "sencha-100g", **fields: Any) -> str:
        return json.dumps({"item_url": self.shop.item_url(code)} | fields)

    @asynccontextmanager
    async def worker(self, failpoint: Failpoint = no_failpoint, **settings: Any) -> AsyncIterator[None]:
        """A running worker; stopped, and its end awaited, on the way out."""
        stop = asyncio.Event()
        wanted = make_settings(
            self.folder,
            **{
                "order_gateway_url": f"grpc://{self.target}",
                "sandbox_url": self.shop.url,
                "scraper_base_url": self.shop.url,
                "scraper_token": "sandbox-token",
            }
            | self.settings
            | settings,
        )
        running = asyncio.create_task(run_worker(wanted, stop=stop, clock=self.clock, failpoint=failpoint))
        try:
            yield
        finally:
            stop.set()
            await asyncio.wait_for(running, 30)
            # What is offered next must not go to a stream whose end the gateway has not seen yet.
            await eventually(lambda: self.gateway.open_streams == 0)

    async def execute(self, task_id: str = "po-1", intent_json: str | None = None, **fields: Any) -> Any:
        """Offers one order to a worker and returns its terminal report."""
        self.gateway.offer(task_id, self.intent() if intent_json is None else intent_json, **fields)
        async with self.worker():
            return await self.gateway.end_of(task_id)

    async def ordered(self) -> int:
        """How many orders the shop counted."""
        return int((await self.shop.control.counters())["orders_placed"])

    async def in_journal(self, look: Callable[[Journal], Awaitable[T]]) -> T:
        """What the journal says, read beside the worker."""
        journal = await Journal.open_beside(self.folder / "trading.db", clock=ManualClock())
        try:
            return await look(journal)
        finally:
            await journal.close()

    async def end_of_reclaim_request(self, number: int) -> ReclaimRequest:
        """A wish once it has come to its end."""
        async with asyncio.timeout(60):
            while True:
                reclaim_request = await self.in_journal(lambda journal: journal.reclaims.find(number))
                if reclaim_request is not None and not reclaim_request.status.is_open:
                    return reclaim_request
                await asyncio.sleep(0.05)


async def eventually(predicate: Callable[[], bool], seconds: float = 20) -> None:
    """Returns once it is true; for what gives no signal, such as the log."""
    async with asyncio.timeout(seconds):
        while not predicate():  # noqa: ASYNC110 -- the log gives no signal
            await asyncio.sleep(0.01)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    gateway = ScriptedGateway()
    async with serving(gateway) as target, running_shop() as shop:
        yield Bench(tmp_path, gateway, target, shop)
