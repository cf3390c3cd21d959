"""What a world's operator allows to be spent, drawn around what its orders cost, and the auditor's own ledger of it."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

ZONE = "Pacific/Gambier"
"""It is nine hours behind UTC throughout the year, and a day and a week begin there soon after a world's beginning."""
BEHIND_UTC = timedelta(hours=9)
BUDGETS_ALONE = 0.5
"""How often no order of a world has a condition of its own, so that more of them come as far as the budgets."""
NONE_AT_ALL = 0.2
RAISED = 0.4
"""How often a world has no budget, and how often one is raised."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A budget as the operator sets it; `raised_to` after so many seconds."""

    budget_id: str
    scope: dict[str, Any]
    period: str
    limit_yen: int
    raised_to: int | None = None
    raised_after: float = 0.0


def make_budgets(chance: random.Random, payables: Sequence[int], length: float) -> list[Wanted]:
    """Budgets for orders of these amounts: some of them use one up, to the yen, or would but for one yen."""
    if chance.random() < NONE_AT_ALL:
        return []
    wanted = []
    for number in range(chance.choice((1, 1, 2))):
        enough_for = sum(payables[: chance.randint(1, len(payables))])
        limit = max(0, enough_for + chance.choice((-1, -1, 0, 0, 0, 1, 3_000)))
        raised = chance.random() < RAISED
        wanted.append(
            Wanted(
                f"budget-{number}",
                chance.choice(({}, {"site": "sandbox"}, {"site": "sandbox", "account": ""})),
                chance.choice(("day", "day", "week", "month")),
                limit,
                limit + chance.choice((1, 1_000, enough_for)) if raised else None,
                chance.uniform(10.0, length),
            )
        )
    if chance.random() < NONE_AT_ALL:
        wanted.append(Wanted("of-others", {"site": "sandbox", "account": "other"}, "day", 0))
    return wanted


def period_of(period: str, at: datetime) -> str:
    """Which day, week or month a moment is in, where the budgets' days begin."""
    day = (at - BEHIND_UTC).date()
    match period:
        case "week":
            return f"{day - timedelta(days=day.weekday())}"
        case "month":
            return f"{day:%Y-%m}"
        case _:
            return f"{day}"


@dataclass
class Standing:
    """A budget that stands; `most`: the highest that its limit ever was."""

    scope: str
    period: str
    limit: int
    most: int

    @property
    def counts(self) -> bool:
        """Whether it counts the orders of these worlds, which have one target."""
        return self.scope in ("all", "site:sandbox", "target:sandbox/")


@dataclass
class Line:
    """What a task's last permit took from a budget; `counted` is what of it counts now."""

    period: str
    yen: int
    counted: int


@dataclass
class Ledger:
    """What the gateway must know: it forgets with a restore."""

    budgets: dict[str, Standing] = field(default_factory=dict)
    lines: dict[tuple[str, str], Line] = field(default_factory=dict)
    """By budget and task."""

    def used(self, budget_id: str, period: str, but_for: str = "") -> int:
        """Yen that count in a period, a task's own left out."""
        return sum(
            line.counted
            for (of, task_id), line in self.lines.items()
            if of == budget_id and line.period == period and task_id != but_for
        )
