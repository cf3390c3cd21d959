"""What goes wrong, and when. Each run has a temper of its own: which faults it knows, and how often they strike."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.simulation.auditor import Auditor
from tests.simulation.gateway_machine import GatewayMachine
from tests.simulation.network import CALM, Link, Weather
from tests.simulation.people import Person
from tests.simulation.trace import Trace
from tests.simulation.worker_machine import WorkerMachine
from worker.checkpoints import CheckpointName
from worker.sandbox_shop.orders import Stage
from worker.sandbox_shop.shop import Shop

HOUR = 3600.0
CHECKPOINTS = list(CheckpointName)
_C = CheckpointName


@dataclass(frozen=True, slots=True)
class Theme:
    """A run that looks hard at one kind of trouble. `freezes`: for how long at a checkpoint; (0, 0): it loses power.
    `again`: not only the first time.
    """

    name: str
    checkpoints: tuple[CheckpointName, ...] = tuple(CheckpointName)
    freezes: tuple[float, float] = (0.0, 0.0)
    gateway: Weather = CALM
    shop: Weather = CALM
    slow_disk: float = 0.0
    person_gap: float = 8.0
    gap: float = 10.0
    strikes: tuple[str, ...] = ()
    workers: int = 1
    tasks: int = 2
    cut: float = 0.0
    again: bool = False
    shop_after_click: Weather | None = None


_BEFORE_THE_CLICK = (_C.ACKNOWLEDGED, _C.CART_ADDED, _C.CART_CHECKED, _C.CONFIRMED)
_AT_THE_CLICK = (_C.CONFIRMED, _C.PERMITTED, _C.PERMITTED, _C.CLICK_RECORDED)
_SLOW_ANSWERS = Weather(slow=0.7, longest=9.0)

THEMES = (
    Theme(
        "a late click",
        (_C.PERMITTED, _C.CLICK_RECORDED),
        (4.0, 12.0),
        gateway=Weather(slow=0.9, longest=4.5),
        tasks=4,
        shop_after_click=Weather(slow=0.9, longest=9.0),
    ),
    Theme("a pause of a lease's length", (*_BEFORE_THE_CLICK, _C.PERMITTED), (33.0, 50.0), gateway=_SLOW_ANSWERS),
    Theme("frozen, then out of reach", _BEFORE_THE_CLICK, (26.0, 46.0), gateway=_SLOW_ANSWERS, cut=40.0),
    Theme("the first worker comes back", (*_BEFORE_THE_CLICK, _C.PERMITTED), (45.0, 90.0), person_gap=5.0, workers=2),
    Theme("a clock that is set", _BEFORE_THE_CLICK, (33.0, 60.0), strikes=("set_back",), gap=4.0, cut=40.0),
    Theme("power lost at the click", _AT_THE_CLICK, person_gap=6.0, strikes=("crash_worker",), gap=25.0),
    Theme("another journal", _AT_THE_CLICK, person_gap=6.0, workers=2, gap=25.0),
    Theme("a bad shop", shop=Weather(slow=0.2, lost_request=0.02, lost_answer=0.1, longest=12.0)),
    Theme(
        "no answer to the click",
        shop_after_click=Weather(lost_request=0.2, lost_answer=0.6),
        checkpoints=_AT_THE_CLICK,
        person_gap=6.0,
        gap=25.0,
    ),
    Theme("reports overtake each other", gateway=Weather(slow=0.4, duplicate=0.6, longest=6.0), tasks=4, gap=25.0),
    Theme("a busy account", shop=Weather(slow=0.8, longest=3.0), strikes=("fill_cart",), gap=3.0),
    Theme(
        "a full disk",
        _BEFORE_THE_CLICK,
        gateway=Weather(slow=0.6, longest=3.0),
        strikes=("fill_disk_briefly",),
        gap=1.5,
        person_gap=5.0,
        tasks=3,
    ),
    Theme("a pause", (_C.CONFIRMED,), (0.5, 4.0), strikes=("pause",), gap=3.0, person_gap=1_000.0, tasks=4),
    Theme("a lease in no hand", (_C.LEASED,), (4.0, 15.0), person_gap=15.0, gap=25.0, workers=2, tasks=4),
    Theme(
        "broken streams",
        (_C.ACKNOWLEDGED,),
        (2.0, 9.0),
        gateway=Weather(slow=0.2, lost_answer=0.05, duplicate=0.1, reset=0.6, longest=2.0),
        slow_disk=0.4,
        strikes=("cut_briefly",),
        gap=4.0,
        tasks=4,
        again=True,
    ),
)  # fmt: skip


class Faults:
    """Strikes until it is told to stop; then everything is well again."""

    def __init__(
        self,
        chance: random.Random,
        gateway: GatewayMachine,
        workers: list[WorkerMachine],
        links: list[Link],
        person: Person,
        shop: Shop,
        trace: Trace,
        theme: Theme | None,
        auditor: Auditor,
    ) -> None:
        self._auditor = auditor
        self._chance = chance
        self._gateway = gateway
        self._workers = workers
        self._links = links
        self._person = person
        self._shop = shop
        self._trace = trace
        self._errands: set[asyncio.Task[Any]] = set()
        every = (
            self._weather, self._weather, self._cut, self._crash_gateway, self._crash_worker, self._crash_worker,
            self._freeze, self._slow_disk, self._full_disk, self._failing_commit, self._step_clock, self._stop_worker,
            self._fill_cart, self._change_price, self._advance_order, self._pause, self._reboot_gateway,
        )  # fmt: skip
        self.theme = theme
        rate = chance.choice((0.1, 0.3, 0.7)) if theme is None else 0.05
        self.known: list[Callable[[], None]] = [fault for fault in every if chance.random() < rate]
        self._gap = chance.choice((4.0, 10.0, 25.0))
        self._fuse_chance = chance.choice((0.0, 0.2, 0.5)) if theme is None else 0.02
        self._checkpoint_chance = chance.choice((0.1, 0.5, 0.9)) if theme is None else 0.8
        self._person_gap = chance.choice((8.0, 15.0, 1_000.0)) if theme is None else theme.person_gap
        if theme is not None:
            self._set(theme)

    def _set(self, theme: Theme) -> None:
        self._trace("world", f"theme: {theme.name}")
        for link in self._links:
            weather = theme.shop if link.name.endswith("shop") else theme.gateway
            if link.name.startswith("worker"):
                link.weather = weather
        self._gateway.disk.slow = theme.slow_disk
        self._gateway.disk.late_errands = theme.slow_disk > 0
        for worker in self._workers:
            worker.cut_there, worker.shop_after_click = theme.cut, theme.shop_after_click
            worker.freezes_again = theme.again
        self._gap = theme.gap
        self.known += [getattr(self, f"_{name}") for name in theme.strikes for _ in range(3)]

    def fuse(self, longest: int) -> int | None:
        """After how many points the next incarnation loses its power."""
        if self._chance.random() >= self._fuse_chance:
            return None
        return self._chance.randint(1, self._chance.choice((longest // 10, longest)))

    def start_worker(self, worker: WorkerMachine) -> None:
        strikes = self._chance.random() < self._checkpoint_chance
        if self.theme is None:
            checkpoint = self._chance.choice(CHECKPOINTS) if strikes else None
            freezes = self._chance.choice((0.0, 0.0, 12.0, 50.0, 200.0)) * self._chance.random()
        else:
            checkpoint = self._chance.choice(self.theme.checkpoints) if strikes else None
            freezes = self._chance.uniform(*self.theme.freezes)
        worker.start(self.fuse(400), checkpoint, freezes)

    async def run(self, seconds: float) -> None:
        """Strikes for that long; starts again what has lost its power, after a while."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        self._send(self._decide())
        while loop.time() < end:
            await asyncio.sleep(self._chance.uniform(0.2, self._gap))
            if not self._gateway.is_up and self._chance.random() < 0.4:
                self._gateway.start(self.fuse(3_000))
            for worker in self._workers:
                if not worker.is_up and self._chance.random() < 0.3:
                    self.start_worker(worker)
            if self.known:
                self._chance.choice(self.known)()

    async def _decide(self) -> None:
        """The person looks in now and then."""
        while True:
            await asyncio.sleep(self._chance.uniform(0.3, 1.0) * self._person_gap)
            await self._person.meddle()

    def heal(self) -> None:
        """The faults are over; what is down comes up."""
        self._trace("world", "everything heals")
        for errand in self._errands:
            errand.cancel()
        for link in self._links:
            link.weather, link.cut_until = CALM, 0.0
        for machine in (self._gateway, *self._workers):
            machine.disk.full, machine.disk.slow, machine.disk.fail_commit = False, 0.0, 0.0
        for worker in self._workers:
            worker.fatal_checkpoint = worker.shop_after_click = None
            if worker.process is not None and worker.process.frozen:
                worker.process.thaw()
        for machine in (self._gateway, *self._workers):
            if machine.process is not None:
                machine.process.fuse = None
        self.keep_up()

    def keep_up(self) -> None:
        """Starts whatever is down."""
        for machine in (self._gateway, *self._workers):
            if not machine.is_up:
                machine.start()

    def _worker(self) -> WorkerMachine:
        return self._chance.choice(self._workers)

    def _weather(self) -> None:
        link = self._chance.choice(self._links)
        bad = self._chance.choice((0.02, 0.1, 0.3))
        draw = self._chance.random
        link.weather = Weather(
            slow=draw() * bad, lost_request=draw() * bad, lost_answer=draw() * bad, duplicate=draw() * bad,
            longest=self._chance.choice((1.0, 5.0, 12.0)),
        )  # fmt: skip
        if self._chance.random() < 0.2:
            link.weather = CALM
        self._trace("network", f"{link.name}: {link.weather}")

    def _cut(self) -> None:
        link = self._chance.choice(self._links)
        seconds = self._chance.choice((3.0, 20.0, 90.0)) * self._chance.random()
        link.cut_until = link.loop.time() + seconds
        self._trace("network", f"{link.name}: cut for {seconds:.1f} s")
        self._trace.count("cuts")

    def _cut_briefly(self) -> None:
        link = self._chance.choice([link for link in self._links if link.name.startswith("worker")])
        link.cut_until = link.loop.time() + self._chance.uniform(0.05, 2.0)
        self._trace.count("cuts")

    def _crash_gateway(self) -> None:
        if self._gateway.process is not None:
            self._gateway.process.fuse = self._chance.randint(1, 12)

    def _reboot_gateway(self) -> None:
        self._gateway.reboot()
        self._auditor.gateway_rebooted_at = self._links[0].loop.time()

    def _crash_worker(self) -> None:
        worker = self._worker()
        if worker.process is not None:
            worker.process.fuse = self._chance.randint(1, 40)

    def _freeze(self) -> None:
        self._worker().freeze(self._chance.choice((5.0, 30.0, 60.0, 150.0)) * self._chance.random())

    def _set_back(self) -> None:
        worker = self._worker()
        worker.wall_offset -= self._chance.choice((20.0, 60.0, HOUR))
        self._trace("world", f"the wall clock of {worker.name} is set to {worker.wall_offset}")

    def _stop_worker(self) -> None:
        self._worker().stop()

    def _machine(self) -> Any:
        return self._chance.choice([self._gateway, *self._workers])

    def _slow_disk(self) -> None:
        self._machine().disk.slow = self._chance.choice((0.0, 0.1, 0.4))

    def _full_disk(self) -> None:
        machine = self._machine()
        machine.disk.full = not machine.disk.full
        self._trace("world", f"the disk of {getattr(machine, 'name', 'gateway')} is full: {machine.disk.full}")
        self._trace.count("full disks")

    def _fill_disk_briefly(self) -> None:
        disk = self._worker().disk
        disk.full = True
        self._trace.count("full disks")
        self._links[0].later(self._chance.uniform(0.02, 2.0), lambda: setattr(disk, "full", False))

    def _failing_commit(self) -> None:
        self._gateway.disk.fail_commit = self._chance.choice((0.0, 0.004))

    def _step_clock(self) -> None:
        machine = self._machine()
        step = self._chance.choice((-HOUR, -60.0, -5.0, 5.0, 60.0, HOUR))
        machine.wall_offset += step
        if machine is self._gateway:
            self._auditor.gateway_set_back -= min(0.0, step)
        self._trace("world", f"the wall clock of {getattr(machine, 'name', 'gateway')} is set by {machine.wall_offset}")

    def _pause(self) -> None:
        self._send(self._person.pause(self._chance.uniform(5, 60)))

    def _fill_cart(self) -> None:
        """Somebody uses the account on a phone."""
        self._shop.add_to_cart("buyer@sandbox.example", "sencha-100g", None, (), 1)
        self._trace("shop", "somebody put something into the cart")

    def _change_price(self) -> None:
        product = self._shop.products[self._chance.choice(("sencha-100g", "tshirt-basic"))]
        product.price_yen = self._chance.choice((product.price_yen, product.price_yen * 3, 1_080, 1_980))

    def _advance_order(self) -> None:
        for order in self._shop.orders.values():
            if order.stage not in (Stage.DELIVERED, Stage.CANCELLED) and self._chance.random() < 0.3:
                self._shop.advance(order)

    def _send(self, errand: Any) -> None:
        task = asyncio.ensure_future(errand)
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)
