"""The statement of a day: what was filed on it, what it came to, and who decided what (docs/money.md#statement)."""

from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo

from gateway.domain.instant import midnight
from gateway.domain.models import Task
from gateway.domain.operations import HistoryEvent
from gateway.domain.states import OrderState, Placement, TaskStatus

DECISIONS: Final = (
    "approve", "deny", "requeue", "withdraw", "cancel", "cancel_request", "resolve", "expire_now", "proposal_confirmed",
)  # fmt: skip
"""Kinds of event that are a person's decision about a task."""

MAX_DECISIONS: Final = 20
"""So many of a task's decisions stand in its line, the newest."""


class Spending(StrEnum):
    """Whether a task has cost anything, as far as is known."""

    NONE = "none"
    POSSIBLE = "possible"
    ORDERED = "ordered"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class StatementDay:
    """A day of a time zone (IANA name)."""

    day: date
    zone: str

    @property
    def starts_at(self) -> str:
        """When it begins, as UTC text."""
        return midnight(self.day, ZoneInfo(self.zone))

    @property
    def ends_at(self) -> str:
        """When the next one begins, as UTC text."""
        return midnight(self.day + timedelta(days=1), ZoneInfo(self.zone))


@dataclass(frozen=True, slots=True)
class StatementLine:
    """A task in a statement. `yen` None: nobody knows. `decisions`: the first one first."""

    task: Task
    spending: Spending
    yen: int | None
    site_order_ids: tuple[str, ...]
    decisions: tuple[HistoryEvent, ...]


def spending_of(task: Task) -> Spending:
    """Say whether a task has cost anything. That a person found no order does not outweigh a worker's word of one."""
    if task.latest_state is OrderState.CANCELLED:
        return Spending.CANCELLED
    if task.status is TaskStatus.FAILED and task.resolved_at is not None:
        return Spending.POSSIBLE if task.placement is Placement.CERTAIN else Spending.NONE
    return {
        Placement.CERTAIN: Spending.ORDERED,
        Placement.POSSIBLE: Spending.POSSIBLE,
        Placement.IMPOSSIBLE: Spending.NONE,
    }[task.placement]
