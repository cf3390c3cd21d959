"""Everything that can go wrong, each by its name: at a failpoint of a worker, or at any time."""

import asyncio
import random
from collections.abc import Sequence
from contextvars import Context
from typing import Any

from sandbox_shop.orders import Stage
from tests.simulation.auditor import Auditor
from tests.simulation.books import Books
from tests.simulation.network import CALM, Link, Weather
from tests.simulation.people import Person, Upstream
from tests.simulation.shop import ACCOUNT, SimShop
from tests.simulation.themes import Blow
from tests.simulation.trace import Trace
from tests.simulation.worker_machine import WorkerMachine

HOUR = 3600.0
BACKUP = "before.db"


class Strikes:
    """Everything that can go wrong, each by its name; `worker` None: any."""

    def __init__(
        self,
        chance: random.Random,
        gateways: Sequence[Any],
        workers: list[WorkerMachine],
        links: list[Link],
        person: Person,
        upstream: Upstream,
        shops: Sequence[SimShop],
        books: Books,
        auditor: Auditor,
    ) -> None:
        self._chance = chance
        self._gateways = gateways
        self._workers = workers
        self._links = links
        self._person = person
        self._upstream = upstream
        self._shops = shops
        self._books = books
        self._auditor = auditor
        self._trace: Trace = books.trace
        self._background_tasks: set[asyncio.Task[Any]] = set()
        self.can_restore = True
        self._is_to_file_again = False

    # At a failpoint of a worker

    def at_crash(self, worker: WorkerMachine, blow: Blow) -> None:
        del blow
        if worker.process is not None:
            worker.process.fuse = 1

    def at_freeze(self, worker: WorkerMachine, blow: Blow) -> None:
        worker.freeze(self._chance.uniform(*blow.seconds))

    def at_cut(self, worker: WorkerMachine, blow: Blow) -> None:
        worker.gateway_link.cut_until = worker.loop.time() + self._chance.uniform(*blow.seconds)
        self._trace.count("cuts")

    def at_freeze_and_cut(self, worker: WorkerMachine, blow: Blow) -> None:
        """When it goes on, it cannot ask how its lease stands."""
        seconds = self._chance.uniform(*blow.seconds)
        worker.gateway_link.cut_until = worker.loop.time() + seconds + 15.0
        worker.freeze(seconds)

    def at_stop(self, worker: WorkerMachine, blow: Blow) -> None:
        worker.shop_link.later(self._chance.uniform(*blow.seconds), worker.stop)

    def at_fill_disk(self, worker: WorkerMachine, blow: Blow) -> None:
        self._fill_briefly(worker, self._chance.uniform(*blow.seconds))

    def at_fill_cart(self, worker: WorkerMachine, blow: Blow) -> None:
        del worker, blow
        self.fill_cart()

    def at_raise_price(self, worker: WorkerMachine, blow: Blow) -> None:
        del worker, blow
        self.change_price()

    def at_set_back(self, worker: WorkerMachine, blow: Blow) -> None:
        del blow
        worker.wall_offset -= self._chance.choice((20.0, 60.0, HOUR))

    def at_pause(self, worker: WorkerMachine, blow: Blow) -> None:
        del worker
        self._send(self._person.pause(self._chance.uniform(*blow.seconds)))

    def at_expire(self, worker: WorkerMachine, blow: Blow) -> None:
        del blow
        # A worker that has just come up has told of none yet.
        if worker.current_task:
            self._send(self._person.expire_and_reclaim(worker.current_task))

    def at_crowd(self, worker: WorkerMachine, blow: Blow) -> None:
        """Others use the account just now: what comes next stands on the list's second page soon."""
        del blow
        shop = self._books.shop_of(worker.current_task)
        worker.shop_link.later(self._chance.uniform(0.5, 5.0), lambda: shop.order_from_elsewhere(6))

    def at_alike_elsewhere(self, worker: WorkerMachine, blow: Blow) -> None:
        """Somebody orders the very same, twice."""
        del blow
        task_id = worker.current_task
        self._books.shop_of(task_id).order_the_same(self._books.intents[task_id])

    def at_trouble(self, worker: WorkerMachine, blow: Blow) -> None:
        """One step on the site, or at the gateway, meets worse weather than the others, until the next order."""
        link = worker.gateway_link if blow.step[0].isupper() else worker.shop_link
        link.weather_of[blow.step] = blow.weather

    def at_fail_commits(self, worker: WorkerMachine, blow: Blow) -> None:
        """Until the next lease is in hand the journal's commits often fail, on disk or not."""
        del blow
        worker.disk.fail_commit = 0.5

    def at_back_up(self, worker: WorkerMachine, blow: Blow) -> None:
        del worker, blow
        self.back_up()

    def at_restore(self, worker: WorkerMachine, blow: Blow) -> None:
        del worker, blow
        self.restore()

    def at_restore_and_crash(self, worker: WorkerMachine, blow: Blow) -> None:
        if self.can_restore:
            self.restore()
            self.at_crash(worker, blow)

    # At any time

    def weather(self) -> None:
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

    def cut(self) -> None:
        link = self._chance.choice(self._links)
        seconds = self._chance.choice((3.0, 20.0, 90.0)) * self._chance.random()
        link.cut_until = link.loop.time() + seconds
        self._trace("network", f"{link.name}: cut for {seconds:.1f} s")
        self._trace.count("cuts")

    def cut_briefly(self) -> None:
        link = self._chance.choice([link for link in self._links if link.name.startswith("worker")])
        link.cut_until = link.loop.time() + self._chance.uniform(0.05, 2.0)
        self._trace.count("cuts")

    def crash_gateway(self) -> None:
        gateway = self._any_gateway()
        if gateway.process is not None:
            gateway.process.fuse = self._chance.randint(1, 12)

    def reboot_gateway(self) -> None:
        self._any_gateway().reboot()
        self._books.gateway_rebooted_at = self._books.now()

    def crash_worker(self) -> None:
        worker = self._chance.choice(self._workers)
        if worker.process is not None:
            worker.process.fuse = self._chance.randint(1, 40)

    def freeze(self) -> None:
        self._chance.choice(self._workers).freeze(self._chance.choice((5.0, 30.0, 60.0, 150.0)) * self._chance.random())

    def set_back(self) -> None:
        worker = self._chance.choice(self._workers)
        worker.wall_offset -= self._chance.choice((20.0, 60.0, HOUR))
        self._trace("world", f"the wall clock of {worker.name} is set to {worker.wall_offset}")

    def stop_worker(self) -> None:
        self._chance.choice(self._workers).stop()

    def _machine(self) -> Any:
        return self._chance.choice([*self._gateways, *self._workers])

    def slow_disk(self) -> None:
        self._machine().disk.slow = self._chance.choice((0.0, 0.1, 0.4))

    def full_disk(self) -> None:
        machine = self._machine()
        if machine.disk.full:
            machine.disk.full = False
        else:
            machine.disk.fill()
        self._trace("world", f"the disk of {getattr(machine, 'name', 'gateway')} is full: {machine.disk.full}")

    def fill_disk_briefly(self) -> None:
        self._fill_briefly(self._chance.choice(self._workers), self._chance.uniform(0.02, 2.0))

    def _fill_briefly(self, worker: WorkerMachine, seconds: float) -> None:
        worker.disk.fill()
        worker.shop_link.later(seconds, lambda: setattr(worker.disk, "full", False))

    def failing_commit(self) -> None:
        self._machine().disk.fail_commit = self._chance.choice((0.0, 0.01))

    def step_clock(self) -> None:
        machine = self._machine()
        step = self._chance.choice((-HOUR, -60.0, -5.0, 5.0, 60.0, HOUR))
        machine.wall_offset += step
        if machine in self._gateways:
            self._books.gateway_set_back -= min(0.0, step)
        self._trace("world", f"the wall clock of {getattr(machine, 'name', 'gateway')} is set by {machine.wall_offset}")

    def pause(self) -> None:
        self._send(self._person.pause(self._chance.uniform(5, 60)))

    def _any_gateway(self) -> Any:
        return self._gateways[0] if len(self._gateways) == 1 else self._chance.choice(self._gateways)

    def _any_shop(self) -> SimShop:
        return self._shops[0] if len(self._shops) == 1 else self._chance.choice(self._shops)

    def fill_cart(self) -> None:
        """Somebody uses the account on a phone."""
        self._any_shop().add_to_cart(ACCOUNT, "sencha-100g", None, (), 1)
        self._trace("shop", "somebody put something into the cart")

    def change_price(self) -> None:
        product = self._any_shop().products[self._chance.choice(("sencha-100g", "tshirt-basic"))]
        dear = max(product.price_yen, 1_080) * 3 if product.price_yen < 10_000 else product.price_yen
        product.price_yen = self._chance.choice((product.price_yen, dear, dear, 1_080, 1_980))

    def advance_order(self) -> None:
        shop = self._any_shop()
        for order in shop.orders.values():
            if order.stage not in (Stage.DELIVERED, Stage.CANCELLED) and self._chance.random() < 0.3:
                shop.advance(order)

    def back_up(self) -> None:
        """The gateway's database is backed up, as far as it is committed."""
        if self.can_restore and self._auditor.backup is None:
            self._any_gateway().back_up(BACKUP)
            self._auditor.back_up()

    def restore(self) -> None:
        """The gateway is put back to its backup, once; the upstream files again, the person lets it go on."""
        if self.can_restore and self._auditor.backup is not None:
            self.can_restore = False
            self._is_to_file_again = True
            self._any_gateway().restore(BACKUP)
            self._send(self._after_restore())

    async def _after_restore(self) -> None:
        await asyncio.sleep(self._chance.uniform(0.1, 0.5))
        gateway = self._any_gateway()
        if not gateway.is_up:
            gateway.start()
        await asyncio.sleep(self._chance.uniform(0.1, 0.3))
        self._file_again()
        await self._person.resume()

    def _send(self, work: Any) -> None:
        # On nobody's account, whichever worker's step it was that brought it about.
        task = asyncio.get_running_loop().create_task(work, context=Context())
        self._background_tasks.add(task)
        task.add_done_callback(self._background_tasks.discard)

    def call_off(self) -> None:
        """What is under way is given up, but what a restored gateway has forgotten is filed again all the same."""
        for work in self._background_tasks:
            work.cancel()
        if self._is_to_file_again:
            self._file_again()

    def _file_again(self) -> None:
        self._is_to_file_again = False
        self._upstream.file_all_again()
