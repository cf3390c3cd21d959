"""A worker's machine: its disk with journal and evidence, its clocks, and its process, wired as worker.main does."""

import asyncio
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from tests.simulation.gateway_machine import BEGINNING
from tests.simulation.journal_connection import InlineConnection
from tests.simulation.loop import Process, VirtualLoop
from tests.simulation.network import Link, Weather
from tests.simulation.reader import Reader
from tests.simulation.site import SimSite, SiteWatch
from tests.simulation.store import Disk
from tests.simulation.trace import Trace
from tests.simulation.wire import Channel, Server
from tests.simulation.worker_disk import SimDiskSpace, SimEvidence
from worker.account import AccountLocks
from worker.checkpoints import CheckpointName
from worker.gateway_client import GatewayClient
from worker.journal.journal import Journal
from worker.journal.lock import JournalLock
from worker.monitor import Monitor, MonitorPolicy
from worker.order_loop import OrderLoop
from worker.order_run import NoScreenshots, Parts, Policy, WorkerEvent
from worker.outbox import Outbox
from worker.sandbox_shop.shop import Shop
from worker.scraper import NoScraper

POLICY = Policy(
    order_max_total_yen=20_000,
    step_seconds=12.0,
    verify_max_pages=20,
    lost_answer_look_seconds=40.0,
    lost_answer_interval_seconds=10.0,
)
MONITOR = MonitorPolicy(interval_seconds=25.0, days=30, payment_alert_seconds=3600.0)
STOP_SECONDS = 7.0
_CHECKPOINTS = frozenset(name.value for name in CheckpointName)


class SimClock:
    """The machine's clocks: the wall clock can be stepped, the elapsed one cannot."""

    def __init__(self, machine: "WorkerMachine") -> None:
        self._machine = machine

    def now(self) -> datetime:
        return BEGINNING + timedelta(seconds=self._machine.loop.time() + self._machine.wall_offset)

    def elapsed(self) -> float:
        return self._machine.loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))


class SimEntropy:
    """Names that never repeat, jitter from the seed."""

    def __init__(self, name: str, chance: random.Random) -> None:
        self._name = name
        self._chance = chance
        self._count = 0

    def token(self) -> str:
        self._count += 1
        return f"{self._name}-{self._count:020d}"

    def fraction(self) -> float:
        return self._chance.random()


