"""A world: its machines and people, what befalls them, and what is left when everything has healed."""

import asyncio
import random
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from gateway.settings import Settings
from tests.simulation import template
from tests.simulation.account_themes import account_theme_of
from tests.simulation.approvers import AN_ORDER, APPROVALS, make_consent, with_approval
from tests.simulation.auditor import Auditor
from tests.simulation.books import Books
from tests.simulation.budgets import BUDGETS_ALONE, make_budgets
from tests.simulation.condition_themes import condition_theme_of
from tests.simulation.conditions import NONE, make_conditions, payable_yen
from tests.simulation.evidence_auditor import EvidenceAuditor
from tests.simulation.faults import ANYTIME, Faults
from tests.simulation.gateway_machine import BEGINNING, FIRST_MOMENT, SETTINGS, SWEEPS, GatewayMachine
from tests.simulation.journal_lock import Locks
from tests.simulation.layout import NAMES, Layout, Serves, World, alone, with_accounts
from tests.simulation.loop import THE_END, VirtualLoop
from tests.simulation.network import Link
from tests.simulation.people import PRICES, Person, Upstream, make_intent
from tests.simulation.reader import Reader
from tests.simulation.scripts import LateAsker, RestScript
from tests.simulation.shop import SimShop
from tests.simulation.site_auditor import SiteAuditor
from tests.simulation.strikes import Strikes
from tests.simulation.the_end import judge_end
from tests.simulation.themes import Theme, theme_of
from tests.simulation.trace import Trace
from tests.simulation.wire import Channel, Server
from tests.simulation.worker_machine import WorkerMachine

