"""The gateway's machine: its disk, its clocks, and the process on it, wired as gateway.main does."""

import asyncio
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ordergateway.v1 import operations_pb2, order_leases_pb2, orders_pb2

from gateway.api.auth.admission import Admission
from gateway.api.auth.authenticator import EVERY_ROLE, Authenticator
from gateway.api.call import methods_of
from gateway.api.grpc.handlers import GrpcHandlers
from gateway.api.health import HealthCheck
from gateway.api.services.operations import OperationsService
from gateway.api.services.order_leases import OrderLeaseService
from gateway.api.services.orders import OrderService
from gateway.clock import SystemTime, load_clock
from gateway.dispatch.notifier import Notifier
from gateway.dispatch.order_leases import OrderDispatcher, OrderLeaseSource
from gateway.domain.models import LeaseScope, Policy
from gateway.orders.start import resume_after_start
from gateway.restore import restore
from gateway.store.sqlite.backup import back_up
from gateway.store.sqlite.engine import open_database
from gateway.sweeps.alerts import AlertSweep
from gateway.sweeps.expire import ExpireSweep
from gateway.sweeps.sweep import Sweep, run_sweep
from gateway.sweeps.wake import WakeSweep
from tests.simulation.loop import THE_END, Process, VirtualLoop
from tests.simulation.rest_door import RestDoor
from tests.simulation.store import Disk, SimGroupWriter, SimStore, StoreWatch
from tests.simulation.trace import Trace
from tests.simulation.wire import Server

POLICY = Policy(
    sites=("sandbox",),
    scope=LeaseScope.GLOBAL,
    lease_ttl=timedelta(seconds=40),
    acknowledge_within=timedelta(seconds=12),
    longest_wait=timedelta(seconds=20),
    permit_ttl=timedelta(seconds=10),
    permit_settle=timedelta(seconds=90),
    max_intent_bytes=64 * 1024,
    worker_offline_after=timedelta(seconds=60),
    task_unclaimed_after=timedelta(seconds=120),
)
"""The real policy at about a tenth of its times, in the same order of size."""

BEGINNING = datetime(2026, 7, 27, 9, 0, tzinfo=UTC)
SWEEP_SECONDS = 5.0
START_SECONDS = 0.5


class OrderedNotifier(Notifier):
    """Publishes in alphabetical order, so that a run does not depend on the hashes of texts."""

    def publish(self, topics: Any) -> None:
        super().publish(sorted(topics))


class GatewayMachine:
    """Starts the gateway, loses its power, starts it again."""

    def __init__(
        self,
        loop: VirtualLoop,
        folder: Path,
        chance: random.Random,
        trace: Trace,
    ) -> None:
        self.loop = loop
        self.path = folder / "gateway.db"
        self.disk = Disk(chance, trace.count)
        self.server = Server()
        self.process: Process | None = None
        self.wall_offset = 0.0
        self.boots = 1
        self._booted_at = 0.0
        self._chance = chance
        self._trace = trace
        self._store: SimStore | None = None
        self._tokens = 0
        self._backups = folder / "backups"
        self.watch: StoreWatch
        """Set before the first start."""
        self.rest: RestDoor | None = None

    @property
    def is_up(self) -> bool:
        return self.process is not None and self.process.alive

    def machine_time(self) -> SystemTime:
        def wall() -> datetime:
            return BEGINNING + timedelta(seconds=self.loop.time() + self.wall_offset)

        return SystemTime(f"boot-{self.boots}", lambda: round((self.loop.time() - self._booted_at) * 1_000_000), wall)

    def reboot(self) -> None:
        """The machine's own clock starts anew."""
        self.power_off()
        self.boots += 1
        self._booted_at = self.loop.time() - 1.0
        self._trace("gateway", "its machine is rebooted")

    def back_up(self, name: str) -> None:
        """A backup of what is on disk now."""
        back_up(self.path, self._backups, name, lambda: False)
        self._trace("gateway", f"is backed up as {name}")

    def restore(self, name: str) -> None:
        """Its power is off, and the backup is put in the database's place."""
        self.power_off()
        restore(self._backups / name, self.path, machine=self.machine_time())
        self._trace("gateway", f"is restored from {name}")
        self._trace.count("restores")
        self.watch.restored(self.path)

    def start(self, fuse: int | None = None) -> None:
        """Starts the process; its power fails after that many points."""
        self.process = process = Process(self.loop, "gateway", fuse)
        process.on_death.append(self._on_death)
        self.server.process, self.server.handlers = process, {}
        self._trace("gateway", f"starts (fuse {fuse})")
        process.spawn(self._run(process))

    def power_off(self) -> None:
        if self.process is not None:
            self.process.power_off()

    def _on_death(self) -> None:
        assert self.process is not None
        self._trace("gateway", f"loses power at {self.process.last_point}")
        if self.process.last_point != THE_END:
            self._trace.count("gateway crashes")
        self.server.handlers = {}
        self.rest = None
        if self._store is not None:
            self._store.cut_off()
            self._store = None

    async def _run(self, process: Process) -> None:
        await process.point("gateway: start")
        notifier = OrderedNotifier()
        database = open_database(self.path)
        clock = load_clock(database.transaction(), self.machine_time())
        writer = SimGroupWriter(
            database.writing,
            clock,
            notifier.publish,
            lambda _error: process.power_off(),
            process=process,
            disk=self.disk,
            watch=self.watch,
        )
        store = self._store = SimStore(database, clock, writer, self.disk, self._chance, self.watch)
        try:
            await store.write(resume_after_start, POLICY, clock_continues=clock.continues, wall_utc=clock.wall_utc())
            await store.write(clock.save)
        except Exception as error:  # noqa: BLE001 -- a gateway that cannot start ends
            self._trace("gateway", f"cannot start: {error}")
            process.last_point = "a start that failed"
            process.power_off()
            return
        dispatcher = OrderDispatcher(store, notifier, OrderLeaseSource(POLICY, self._token))
        wake = WakeSweep(store, notifier)
        wake.interval = SWEEP_SECONDS
        sweeps: list[Sweep] = [
            ExpireSweep(store, SWEEP_SECONDS, clock.save),
            wake,
            AlertSweep(store, POLICY, SWEEP_SECONDS * 4, has_webhook=False),
        ]
        for work in (dispatcher.run(), *map(run_sweep, sweeps)):
            process.spawn(work)
        self.server.handlers = self._handlers(store, notifier, dispatcher)
        self.rest = RestDoor(process, store, dispatcher)
        self._trace("gateway", "is up")

    def _handlers(self, store: SimStore, notifier: Notifier, dispatcher: OrderDispatcher) -> dict[str, Any]:
        guard = GrpcHandlers(Admission(Authenticator({"api": (EVERY_ROLE, ["secret"])})))
        offered = (
            (
                orders_pb2.DESCRIPTOR.services_by_name["OrderService"],
                OrderService(store, notifier, POLICY, self._token),
            ),
            (
                order_leases_pb2.DESCRIPTOR.services_by_name["OrderLeaseService"],
                OrderLeaseService(store, dispatcher, POLICY, self._token),
            ),
            (
                operations_pb2.DESCRIPTOR.services_by_name["OperationsService"],
                OperationsService(store, POLICY, _no_backup, HealthCheck(store, POLICY, lambda _tx, _now: None)),
            ),
        )
        return {
            method.path: guard.handler(method)
            for descriptor, service in offered
            for method in methods_of(service, descriptor)
        }

    def _token(self) -> str:
        self._tokens += 1
        return f"token-{self._tokens:037d}"


async def _no_backup() -> Any:
    await asyncio.sleep(0)
    raise NotImplementedError