class WorkerMachine:
    """Starts the worker, stops it, loses its power, starts it again."""

    def __init__(
        self,
        loop: VirtualLoop,
        folder: Path,
        name: str,
        server: Server,
        shop: Shop,
        links: tuple[Link, Link],
        chance: random.Random,
        trace: Trace,
        watch: Callable[["WorkerMachine"], SiteWatch],
        on_report: Callable[[Any], None],
        on_answer: Callable[[str, Any, float], None],
    ) -> None:
        self.loop = loop
        self.name = name
        self.folder = folder / name
        self.folder.mkdir()
        self.journal_path = self.folder / "trading.db"
        self.read = Reader(self.journal_path)
        loop.at_the_end.append(self.read.close)
        self.evidence_dir = self.folder / "evidence"
        self.evidence_dir.mkdir()
        self.disk = Disk(chance)
        self.wall_offset = 0.0
        self.process: Process | None = None
        self.fatal_checkpoint: CheckpointName | None = None
        self.freezes_there = 0.0
        self.freezes_again = False
        self.cut_there = 0.0
        """For how much longer than the freeze at the checkpoint the gateway is out of reach."""
        self.shop_after_click: Weather | None = None
        self.journal_id = ""
        self.current_task = ""
        self.tokens: dict[str, str] = {}
        """The lease token that the worker last renewed, by task."""
        self.gateway_link, self.shop_link = links
        self._server = server
        self._shop = shop
        self._chance = chance
        self._trace = trace
        self._watch = watch(self)
        self._on_report = on_report
        self._on_answer = on_answer
        self._entropy = SimEntropy(name, chance)
        self._journal: Journal | None = None
        self._stopping: asyncio.Event | None = None
        self._locks: list[JournalLock] = []

    @property
    def is_up(self) -> bool:
        return self.process is not None and self.process.alive

    def start(
        self, fuse: int | None = None, fatal_checkpoint: CheckpointName | None = None, freezes_there: float = 0.0
    ) -> None:
        """Starts the process; its power fails after that many points, or at that checkpoint, where it may freeze
        instead for some seconds.
        """
        self.fatal_checkpoint, self.freezes_there = fatal_checkpoint, freezes_there
        self.process = process = Process(self.loop, self.name, fuse)
        process.on_death.append(self._on_death)
        self._trace(self.name, f"starts (fuse {fuse}, checkpoint {fatal_checkpoint})")
        process.spawn(self._run(process))

    def power_off(self) -> None:
        if self.process is not None:
            self.process.power_off()

    def freeze(self, seconds: float) -> None:
        """SIGSTOP, a laptop lid: it goes on later as if nothing had been."""
        process = self.process
        if process is not None and process.runs:
            self._trace(self.name, f"freezes for {seconds:.0f} s")
            self._trace.count("freezes")
            process.freeze()
            self.gateway_link.later(seconds, process.thaw)

    def stop(self) -> None:
        """SIGTERM."""
        if self.is_up and self._stopping is not None:
            self._trace(self.name, "is asked to stop")
            self._stopping.set()

    def wish(self, task_id: str) -> None:
        """What `order-worker reclaim` does, from a process of its own on the same machine."""
        if self.disk.full or not self.journal_path.exists():
            return
        cli = Process(self.loop, f"{self.name}-cli")

        async def file() -> None:
            connection: Any = InlineConnection

            async def connect(path: Path) -> Any:
                return connection(path, cli, self.disk)

            try:
                journal = await Journal.look_into(self.journal_path, clock=SimClock(self), connect=connect)
                await journal.file_wish(task_id)
                await journal.close()
            except Exception as error:  # noqa: BLE001 -- the person sees it and may try again
                self._trace(self.name, f"the wish could not be filed: {error}")
            cli.power_off()

        cli.spawn(file())

    def _on_death(self) -> None:
        assert self.process is not None
        if self.process.last_point != "stopped":
            self._trace(self.name, f"loses power at {self.process.last_point}")
            self._trace.count("worker crashes")
        # The kernel would drop the dead process's locks; here its open files outlive it.
        while self._locks:
            self._locks.pop().release()
        self._journal = self._stopping = None

    def _take_lock(self, path: Path) -> JournalLock:
        self._locks.append(JournalLock(path))
        return self._locks[-1]

    async def _run(self, process: Process) -> None:
        await process.point("worker: start")
        clock = SimClock(self)

        async def connect(path: Path) -> Any:
            return InlineConnection(path, process, self.disk)

        try:
            journal = await Journal.open(
                self.journal_path,
                clock=clock,
                new_id=self._entropy.token,
                connect=connect,
                take_lock=self._take_lock,
            )
        except Exception as error:  # noqa: BLE001 -- a worker that cannot start ends
            self._trace(self.name, f"cannot start: {error}")
            process.last_point = "a start that failed"
            process.power_off()
            return
        self._journal = journal
        self.journal_id = journal.journal_id
        stopping = self._stopping = asyncio.Event()
        chance = self._chance
        gateway = GatewayClient(
            Channel(  # type: ignore[arg-type]
                self.gateway_link, self._server, chance, self._saw_request, self._on_answer, process.point
            ),
            worker_id="worker",
            session_id=self._entropy.token(),
            journal_id=journal.journal_id,
            token="secret",
        )
        outbox = Outbox(journal, gateway, clock, self._entropy, "worker")
        parts = Parts(
            journal=journal,
            evidence=SimEvidence(self.evidence_dir, process, self.disk),
            disk=SimDiskSpace(self.disk),
            outbox=outbox,
            gateway=gateway,
            clock=clock,
            screenshots=NoScreenshots(),
            scraper=NoScraper(),
            checkpoint=self._checkpoint,
            on_event=self._on_event,
            policy=POLICY,
        )
        sites = [SimSite(self._shop, self.shop_link, process, chance, self._watch)]
        accounts = AccountLocks()
        monitor = Monitor(parts, {site.name: site for site in sites}, accounts, MONITOR)
        loop = OrderLoop(
            parts, sites, accounts, self._entropy, lease_wait=chance.choice((3.0, 15.0)), stopping=stopping
        )
        await outbox.start()
        working = process.spawn(loop.run())
        watching = process.spawn(monitor.run())
        stopped = process.spawn(stopping.wait())
        await asyncio.wait({working, stopped}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({working}, timeout=STOP_SECONDS)
        for task in (working, watching, stopped):
            task.cancel()
        await asyncio.gather(working, watching, stopped, return_exceptions=True)
        await outbox.close()
        await journal.close()
        self._journal = None
        process.last_point = "stopped"
        self._trace(self.name, "has stopped")
        process.power_off()

    async def _checkpoint(self, name: CheckpointName) -> None:
        process = self.process
        assert process is not None
        if name is CheckpointName.CLICK_RECORDED and self.shop_after_click is not None:
            self.shop_link.weather = self.shop_after_click
        if name is self.fatal_checkpoint and self.freezes_there:
            if not self.freezes_again:
                self.fatal_checkpoint = None
            if self.cut_there:
                self.gateway_link.cut_until = self.loop.time() + self.freezes_there + self.cut_there
            self.freeze(self.freezes_there)
            await asyncio.sleep(0)
        elif name is self.fatal_checkpoint:
            process.fuse = 1
        await process.point(f"checkpoint {name}")

    def _on_event(self, event: WorkerEvent) -> None:
        if event.name in _CHECKPOINTS:
            self.current_task = event.task_id
        self._trace(self.name, f"{event.task_id}: {event.name} {event.detail[:120]}".rstrip())

    def _saw_request(self, path: str, request: Message) -> None:
        if path.endswith("/RenewLease"):
            self.tokens[request.task_id] = request.lease_token  # type: ignore[attr-defined]
        if path.endswith("/ReportOrder"):
            self._on_report(request)
        if path.endswith(("/RequestSubmitPermit", "/ReclaimOrder")):
            self._trace(self.name, f"asks {path.rpartition('/')[2]} {request.task_id}")  # type: ignore[attr-defined]