_THEMES = {
    World.ALONE: theme_of,
    World.ACCOUNTS: account_theme_of,
    World.CONDITIONS: condition_theme_of,
}
HEALING_SECONDS = 4_000.0
ROUND_SECONDS = 8.0


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a run. `lines` is its timeline, `seconds` its virtual length."""

    seed: int
    world: World
    digest: str
    seconds: float
    violations: tuple[str, ...]
    counts: Counter[str] = field(repr=False)
    lines: tuple[str, ...] = field(repr=False)


class SimulatedWorld:
    """Of one run. What may go wrong at any time, where a theme does not say it: `anytime`."""

    anytime: Sequence[str] = ANYTIME

    def __init__(self, seed: int, folder: Path, kind: World) -> None:
        self.seed = seed
        self.kind = kind
        self.loop = loop = VirtualLoop()
        self.trace = trace = Trace(loop.time, folder)
        self.books = books = Books(loop.time, trace)
        evidence = self.evidence = EvidenceAuditor(books)
        self.auditor = auditor = Auditor(books, evidence)
        self.site_auditor = SiteAuditor(books)
        self.chance = self._chance("world")
        self.theme = theme = self._theme()
        self.folder = folder
        shutil.copy(self._template(), folder / "gateway.db")
        self.read = Reader(folder / "gateway.db")
        loop.at_the_end.append(self.read.close)
        layout = self.layout = books.layout = self._layout()
        settings = SETTINGS.model_copy(update={"sites": layout.sites, "lease_scope": layout.scope})
        self.gateways = self._make_gateways(settings)
        self.shops = {target: SimShop(loop.time, BEGINNING, number) for number, target in enumerate(layout.targets)}
        books.shops = self.shops
        self.links: list[Link] = []
        self.locks = Locks(hold=theme is None or not theme.shared)
        self.workers = [self._worker(name, serves) for name, serves in zip(NAMES, layout.workers, strict=False)]
        books.workers = self.workers
        books.only_orders = theme is not None and theme.shared
        self.person = Person(self._channel("person"), self._chance("person"), books, next(iter(self.shops.values())))
        self.person.waits = theme is not None and theme.waits
        self.upstream = Upstream(self._channel("upstream"), self._chance("upstream"), books)
        self.strikes = self._make_strikes(
            self._chance("strikes"), self.gateways, self.workers, self.links, self.person, self.upstream,
            [*self.shops.values()], books, auditor,
        )  # fmt: skip
        self.faults = Faults(
            self._chance("faults"), theme, self.strikes, self.gateways, self.workers, self.links, self.person, trace,
            self.anytime,
        )  # fmt: skip

    def _chance(self, name: str) -> random.Random:
        of = f"{self.seed}" if self.kind is World.ALONE else f"{self.kind}/{self.seed}"
        return random.Random(f"{of}/{name}")  # noqa: S311 -- reproducible on purpose

    def _template(self) -> Path:
        return template.migrated()

    def _make_gateways(self, settings: Settings) -> Sequence[Any]:
        sweeps = (*SWEEPS, "release") if self.kind is World.CONDITIONS else SWEEPS
        gateway = GatewayMachine(self.loop, self.folder, self._chance("gateway"), self.trace, settings, sweeps)
        gateway.watch = self.auditor
        return [gateway]

    def _make_strikes(self, *about: Any) -> Strikes:
        strikes = Strikes(*about)
        strikes.can_restore = len(self.layout.workers) == 1 or self.books.only_orders
        return strikes

    def _door(self, _name: str) -> Server:
        """Where a client's calls go."""
        door: Server = self.gateways[0].server
        return door

    def _theme(self) -> Theme | None:
        return _THEMES[self.kind](self.seed)

    def _layout(self) -> Layout:
        if self.kind is World.ACCOUNTS:
            return with_accounts(self.seed, self._chance("layout"))
        return alone(self.chance.choice((1, 2)) if self.theme is None else self.theme.workers)

    def _link(self, name: str) -> Link:
        link = Link(self.loop, self._chance(f"link {name}"), name, self.trace.count)
        self.links.append(link)
        return link

    def _channel(self, name: str) -> Channel:
        return Channel(self._link(f"{name}-gateway"), self._door(name), self._chance(f"channel {name}"))

    def _worker(self, name: str, serves: Serves) -> WorkerMachine:
        links = (self._link(f"{name}-gateway"), self._link(f"{name}-shop"))
        folder = self.folder / ("shared" if self.theme is not None and self.theme.shared else name)
        return WorkerMachine(
            self.loop, folder, name, self._door(name), serves, self.shops, links, self._chance(name), self.trace,
            self.site_auditor, self.locks.take,
        )  # fmt: skip

    def run(self) -> Result:
        try:
            self.loop.run_until_complete(self._live())
        except Exception as error:  # noqa: BLE001 -- a run that breaks off is a finding with a timeline
            self.books.broken(f"the run broke off: {error!r}")
        finally:
            for machine in (*self.gateways, *self.workers):
                if machine.process is not None and machine.process.alive:
                    machine.process.last_point = THE_END
                    machine.power_off()
            faults = list(self.loop.faults)
            self.loop.abandon()
        for fault in faults:
            self.books.broken(f"a fault of the program: {fault}")
        return Result(
            self.seed,
            self.kind,
            self.trace.digest(),
            self.trace.seconds,
            tuple(self.books.violations),
            self.trace.counts,
            tuple(self.trace.lines),
        )

    async def _live(self) -> None:
        theme = self.theme
        self._furnish()
        for gateway in self.gateways:
            gateway.start(self.faults.fuse(3_000))
        self.faults.start_workers()
        length = self.chance.choice((60.0, 100.0, 180.0) if theme is None else (100.0, 150.0))
        tasks = self.chance.choice((1, 2, 3, 4, 5)) if theme is None else theme.tasks
        spread = length * 0.6 if self.chance.random() < 0.5 else 5.0
        if theme is not None:
            length, spread = theme.length or length, theme.spread or spread
        alike = theme.alike if theme is not None else self.chance.random() < 0.4
        dear = theme.dear if theme is not None else self.chance.random() < 0.1
        popular = make_intent(self.chance, dear=dear)
        costs: list[tuple[float, int]] = []
        whose, demands, allowance = self._chance("targets"), self._chance("conditions"), self._chance("budgets")
        budgets_alone = allowance.random() < BUDGETS_ALONE
        consents, likely = self._chance("approvals"), APPROVALS if theme is None else theme.approvals
        may_wait = self.kind is World.CONDITIONS and not budgets_alone and consents.random() < likely
        approving: list[asyncio.Task[None]] = []
        for number in range(1, tasks + 1):
            intent = popular if alike and self.chance.random() < 0.9 else make_intent(self.chance, dear=dear)
            late = theme.late if theme is not None else 0.0
            at = self.chance.uniform(late, spread) if number > 1 else self.chance.uniform(0, 5.0)
            conditions = NONE
            if self.kind is World.CONDITIONS and not budgets_alone:
                conditions = make_conditions(demands, intent, PRICES, FIRST_MOMENT + timedelta(seconds=at))
            if may_wait and consents.random() < AN_ORDER:
                conditions = with_approval(consents, conditions)
                consent = make_consent(consents, conditions, payable_yen(intent, PRICES))
                decides = self.person.approvers.decide(f"t-{number}", consent)
                approving.append(asyncio.ensure_future(decides))
            self.upstream.submit(f"t-{number}", intent, at, whose.choice(self.layout.targets), conditions)
            costs.append((at, payable_yen(intent, PRICES)))
        operator = self._operator(allowance, [yen for _, yen in sorted(costs)], length)
        strange = self._strange_workers()
        await self.faults.run(length)
        for worker_of_others in strange:
            worker_of_others.cancel()
        for keeps in (*operator, *approving):
            keeps.cancel()
        self._heal()
        await self._settle()
        judge_end(self.books, self.read)
        self.evidence.judge_end()
        self.loop.forget_done()
        await asyncio.sleep(1)
        self.loop.forget_done()

    def _operator(self, chance: random.Random, costs: list[int], length: float) -> "list[asyncio.Task[None]]":
        """Who keeps the budgets, until the world heals."""
        if self.kind is not World.CONDITIONS:
            return []
        wanted = make_budgets(chance, costs, length)
        return [asyncio.ensure_future(self.person.keep_budget(budget)) for budget in wanted]

    def _strange_workers(self) -> "list[asyncio.Task[None]]":
        """None where the gateway may be put back: what they bought is then known to nobody (docs/guarantees.md)."""
        theme = self.theme
        if self.kind is not World.ALONE:
            return []
        may = theme.scripts if theme is not None else not self.strikes.can_restore and self.chance.random() < 0.3
        if not may:
            return []
        self.strikes.can_restore = False
        parts = (next(iter(self.shops.values())), self._chance("script"), self.books, self.site_auditor)
        channel = self._channel("script")
        until = self.loop.time() + (20.0 if theme is not None else 1_000.0)  # then our workers come
        return [
            asyncio.ensure_future(RestScript(self.gateways[0], *parts).run(until)),
            asyncio.ensure_future(LateAsker(channel, *parts).run(until)),
        ]

    def _furnish(self) -> None:
        """What the account has seen before: orders that have nothing to do with us, things in the cart."""
        strangers = self.theme.strangers if self.theme is not None else 0
        many = strangers or self.chance.choice((0, 2, 7))
        for shop in self.shops.values():
            shop.order_from_elsewhere(many, timedelta(hours=self.chance.choice((1, 20))))
            shop.order_from_elsewhere(2, timedelta(days=3))
        for _ in range(self.chance.choice((0, 1, 2))):
            self.strikes.fill_cart()
        if (self.theme is not None and self.theme.backed_up) or self.chance.random() < 0.3:
            self.strikes.back_up()

    def _heal(self) -> None:
        self.faults.heal()

    async def _settle(self) -> None:
        """The person acts until nothing is left to do."""
        end = self.loop.time() + HEALING_SECONDS
        while self.loop.time() < end:
            await asyncio.sleep(ROUND_SECONDS)
            self.faults.keep_up()
            if self.books.paused:
                await self.person.resume()
            if await self.person.settle() and self.upstream.is_done and not self._waiting():
                return
        self.books.broken(f"something waits for ever: {self._waiting()}")

    def _waiting(self) -> list[str]:
        waiting = []
        for machine in self.workers:
            for row in machine.read("SELECT task_id FROM outbox WHERE settled_at IS NULL"):
                waiting.append(f"a report of {row['task_id']} on {machine.name}")
            for row in machine.read("SELECT task_id FROM reclaim_wishes WHERE status IN ('waiting', 'taken')"):
                waiting.append(f"a reclaim request for {row['task_id']} on {machine.name}")
        for row in self.read("SELECT task_id, status FROM tasks WHERE status NOT IN ('succeeded', 'failed')"):
            waiting.append(f"{row['task_id']} is {row['status']}")
        return waiting
