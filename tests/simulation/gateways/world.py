"""A world of several gateways on one database."""

import asyncio
import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import gateway.store.postgres.attempts
import gateway.store.postgres.engine
import gateway.store.postgres.gateways
import gateway.store.postgres.readers
from gateway.settings import Settings
from tests.simulation.books import TICK
from tests.simulation.gateways.auditor import CLOCK_TOLERANCE, GatewaysAuditor, WaitAuditor
from tests.simulation.gateways.balancer import Balancer
from tests.simulation.gateways.machine import SharedGatewayMachine
from tests.simulation.gateways.server import SimServer
from tests.simulation.gateways.sql import shared_migrated
from tests.simulation.gateways.store import SimPostgresWriter
from tests.simulation.gateways.strikes import ANYTIME, SharedStrikes
from tests.simulation.gateways.themes import shared_theme_of
from tests.simulation.gateways.threads import VirtualTime
from tests.simulation.layout import Layout, with_gateways
from tests.simulation.loop import VirtualLoop
from tests.simulation.strikes import Strikes
from tests.simulation.themes import Theme
from tests.simulation.wire import Server
from tests.simulation.world import Result, SimulatedWorld

LEASE_WAIT = 18.0
"""Seconds that a worker waits in one stream: longer than the poll behind a lost hint takes."""


class SharedWorld(SimulatedWorld):
    """Of one run."""

    anytime = ANYTIME

    def run(self) -> Result:
        with _virtual_time(self.loop, self._chance("threads")):
            return super().run()

    def _theme(self) -> Theme | None:
        self.shared = shared_theme_of(self.seed)
        return None if self.shared is None else self.shared.theme

    def _layout(self) -> Layout:
        return with_gateways(self.seed, self._chance("layout"))

    def _template(self) -> Path:
        return shared_migrated()

    def _make_gateways(self, settings: Settings) -> Sequence[Any]:
        self.books.tolerance = TICK + CLOCK_TOLERANCE
        watch = self.watch = GatewaysAuditor(self.books, self.auditor)
        self.database = SimServer(self.loop, self.folder / "gateway.db", self._chance("database"), self.trace, watch)
        chance, shared = self._chance("database's faults"), self.shared
        if shared is not None:
            self.database.slow, self.database.lose_notes = shared.slow, shared.lose_notes
        self.unknown = shared.unknown if shared is not None else chance.choice((0.0, 0.0, 0.01))
        self._moves = shared.moves if shared is not None else chance.choice((0.02, 0.2, 0.6))
        machines = [
            SharedGatewayMachine(self.loop, name, self.database, self._chance(name), self.trace, settings, watch)
            for name in (f"gateway-{number}" for number in range(1, self.layout.gateways + 1))
        ]
        watch.thawed_at = lambda name: max(
            machine.process.thawed_at if machine.process is not None else -1.0
            for machine in machines
            if machine.name == name
        )
        return machines

    def _make_strikes(self, *about: Any) -> Strikes:
        strikes = SharedStrikes(*about)
        strikes.database, strikes.can_restore = self.database, False
        strikes.leader = lambda: self.watch.leader
        return strikes

    def _door(self, name: str) -> Server:
        servers = [machine.server for machine in self.gateways]
        return Balancer(servers, self._chance(f"{name}'s balancer"), self._moves)

    async def _live(self) -> None:
        self.database.disk.fail_commit = self.unknown
        waits = self.waits = WaitAuditor(
            self.books,
            self.read,
            self.workers,
            {id(machine.server): machine for machine in self.gateways},
            self._is_well,
        )
        for worker in self.workers:
            worker.lease_waits = (LEASE_WAIT,)
            worker.lease_sent = partial(waits.lease_sent, worker)
        looking = asyncio.ensure_future(self._look())
        try:
            await super()._live()
        finally:
            looking.cancel()

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            self.waits.look()

    def _is_well(self, machine: SharedGatewayMachine) -> bool:
        return machine.serves and self.database.is_well_for(machine.name)

    def _heal(self) -> None:
        self.database.heal()
        super()._heal()


@contextmanager
def _virtual_time(loop: VirtualLoop, chance: random.Random) -> Iterator[None]:
    """The PostgreSQL store's threads wait in virtual time."""
    time = VirtualTime(loop)
    store = gateway.store.postgres
    with ExitStack() as stack:
        for module in (store.attempts, store.engine, store.readers, store.gateways):
            stack.enter_context(patch.object(module, "time", time))
        stack.enter_context(patch.object(store.attempts, "random", chance))
        stack.enter_context(patch.object(store.engine, "PostgresWriter", SimPostgresWriter))
        yield
