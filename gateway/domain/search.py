"""Which tasks a list shows, and in what order (docs/specification.md#finding-tasks)."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from gateway.domain.instant import parse_utc, utc_text
from gateway.domain.models import TaskFilter
from gateway.domain.states import TaskStatus

Position = tuple[int, ...]
"""Where a task stands in a list: its row; where the order is by update, first when that was, in microseconds."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TaskSearch:
    """Conditions that must all hold; what is empty or None holds for every task.

    `statuses`: one of these. `labels`: each of these pairs. Times are UTC text, from the first on and before the
    second. `needs_decision`: an alert of it stands. `held_for_approval`: it waits for that in the queue. Newest first
    unless `oldest_first`; by `updated_at` where a range of it is asked for, else by submission.
    """

    statuses: tuple[TaskStatus, ...] = ()
    site: str | None = None
    account: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    site_order_id: str | None = None
    created_from: str | None = None
    created_to: str | None = None
    updated_from: str | None = None
    updated_to: str | None = None
    needs_decision: bool = False
    held_for_approval: bool = False
    task_id_prefix: str = ""
    task_id_contains: str = ""
    oldest_first: bool = False

    @property
    def by_update(self) -> bool:
        """Whether the order is by update, and a position has two parts."""
        return self.updated_from is not None or self.updated_to is not None

    @property
    def plain(self) -> TaskFilter | None:
        """The same as a filter of the lists that are counted; None where it is more than that."""
        status = self.statuses[0] if self.statuses else None
        alike = TaskSearch(statuses=self.statuses[:1], site=self.site, account=self.account)
        return TaskFilter(status, self.site, self.account) if self == alike else None


HELD_FOR_APPROVAL: Final = TaskSearch(held_for_approval=True, oldest_first=True)
"""What waits for an approval, as it was filed."""


def since_epoch(utc: str) -> int:
    """Return a time as a part of a position."""
    return (parse_utc(utc) - _EPOCH) // timedelta(microseconds=1)


def utc_of(since: int) -> str:
    """Return the time of a position's part. Raises OverflowError where there is none."""
    return utc_text(_EPOCH + timedelta(microseconds=since))
