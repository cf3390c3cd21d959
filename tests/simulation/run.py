"""One run: a seed becomes a world, its faults, and what the auditor says."""

import asyncio
import logging
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from pathlib import Path
from unittest.mock import patch

import gateway.waiting.desk
import worker.order_loop
import worker.outbox
import worker.submission
from gateway.store.sqlite.engine import open_database
from tests.simulation.auditor import Auditor
from tests.simulation.faults import THEMES, Faults
from tests.simulation.gateway_machine import BEGINNING, GatewayMachine
from tests.simulation.loop import VirtualLoop
from tests.simulation.network import Link
from tests.simulation.people import Person, Upstream
from tests.simulation.reader import Reader
from tests.simulation.site import SiteWatch
from tests.simulation.trace import Trace
from tests.simulation.wire import Channel
from tests.simulation.worker_machine import WorkerMachine
from worker.sandbox_shop.orders import Order
from worker.sandbox_shop.shop import Shop, ShopSettings

REFLECTION_SECONDS = 30.0
HEALING_SECONDS = 4_000.0
ROUND_SECONDS = 8.0
MANY = 4
"""That many tasks are filed at once, so that the queue is full while the first is executed."""
MEMORY = Path("/dev/shm")  # noqa: S108 -- a folder of the run's own is made in it


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a run. `lines` is its timeline, `seconds` its virtual length."""

    seed: int
    digest: str
    seconds: float
    violations: tuple[str, ...]
    counts: Counter[str] = field(repr=False)
    lines: tuple[str, ...] = field(repr=False)


def simulate(seed: int) -> Result:
    """Runs one seed."""
    parent = MEMORY if MEMORY.is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="simulation-", dir=parent))
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with _pace():
            return _World(seed, folder).run()
    finally:
        logging.disable(disabled)
        shutil.rmtree(folder)


@contextmanager
def _pace() -> Iterator[None]:
    """Polls that only stand behind lost hints, and patience of minutes, are brought to the scale of the policy."""
    with ExitStack() as stack:
        for module, name, seconds in (
            (gateway.waiting.desk, "POLL_SECONDS", 5.0),
            (worker.order_loop, "WISH_POLL", 4.0),
            (worker.order_loop, "MOST_DELAY", 2.0),
            (worker.order_loop, "DISK_DELAY", 10.0),
            (worker.outbox, "MOST_DELAY", 10.0),
            (worker.submission, "PERMIT_CALL", 5.0),
            (worker.submission, "PERMIT_PATIENCE", 8.0),
        ):
            stack.enter_context(patch.object(module, name, seconds))
        yield


class _Watch:
    """Tells the auditor what one worker does on the site."""

    def __init__(self, auditor: Auditor, machine: WorkerMachine) -> None:
        self._auditor = auditor
        self._machine = machine

    def write_begins(self, what: str) -> None:
        self._auditor.write_begins(self._machine, what)

    def submit_begins(self) -> str:
        self._auditor.submit_begins(self._machine)
        return self._machine.current_task

    def placed(self, task_id: str, order: Order) -> None:
        self._auditor.placed(self._machine, task_id, order)

    def pay_begins(self, number: str) -> None:
        self._auditor.pay_begins(self._machine, number)

    def paid(self, order: Order) -> None:
        self._auditor.paid(order)


class _World:
    def __init__(self, seed: int, folder: Path) -> None:
        self.seed = seed
        self.loop = loop = VirtualLoop()
        self.trace = trace = Trace(loop.time)
        self.auditor = auditor = Auditor(loop.time, trace)
        self.chance = self._chance("world")
        shutil.copy(template(), folder / "gateway.db")
        self.read = Reader(folder / "gateway.db")
        loop.at_the_end.append(self.read.close)
        self.gateway = GatewayMachine(loop, folder, self._chance("gateway"), trace, auditor.committed)
        # asyncio.Event of the shop binds to no loop before it is waited for.
        self.shop = Shop(
            ShopSettings(reflection_delay_seconds=REFLECTION_SECONDS, orders_per_page=5),
            lambda: BEGINNING + timedelta(seconds=loop.time()),
        )
        self.links: list[Link] = []
        theme = self.chance.choice(THEMES) if self.chance.random() < 0.5 else None
        count = self.chance.choice((1, 2)) if theme is None else theme.workers
        names = ["worker-a", "worker-b"][:count]
        self.workers = [self._worker(folder, name) for name in names]
        auditor.workers = self.workers
        self.person = Person(self._channel("person"), self._chance("person"), auditor, self.shop, trace)
        self.upstream = Upstream(self._channel("upstream"), self._chance("upstream"), auditor, trace)
        self.faults = Faults(
            self._chance("faults"),
            self.gateway,
            self.workers,
            self.links,
            self.person,
            self.shop,
            trace,
            theme,
            auditor,
        )

    def _chance(self, name: str) -> random.Random:
        return random.Random(f"{self.seed}/{name}")  # noqa: S311 -- reproducible on purpose

    def _link(self, name: str) -> Link:
        link = Link(self.loop, self._chance(f"link {name}"), name, self.trace.count)
        self.links.append(link)
        return link

    def _channel(self, name: str) -> Channel:
        return Channel(self._link(f"{name}-gateway"), self.gateway.server, self._chance(f"channel {name}"))

    def _worker(self, folder: Path, name: str) -> WorkerMachine:
        def watch(machine: WorkerMachine) -> SiteWatch:
            return _Watch(self.auditor, machine)

        links = (self._link(f"{name}-gateway"), self._link(f"{name}-shop"))
        chance = self._chance(name)
        return WorkerMachine(
            self.loop, folder, name, self.gateway.server, self.shop, links, chance, self.trace, watch,
            self.auditor.report_sent, self.auditor.answered,
        )  # fmt: skip

    def run(self) -> Result:
        try:
            self.loop.run_until_complete(self._live())
        except Exception as error:  # noqa: BLE001 -- a run that breaks off is a finding with a timeline
            self.auditor.broken(f"the run broke off: {error!r}")
        finally:
            for machine in (self.gateway, *self.workers):
                if machine.process is not None and machine.process.alive:
                    machine.process.last_point = "the end of the run"
                    machine.power_off()
            faults = list(self.loop.faults)
            self.loop.abandon()
        for fault in faults:
            self.auditor.broken(f"a fault of the program: {fault}")
        return Result(
            self.seed,
            self.trace.digest(),
            self.trace.seconds,
            tuple(self.auditor.violations),
            self.trace.counts,
            tuple(self.trace.lines),
        )

    async def _live(self) -> None:
        self.gateway.start(self.faults.fuse(3_000))
        for machine in self.workers:
            self.faults.start_worker(machine)
        length = self.chance.choice((40.0, 100.0, 180.0))
        theme = self.faults.theme
        tasks = self.chance.choice((1, 2, 3, 4)) if theme is None else theme.tasks
        spread = length * 0.6 if tasks < MANY else 5.0
        submissions = [
            asyncio.ensure_future(self.upstream.submit(f"t-{number}", self.chance.uniform(0, spread)))
            for number in range(1, tasks + 1)
        ]
        await self.faults.run(length)
        self.faults.heal()
        await self._settle(submissions)
        self._judge_end()
        self.loop.forget_done()
        await asyncio.sleep(1)
        self.loop.forget_done()

    async def _settle(self, submissions: "list[asyncio.Task[None]]") -> None:
        """The person acts until nothing is left to do."""
        end = self.loop.time() + HEALING_SECONDS
        while self.loop.time() < end:
            await asyncio.sleep(ROUND_SECONDS)
            self.faults.keep_up()
            if self.auditor.paused:
                await self.person.resume()
            submitted = all(submission.done() for submission in submissions)
            if await self.person.settle() and submitted and not self._waiting():
                return
        self.auditor.broken(f"something waits for ever: {self._waiting()}")

    def _waiting(self) -> list[str]:
        waiting = []
        for machine in self.workers:
            for row in machine.read("SELECT task_id FROM outbox WHERE settled_at IS NULL"):
                waiting.append(f"a report of {row['task_id']} on {machine.name}")
            for row in machine.read("SELECT task_id FROM reclaim_wishes WHERE status IN ('waiting', 'taken')"):
                waiting.append(f"a wish for {row['task_id']} on {machine.name}")
        for row in self.read("SELECT task_id, status FROM tasks WHERE status NOT IN ('succeeded', 'failed')"):
            waiting.append(f"{row['task_id']} is {row['status']}")
        return waiting

    def _judge_end(self) -> None:
        broken = self.auditor.broken
        tasks = {row["task_id"]: row for row in self.read("SELECT * FROM tasks")}
        for task_id in sorted(self.auditor.accepted_submits - tasks.keys()):
            broken(f"{task_id}: an acknowledged submit is lost")
        for task_id, task in tasks.items():
            orders = self.auditor.orders.get(task_id, [])
            if orders and not (task["order_known"] or task["order_stated"]):
                broken(f"{task_id}: the shop has order {orders[0].number}, the gateway knows of none")
            if not orders and task["order_known"]:
                broken(f"{task_id}: the gateway knows of an order, the shop has none")
            if (task["status"] == "succeeded") != bool(orders):
                broken(f"{task_id}: is {task['status']} with {len(orders)} orders")
        for machine in self.workers:
            for row in machine.read("SELECT * FROM outbox WHERE outcome IS NOT NULL"):
                if (row["state"], row["sequence"]) not in self.auditor.tasks[row["task_id"]].sequences:
                    broken(f"{row['task_id']}: report {row['sequence']} ({row['outcome']}) is not in the history")
            for row in machine.read("SELECT * FROM orders"):
                known = [order.number for order in self.auditor.orders.get(row["task_id"], [])]
                if row["site_order_id"] is not None and row["site_order_id"] not in known:
                    broken(f"{row['task_id']}: {machine.name} knows {row['site_order_id']}, the shop {known}")
        for task_id, orders in self.auditor.orders.items():
            if not self.auditor.has_click(task_id):
                broken(f"{task_id}: ordered without a click record in any journal")
            for order in orders:
                if order.payments > 1:
                    broken(f"{task_id}: paid {order.payments} times")


@cache
def template() -> Path:
    """A migrated database, copied for each run."""
    path = Path(tempfile.mkdtemp(prefix="simulation-template-")) / "gateway.db"
    database = open_database(path)
    database.writing.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    return path
