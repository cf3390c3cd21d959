"""The machine of one gateway among several: its clocks, and the process on it, wired as gateway.main does."""

import random
from typing import Any

from gateway.api.grpc.handlers import GrpcHandlers
from gateway.composition import Gateway, Ids, build_gateway
from gateway.database import OpenDatabase, share
from gateway.settings import Settings
from gateway.store.postgres import engine
from gateway.store.postgres.engine import Database
from gateway.store.postgres.service_clock import Machine, load_shared_clock
from gateway.sweeps.sweep import run_sweep
from tests.simulation.gateway_machine import OrderedNotifier, handlers_of, sweeps_of
from tests.simulation.gateways.auditor import GatewaysAuditor
from tests.simulation.gateways.server import SimAddress, SimServer
from tests.simulation.gateways.store import SimPostgresStore
from tests.simulation.gateways.threads import Threads
from tests.simulation.loop import THE_END, Process, VirtualLoop
from tests.simulation.trace import Trace
from tests.simulation.wire import Server

SWEEPS = ("expire", "wake", "alerts", "gateways")
"""Those that run here."""
MOST_OFFSET = 7_200.0
"""Seconds by which the boot clocks of two machines may differ."""


class SharedGatewayMachine:
    """Starts a gateway, freezes it, loses its power, starts it again."""

    def __init__(
        self,
        loop: VirtualLoop,
        name: str,
        server: SimServer,
        chance: random.Random,
        trace: Trace,
        settings: Settings,
        watch: GatewaysAuditor,
    ) -> None:
        self.loop = loop
        self.name = name
        self.server = Server()
        self.disk = server.disk
        self.database = server
        self.process: Process | None = None
        self.gateway: Gateway | None = None
        self.wall_offset = 0.0
        self.drift = chance.uniform(-1e-4, 1e-4)
        self.boots = 1
        self._booted_at = loop.time() - chance.uniform(10.0, MOST_OFFSET)
        self._trace = trace
        self._settings = settings
        self._watch = watch
        self._lives = 0
        self._tokens = 0

    @property
    def is_up(self) -> bool:
        return self.process is not None and self.process.alive

    @property
    def serves(self) -> bool:
        """True if it runs and has come up."""
        return self.server.is_up and self.process is not None and self.process.runs

    def boot_us(self) -> int:
        """The machine's own clock, which counts from its boot, a little too fast or too slow."""
        return round((self.loop.time() - self._booted_at) * 1e6 * (1 + self.drift))

    def start(self, fuse: int | None = None) -> None:
        """Starts the process; its power fails after that many points."""
        self._lives += 1
        self.process = process = Process(self.loop, self.name, fuse)
        process.on_death.append(self._on_death)
        self.server.process, self.server.handlers = process, {}
        self._trace(self.name, f"starts (fuse {fuse})")
        process.spawn(self._run(process))

    def power_off(self) -> None:
        if self.process is not None:
            self.process.power_off()

    def reboot(self) -> None:
        """The machine's own clock starts anew."""
        self.power_off()
        self.boots += 1
        self._booted_at = self.loop.time() - 1.0
        self._trace(self.name, "its machine is rebooted")

    def freeze(self, seconds: float) -> None:
        """SIGSTOP: it goes on later as if nothing had been."""
        process = self.process
        if process is not None and process.runs:
            self._trace(self.name, f"freezes for {seconds:.1f} s")
            self._trace.count("gateways frozen")
            if self._watch.leader == self.name:
                self._trace.count("leaders frozen")
            process.freeze()
            self.database.stands_still(process)
            self.database.later(seconds, process.thaw)

    def _on_death(self) -> None:
        assert self.process is not None
        self._trace(self.name, f"loses power at {self.process.last_point}")
        if self.process.last_point != THE_END:
            self._trace.count("gateway crashes")
        self.server.handlers = {}
        self.gateway = None
        self.database.is_gone(self.process)

    async def _run(self, process: Process) -> None:
        await process.point("gateway: start")
        try:
            gateway, shared = await self._open(process)
        except Exception as error:  # noqa: BLE001 -- a gateway that cannot start ends
            self._trace(self.name, f"cannot start: {error}")
            process.last_point = "a start that failed"
            process.power_off()
            return
        sweeps = map(run_sweep, sweeps_of(gateway, SWEEPS))
        for work in (gateway.dispatcher.run(), *sweeps, *(work() for work in shared.work)):
            process.spawn(work)
        self.server.handlers = handlers_of(gateway, GrpcHandlers(gateway.admission))
        self.gateway = gateway
        self._trace(self.name, "is up")

    async def _open(self, process: Process) -> tuple[Gateway, OpenDatabase]:
        gateway_id = f"{self.name}.{self._lives}"
        address: Any = SimAddress(self.database, process, gateway_id)
        machine = Machine(f"{self.name}, boot {self.boots}", self.boot_us)

        def load() -> Database:
            session = address.open_session("start")
            try:
                clock = load_shared_clock(session, machine, engine._waiting(engine.WAIT_FOR_OTHERS_SECONDS))
            finally:
                session.close()
            return Database(address, gateway_id, clock)

        database: Database = await Threads(process).run(load)
        if not database.clock.continues:
            self._watch.nobody_vouched()
        notifier = OrderedNotifier()

        def end(error: BaseException) -> None:
            self._trace(self.name, f"its store has stopped: {error}")
            self._trace.count("stores stopped")
            process.last_point = "the store has stopped"
            process.power_off()

        store = SimPostgresStore(database, notifier.publish, end, process, self.database, self._watch)
        settings = self._settings.model_copy(update={"gateway_name": self.name})
        shared = share(settings, notifier, database, store)
        ids = Ids(self._token, self._token, self._token)
        gateway = build_gateway(store, database.clock, settings, notifier, ids=ids, sharing=shared.sharing)
        await shared.join()
        await gateway.resume()
        return gateway, shared

    def _token(self) -> str:
        self._tokens += 1
        return f"{self.name}-token-{self._tokens:027d}"
