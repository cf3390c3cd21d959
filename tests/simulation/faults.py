"""What goes wrong, and when. Each run has a temper of its own: which faults it knows, and how often they strike."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tests.simulation.network import CALM, Link
from tests.simulation.people import Person
from tests.simulation.strikes import Strikes
from tests.simulation.themes import Blow, Theme
from tests.simulation.trace import Trace
from tests.simulation.worker_machine import WorkerMachine
from worker.failpoints import FailpointName

ANYTIME = (
    "weather", "weather", "cut", "crash_gateway", "crash_worker", "crash_worker", "freeze", "slow_disk", "full_disk",
    "failing_commit", "step_clock", "stop_worker", "fill_cart", "change_price", "advance_order", "pause",
    "reboot_gateway", "back_up", "restore",
)  # fmt: skip
AT_FAILPOINTS = (
    "crash", "crash", "freeze", "freeze", "cut", "stop", "fill_cart", "fill_disk", "raise_price", "expire", "crowd",
)  # fmt: skip


class Faults:
    """Strikes until it is told to stop; then everything is well again."""

    def __init__(
        self,
        chance: random.Random,
        theme: Theme | None,
        strikes: Strikes,
        gateways: Sequence[Any],
        workers: list[WorkerMachine],
        links: list[Link],
        person: Person,
        trace: Trace,
        anytime: Sequence[str] = ANYTIME,
    ) -> None:
        self._chance = chance
        self._theme = theme
        self._strikes = strikes
        self._gateways = gateways
        self._workers = workers
        self._links = links
        self._person = person
        self._trace = trace
        self._begun = links[0].loop.time()
        self._armed: dict[str, list[tuple[int, Blow]]] = {}
        self._struck: Counter[int] = Counter()
        self._looking_in: asyncio.Task[None] | None = None
        rate = chance.choice((0.1, 0.3, 0.7)) if theme is None else 0.03
        names = [name for name in anytime if chance.random() < rate]
        self._gap = chance.choice((4.0, 10.0, 25.0))
        self._strike_chance = 1.0 if theme is None or theme.strikes else 0.2
        self._fuse_chance = chance.choice((0.0, 0.2, 0.5)) if theme is None else 0.02
        self._blow_chance = chance.choice((0.1, 0.5, 0.9))
        self._person_gap = chance.choice((5.0, 8.0, 15.0, 1_000.0)) if theme is None else theme.person_gap
        if theme is not None:
            self._gap = theme.gap
            names += [name for name in theme.strikes for _ in range(3)]
            self._set(theme)
        self._workers_from = 0.0 if theme is None else theme.workers_from
        self._known: list[Callable[[], None]] = [getattr(strikes, name) for name in names]
        for worker in workers:
            worker.at_failpoint = self.strike

    def start_workers(self) -> None:
        """Those that are there from the beginning."""
        if not self._workers_from:
            for worker in self._workers:
                self.start_worker(worker)

    def _set(self, theme: Theme) -> None:
        self._trace("world", f"theme: {theme.name}")
        for link in self._links:
            if link.name.startswith("worker"):
                link.weather = theme.shop if link.name.endswith("shop") else theme.gateway
        for gateway in self._gateways:
            gateway.disk.slow = theme.slow_gateway_disk
            gateway.disk.late_background_tasks = theme.late_background_tasks
        for machine in (*self._gateways, *self._workers):
            machine.disk.fail_commit = theme.failing_commits
        for worker in self._workers:
            worker.disk.slow = theme.slow_worker_disk

    def fuse(self, longest: int) -> int | None:
        """After how many points the next incarnation loses its power."""
        if self._chance.random() >= self._fuse_chance:
            return None
        return self._chance.randint(1, self._chance.choice((longest // 10, longest)))

    def start_worker(self, worker: WorkerMachine) -> None:
        blows: Sequence[Blow] = self._any_blows() if self._theme is None else self._theme.blows
        self._armed[worker.name] = [
            (number, replace(blow, at=(self._chance.choice(blow.at),))) for number, blow in enumerate(blows)
        ]
        worker.start(self.fuse(400))

    def _any_blows(self) -> list[Blow]:
        """For a run without a theme: perhaps one, anywhere."""
        if self._chance.random() >= self._blow_chance:
            return []
        seconds = self._chance.choice((0.0, 12.0, 50.0, 200.0)) * self._chance.random()
        return [Blow(self._chance.choice(AT_FAILPOINTS), tuple(FailpointName), (seconds, seconds))]

    def strike(self, worker: WorkerMachine, name: str) -> None:
        """What this worker meets at this failpoint."""
        armed = self._armed.get(worker.name, [])
        if name == FailpointName.ACKNOWLEDGED:
            worker.shop_link.weather_of.clear()
            worker.gateway_link.weather_of.clear()
        if name == FailpointName.LEASED and self._theme is not None:
            worker.disk.fail_commit = self._theme.failing_commits
        for number, blow in list(armed):
            if name not in blow.at or worker.loop.time() < self._begun + blow.not_before:
                continue
            if self._chance.random() >= blow.chance or self._struck[number] >= blow.times:
                continue
            self._struck[number] += 1
            if not blow.again:
                armed.remove((number, blow))
            getattr(self._strikes, f"at_{blow.what}")(worker, blow)

    async def run(self, seconds: float) -> None:
        """Strikes for that long; starts again what has lost its power, after a while."""
        loop = asyncio.get_running_loop()
        end = self._begun + seconds
        self._looking_in = asyncio.ensure_future(self._decide())
        while loop.time() < end:
            await asyncio.sleep(self._chance.uniform(0.2, self._gap))
            for gateway in self._gateways:
                if not gateway.is_up and self._chance.random() < 0.5:
                    gateway.start(self.fuse(3_000))
            for worker in self._workers:
                if not worker.is_up and loop.time() >= self._begun + self._workers_from and self._chance.random() < 0.5:
                    self.start_worker(worker)
            if self._known and self._chance.random() < self._strike_chance:
                self._chance.choice(self._known)()

    async def _decide(self) -> None:
        """The person looks in now and then."""
        while True:
            await asyncio.sleep(self._chance.uniform(0.3, 1.0) * self._person_gap)
            await self._person.meddle()

    def heal(self) -> None:
        """The faults are over; what is down comes up."""
        self._trace("world", "everything heals")
        self._strikes.call_off()
        if self._looking_in is not None:
            self._looking_in.cancel()
        self._armed.clear()
        for link in self._links:
            link.weather, link.cut_until = CALM, 0.0
            link.weather_of.clear()
        for machine in (*self._gateways, *self._workers):
            machine.disk.full, machine.disk.slow, machine.disk.fail_commit = False, 0.0, 0.0
        for gateway in self._gateways:
            # What waits for a time of day would else wait for as long as its clock was set back.
            gateway.wall_offset = max(gateway.wall_offset, 0.0)
        for machine in (*self._gateways, *self._workers):
            if machine.process is not None and machine.process.frozen:
                machine.process.thaw()
        for machine in (*self._gateways, *self._workers):
            if machine.process is not None:
                machine.process.fuse = None
        self.keep_up()

    def keep_up(self) -> None:
        """Starts whatever is down."""
        for machine in (*self._gateways, *self._workers):
            if not machine.is_up:
                machine.start()
