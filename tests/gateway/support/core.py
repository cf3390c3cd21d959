"""The gateway without any transport, of whose work only the dispatcher of orders runs, in the test's event loop."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from gateway.composition import Gateway, Ids, build_gateway
from gateway.dispatch.notifier import Notifier
from gateway.dispatch.order_lease_source import OrderDispatcher
from gateway.domain.leases import Lease, LeaseRequest, Via
from gateway.domain.models import Actor, Policy, Submission, Submitted, Task
from gateway.orders.submit import submit
from gateway.store import tasks
from tests.gateway.support import dump
from tests.gateway.support.book import JOURNAL
from tests.gateway.support.databases import open_store
from tests.gateway.support.in_process import make_settings
from tests.gateway.support.manual_time import ManualTime


@dataclass
class Core:
    """The parts; `fatal` holds what stopped the writer for good."""

    path: Path
    time: ManualTime
    policy: Policy
    store: Any
    notifier: Notifier
    gateway: Gateway
    dispatching: asyncio.Task[None]
    fatal: list[BaseException] = field(default_factory=list)

    @property
    def dispatcher(self) -> OrderDispatcher:
        return self.gateway.dispatcher

    async def submit(self, task_id: str = "po-1", site: str = "rakuten", intent_json: str = "{}") -> Submitted:
        wanted = Submission(task_id, site, intent_json, None)
        return await self.store.write(submit, self.policy, wanted, Actor("upstream"))

    async def task(self, task_id: str = "po-1") -> Task:
        return await self.store.write(lambda tx, _now: tasks.get(tx, task_id))

    def request(self, worker: str = "w1", session: str = "", **fields: Any) -> LeaseRequest:
        values: dict[str, Any] = {
            "worker_id": worker,
            "session_id": session or f"session-of-{worker:0<6}",
            "journal_id": JOURNAL,
            "sites": self.policy.sites,
            "via": Via.GRPC,
            "identity": "worker",
        }
        return LeaseRequest(**(values | fields))

    async def lease(self, request: LeaseRequest | None = None, wait: float = 0) -> Lease | None:
        """What a whole stream brings."""
        found = [
            event async for event in self.dispatcher.stream(request or self.request(), wait) if isinstance(event, Lease)
        ]
        return found[0] if found else None

    def rows(self, sql: str, *parameters: Any) -> list[dict[str, Any]]:
        return dump.rows(self.path, sql, *parameters)

    async def quiet(self) -> None:
        """Wait until nothing is being given back any more."""
        await asyncio.sleep(0)
        await self.dispatcher.drain()


@asynccontextmanager
async def running_core(
    path: Path, time: ManualTime | None = None, heartbeat_seconds: float = 10
) -> AsyncIterator[Core]:
    """Open a database and run the dispatcher of orders on it; everything is closed on the way out."""
    time = time or ManualTime()
    notifier = Notifier()
    fatal: list[BaseException] = []
    store, clock = open_store(path, time, notifier.publish, fatal.append)
    gateway = build_gateway(
        store, clock, make_settings(path.parent), notifier, ids=numbered_ids(), heartbeat_seconds=heartbeat_seconds
    )
    dispatching = asyncio.create_task(gateway.dispatcher.run())
    try:
        yield Core(path, time, gateway.settings.policy(), store, notifier, gateway, dispatching, fatal)
    finally:
        notifier.close()
        await asyncio.wait_for(dispatching, 60)
        await gateway.dispatcher.drain()
        await store.close()


def numbered_ids() -> Ids:
    numbers = count(1)
    return Ids(
        token=lambda: f"token-{next(numbers):037d}",
        task=lambda: f"t-{next(numbers)}",
        query=lambda: f"aq-{next(numbers)}",
    )


@contextmanager
def task_count() -> Iterator[Callable[[], int]]:
    """How many more asyncio tasks there are than at the beginning."""
    before = len(asyncio.all_tasks())
    yield lambda: len(asyncio.all_tasks()) - before
