"""A worker's machine: its disk with journal and evidence, its clocks, and its process, wired as worker.main does."""

import asyncio
import random
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from ordergateway.v1 import order_leases_pb2

from common.target import Target
from tests.simulation.gateway_machine import BEGINNING
from tests.simulation.journal_connection import InlineConnection
from tests.simulation.layout import Serves
from tests.simulation.loop import THE_END, Process, VirtualLoop
from tests.simulation.network import Link
from tests.simulation.reader import Reader
from tests.simulation.shop import SimShop
from tests.simulation.site import SimSite, SiteWatch
from tests.simulation.store import Disk
from tests.simulation.trace import Trace
from tests.simulation.wire import CallWatch, Channel, Server, StreamCall
from tests.simulation.worker_disk import SimDiskSpace, SimEvidence
from worker.account_lock import AccountLocks
from worker.failpoints import FailpointName
from worker.gateway.client import GatewayClient
from worker.gateway.outbox import Outbox
from worker.journal.journal import Journal
from worker.orders.loop import OrderLoop
from worker.orders.monitor import Monitor, MonitorPolicy
from worker.orders.parts import NoScreenshots, Parts, Policy, WorkerEvent
from worker.sites.port import by_target
from worker.sites.scraper import NoScraper

POLICY = Policy(
    order_max_total_yen=20_000,
    step_seconds=12.0,
    verify_max_pages=20,
    lost_answer_look_seconds=40.0,
    lost_answer_interval_seconds=10.0,
)
MONITOR = MonitorPolicy(interval_seconds=25.0, days=30, payment_alert_seconds=3600.0)
STOP_SECONDS = 7.0
ASKING = "asking"
"""As a failpoint: the worker opens a stream for its next lease."""
_CHECKPOINTS = frozenset(name.value for name in FailpointName)


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
        serves: Serves,
        shops: Mapping[Target, SimShop],
        links: tuple[Link, Link],
        chance: random.Random,
        trace: Trace,
        watch: "WorkerWatch",
        take_lock: Callable[[Path], Any],
    ) -> None:
        self.loop = loop
        self.name = name
        folder.mkdir(exist_ok=True)
        self.journal_path = folder / "trading.db"
        self.read = Reader(self.journal_path)
        loop.at_the_end.append(self.read.close)
        self.evidence_dir = folder / "evidence"
        self.evidence_dir.mkdir(exist_ok=True)
        self.disk = Disk(chance, trace.count)
        self.wall_offset = 0.0
        self.process: Process | None = None
        self.at_failpoint: Callable[[WorkerMachine, str], None] = lambda _worker, _name: None
        self.lease_sent: Callable[[StreamCall, Any], None] = lambda _stream, _lease: None
        """A gateway has sent it a lease, into that stream."""
        self.stopped_at: float | None = None
        self.journal_id = ""
        self.session_id = ""
        self.current_task = ""
        self.tokens: dict[str, str] = {}
        """The lease token that the worker last renewed, by task."""
        self.gateway_link, self.shop_link = links
        self.serves = serves
        self._shops = shops
        self._server = server
        self._chance = chance
        self._trace = trace
        self._watch = watch
        self._take_lock = take_lock
        self._entropy = SimEntropy(name, chance)
        self._stopping: asyncio.Event | None = None
        self._channel: Channel | None = None
        self.lease_waits = (3.0, 15.0)
        """Seconds that it waits in one stream: one of these."""

    @property
    def stream(self) -> StreamCall | None:
        """In which it waits, or waited last."""
        return None if self._channel is None else self._channel.stream

    @property
    def served_by(self) -> Server:
        """Where its last call went."""
        return self._server if self._channel is None else self._channel.served_by

    @property
    def is_up(self) -> bool:
        return self.process is not None and self.process.alive

    def start(self, fuse: int | None = None) -> None:
        """Starts the process; its power fails after that many points."""
        self.process = process = Process(self.loop, self.name, fuse)
        self.stopped_at = None
        process.on_death.append(self._on_death)
        self._trace(self.name, f"starts (fuse {fuse})")
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
            if self.stopped_at is None:  # a second signal gives no more time
                self.stopped_at = self.loop.time()
            self._stopping.set()

    def reclaim_request(self, task_id: str) -> None:
        """What `order-worker reclaim` does, from a process of its own on the same machine."""
        if self.disk.full or not self.journal_path.exists():
            return
        cli = Process(self.loop, f"{self.name}-cli")

        async def file() -> None:
            connection: Any = InlineConnection

            async def connect(path: Path) -> Any:
                return connection(path, cli, self.disk)

            try:
                journal = await Journal.open_beside(self.journal_path, clock=SimClock(self), connect=connect)
                await journal.reclaims.file(task_id)
                await journal.close()
            except Exception as error:  # noqa: BLE001 -- the person sees it and may try again
                self._trace(self.name, f"the reclaim request could not be filed: {error}")
            cli.power_off()

        cli.spawn(file())

    def _on_death(self) -> None:
        assert self.process is not None
        if self.process.last_point not in ("stopped", THE_END):
            self._trace(self.name, f"loses power at {self.process.last_point}")
            self._trace.count("worker crashes")
        self._stopping = None

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
        self.journal_id = journal.journal_id
        stopping = self._stopping = asyncio.Event()
        chance = self._chance
        calls = _Calls(self, self._watch)
        channel = self._channel = Channel(self.gateway_link, self._server, chance, calls, process.point)
        self.session_id = self._entropy.token()
        gateway = GatewayClient(
            channel,  # type: ignore[arg-type]
            worker_id="worker",
            session_id=self.session_id,
            journal_id=journal.journal_id,
            token="secret",
            accounts=self.serves.accounts,
        )
        outbox = Outbox(journal.reports, gateway, clock, self._entropy, "worker")
        parts = Parts(
            journal=journal,
            evidence=SimEvidence(self.evidence_dir, process, self.disk, partial(self._watch.written_over, self.name)),
            disk=SimDiskSpace(self.disk),
            outbox=outbox,
            gateway=gateway,
            clock=clock,
            screenshots=NoScreenshots(),
            scraper=NoScraper(),
            failpoint=self._failpoint,
            on_event=self._on_event,
            policy=POLICY,
        )
        sites = [
            SimSite(target, self._shops[target], self.shop_link, process, chance, self._watch, self)
            for target in self.serves.targets
        ]
        accounts = AccountLocks()
        monitor = Monitor(parts, by_target(sites), accounts, MONITOR)
        loop = OrderLoop(
            parts, sites, accounts, self._entropy, lease_wait=chance.choice(self.lease_waits), stopping=stopping
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
        process.last_point = "stopped"
        self._trace(self.name, "has stopped")
        process.power_off()

    async def _failpoint(self, name: FailpointName) -> None:
        process = self.process
        assert process is not None
        self.at_failpoint(self, name)
        if process.frozen:
            await asyncio.sleep(0)
        await process.point(f"failpoint {name}")

    def _on_event(self, event: WorkerEvent) -> None:
        if event.name in _CHECKPOINTS:
            self.current_task = event.task_id
        self._trace(self.name, f"{event.task_id}: {event.name} {event.detail}".rstrip())


class WorkerWatch(SiteWatch, Protocol):
    """Sees everything that a worker does."""

    def requested(self, worker: WorkerMachine, path: str, request: Any) -> None: ...
    def answered(self, worker: WorkerMachine, path: str, request: Any, answer: Any, sent: float) -> None: ...
    def refused(self, worker: WorkerMachine, path: str, request: Any) -> None: ...
    def lease_came(self, worker: WorkerMachine, lease: Any) -> None: ...
    def written_over(self, worker_name: str, path: str) -> None: ...


class _Calls(CallWatch):
    """What a worker says to the gateway, and what it gets to hear."""

    def __init__(self, worker: WorkerMachine, watch: WorkerWatch) -> None:
        self._worker = worker
        self._watch = watch

    def requested(self, path: str, request: Any) -> None:
        worker = self._worker
        if path.endswith("/RenewLease"):
            worker.tokens[request.task_id] = request.lease_token
        if path.endswith(("/RequestSubmitPermit", "/ReclaimOrder")):
            worker._trace(worker.name, f"asks {path.rpartition('/')[2]} {request.task_id}")
        if path.endswith("/LeaseOrders"):
            worker.at_failpoint(worker, ASKING)
        self._watch.requested(worker, path, request)

    def answered(self, path: str, request: Any, answer: Any, sent: float) -> None:
        self._watch.answered(self._worker, path, request, answer, sent)

    def refused(self, path: str, request: Any) -> None:
        self._watch.refused(self._worker, path, request)

    def lost(self, path: str) -> None:
        if path.endswith("/RequestSubmitPermit"):
            self._worker._trace.count("lost permit answers")

    def served(self, stream: StreamCall, data: bytes) -> None:
        message = order_leases_pb2.LeaseOrdersResponse.FromString(data)
        if message.HasField("lease"):
            self._worker.lease_sent(stream, message.lease)

    def streamed(self, path: str, message: Any) -> None:
        if message.HasField("lease"):
            self._watch.lease_came(self._worker, message.lease)
