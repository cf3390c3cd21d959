"""Budgets: what may be spent within a day, a week or a month, and the ledger of it (docs/specification.md#budgets)."""

from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo

from common.target import ONLY_ACCOUNT, Target
from gateway.domain.instant import Instant, midnight, parse_utc

MAX_BUDGETS: Final = 1_000
"""So many stand at once, so that a permit, a page of metrics and health stay small."""

_EVERYTHING: Final = "all"


class BudgetPeriod(StrEnum):
    """For how long a budget is; then it is whole again."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


class EntryState(StrEnum):
    """What a permit's entry in the ledger counts as."""

    RESERVED = "reserved"
    SETTLED = "settled"
    RELEASED = "released"


@dataclass(frozen=True, slots=True)
class BudgetScope:
    """Whose orders a budget is for: all, a site's, an account's on it, or those that an identity has filed.

    `account` None: of any account. A site excludes an identity.
    """

    site: str | None = None
    account: str | None = None
    identity: str | None = None

    def __str__(self) -> str:
        """Return how it is stored, and found by what holds for a task: equal for equal scopes."""
        if self.identity is not None:
            return f"identity:{self.identity}"
        if self.site is None:
            return _EVERYTHING
        return f"site:{self.site}" if self.account is None else f"target:{self.site}/{self.account}"

    @property
    def spoken(self) -> str:
        """Return what people call it."""
        if self.identity is not None:
            return f"orders of {self.identity}"
        if self.site is None:
            return "all orders"
        if self.account == ONLY_ACCOUNT:
            return f"orders on {self.site} without an account"
        return f"orders on {self.site if self.account is None else Target(self.site, self.account)}"


def scope_of(text: str) -> BudgetScope:
    """Return the scope of a text that it was stored as."""
    kind, _, name = text.partition(":")
    match kind:
        case "site":
            return BudgetScope(site=name)
        case "target":
            site, _, account = name.partition("/")
            return BudgetScope(site=site, account=account)
        case "identity":
            return BudgetScope(identity=name)
        case _:
            return BudgetScope()


@dataclass(frozen=True, slots=True)
class Window:
    """A period of a budget, as UTC texts: from its first moment to the first one of the next."""

    starts_at: str
    ends_at: str

    def renews_in(self, now: Instant) -> timedelta:
        """Return for how long it lasts still."""
        return parse_utc(self.ends_at) - parse_utc(now.utc)


@dataclass(frozen=True, slots=True)
class Budget:
    """A budget as an operator has set it. `zone`: the IANA time zone whose midnight begins its days."""

    budget_id: str
    scope: BudgetScope
    period: BudgetPeriod
    zone: str
    limit_yen: int
    set_at: str
    set_by: str
    removed_at: str | None = None

    def window(self, now: Instant) -> Window:
        """Return the period that `now` is in."""
        zone = ZoneInfo(self.zone)
        first = _first_day(self.period, parse_utc(now.utc).astimezone(zone).date())
        return Window(midnight(first, zone), midnight(_next_first_day(self.period, first), zone))


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """What of a budget is reserved by permits of a period, and what was paid, in yen."""

    reserved_yen: int = 0
    settled_yen: int = 0

    @property
    def yen(self) -> int:
        """Return both."""
        return self.reserved_yen + self.settled_yen


@dataclass(frozen=True, slots=True)
class BudgetState:
    """A budget with what of it is used in the period of now."""

    budget: Budget
    window: Window
    use: BudgetUse

    @property
    def left_yen(self) -> int:
        """Return what may be reserved still; 0 also where more was paid than the budget holds."""
        return max(0, self.budget.limit_yen - self.use.yen)

    def has_room_for(self, yen: int) -> bool:
        """Tell whether so much may be reserved. Where more is used than the budget holds not even 0 yen may."""
        return self.use.yen + yen <= self.budget.limit_yen


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """What a permit has reserved of a budget. `counted_yen`: what counts of it now; `number` grows with each entry."""

    number: int
    budget_id: str
    starts_at: str
    task_id: str
    lease_number: int
    granted_at: str
    reserved_yen: int
    state: EntryState
    counted_yen: int
    changed_at: str


def _first_day(period: BudgetPeriod, day: date) -> date:
    match period:
        case BudgetPeriod.DAY:
            return day
        case BudgetPeriod.WEEK:
            return day - timedelta(days=day.weekday())
        case BudgetPeriod.MONTH:
            return day.replace(day=1)


def _next_first_day(period: BudgetPeriod, first: date) -> date:
    match period:
        case BudgetPeriod.DAY:
            return first + timedelta(days=1)
        case BudgetPeriod.WEEK:
            return first + timedelta(days=7)
        case BudgetPeriod.MONTH:
            return (first + timedelta(days=31)).replace(day=1)
