"""The gateway's machine: its disk, its clocks, and the process on it, wired as gateway.main does."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from gateway.api.call import methods_of
from gateway.api.grpc.handlers import GrpcHandlers
from gateway.clock import ServiceClock, SystemTime, load_clock
from gateway.composition import Gateway, Ids, build_gateway
from gateway.dispatch.notifier import Notifier
from gateway.restore import restore
from gateway.settings import Settings
from gateway.store.port import Store
from gateway.store.sqlite.backup import back_up
from gateway.store.sqlite.engine import open_database
from gateway.sweeps.sweep import Sweep, run_sweep
from tests.simulation.budgets import ZONE
from tests.simulation.loop import START, THE_END, Process, VirtualLoop
from tests.simulation.rest_door import RestDoor
from tests.simulation.store import Disk, SimGroupWriter, SimStore, StoreWatch
from tests.simulation.trace import Trace
from tests.simulation.wire import Server

SETTINGS = Settings(
    _env_file=None,
    sites=("sandbox",),
    lease_ttl_seconds=40,
    lease_ack_seconds=12,
    lease_max_wait_seconds=20,
    permit_ttl_seconds=10,
    permit_settle_seconds=90,
    budget_timezone=ZONE,
    max_intent_bytes=64 * 1024,
    worker_offline_alert_seconds=60,
    task_unclaimed_alert_seconds=120,
    sweep_interval_seconds=5,
    query_lease_ttl_seconds=40,
    query_ttl_seconds=300,
    query_retention_seconds=86_400,
    query_result_max_bytes=64 * 1024,
    catalog_interval_seconds=3_600,
    catalog_details_per_round=5,
    api_token=(
        SecretStr("secret"),
        SecretStr("approver=secret-of-the-approver"),
        SecretStr("colleague=secret-of-the-colleague"),
    ),
)
"""The real settings at about a tenth of their times, in the same order of size."""

POLICY = SETTINGS.policy()
SWEEPS = ("expire", "wake", "alerts")
"""Those that run here, in the order in which they start; the others have no part in what the auditor judges."""

FIRST_MOMENT = datetime(2026, 7, 27, 8, 59, 15, tzinfo=UTC)
"""Of a run: a Monday begins in the time zone of the budgets three quarters of a minute later."""
BEGINNING = FIRST_MOMENT - timedelta(seconds=START)
"""What wall clocks showed when the virtual clock stood at 0."""
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
        settings: Settings = SETTINGS,
        sweeps: Sequence[str] = SWEEPS,
    ) -> None:
        self._sweeps = sweeps
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
        self._settings = settings
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
        gateway = self._build(store, clock, notifier)
        try:
            await gateway.resume()
        except Exception as error:  # noqa: BLE001 -- a gateway that cannot start ends
            self._trace("gateway", f"cannot start: {error}")
            process.last_point = "a start that failed"
            process.power_off()
            return
        for work in (gateway.dispatcher.run(), *map(run_sweep, sweeps_of(gateway, self._sweeps))):
            process.spawn(work)
        self.server.handlers = handlers_of(gateway, self._handle(gateway))
        self.rest = RestDoor(process, store, gateway.dispatcher)
        self._trace("gateway", "is up")

    def _build(self, store: Store, clock: ServiceClock, notifier: Notifier) -> Gateway:
        settings = self._settings.model_copy(update={"gateway_db_path": self.path, "backup_dir": self._backups})
        return build_gateway(store, clock, settings, notifier, ids=Ids(self._token, self._token, self._token))

    def _handle(self, gateway: Gateway) -> GrpcHandlers:
        return GrpcHandlers(gateway.admission)

    def _token(self) -> str:
        self._tokens += 1
        return f"token-{self._tokens:037d}"


def handlers_of(gateway: Gateway, handlers: GrpcHandlers) -> dict[str, Any]:
    """The gateway's methods by their paths."""
    return {
        method.path: handlers.handler(method)
        for descriptor, service in gateway.services.offered()
        for method in methods_of(service, descriptor)
    }


def sweeps_of(gateway: Gateway, names: Sequence[str]) -> list[Sweep]:
    """Those of its sweeps, in this order, as often as it takes here."""
    by_name: dict[str, Any] = {sweep.name: sweep for sweep in gateway.sweeps}
    by_name["wake"].interval = SWEEP_SECONDS
    by_name["alerts"].interval = SWEEP_SECONDS * 4
    return [by_name[name] for name in names]
