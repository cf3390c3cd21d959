"""Tasks that need a decision, with everything known about each (docs/specification.md#placement)."""

from collections.abc import Iterator
from typing import Final

from gateway.domain.instant import Instant
from gateway.domain.models import Policy, Task
from gateway.domain.operations import Decision
from gateway.domain.paging import Page, fill
from gateway.domain.transitions import allowed
from gateway.operations.actions import settles_in
from gateway.operations.finding import finding
from gateway.operations.second_person import waiting_about
from gateway.orders.read import size_of_task
from gateway.store import alerts, late_reports, leases, tasks
from gateway.store.port import ReadTransaction
from gateway.store.reports import with_reports
from gateway.store.tasks import WaitingTask

MAX_LATE_REPORTS: Final = 50
"""Late reports that a decision shows, the newest ones; the history has them all."""


_BATCH: Final = 16
_SIZE_OF_A_REPORT: Final = 4_000


def list_decisions(
    tx: ReadTransaction, now: Instant, policy: Policy, after: tuple[int, int] | None, count: int
) -> Page[Decision, tuple[int, int]]:
    """Return up to `count` tasks that wait for a person, the longest waiting first.

    A task waits from its oldest standing alert on: whatever turns a task stale or needs_human raises one. `after` is
    the position (alert, task row) of the page before. Fewer where they are large, but at least one.
    """
    found = (
        (decision_about(tx, now, policy, waiting.task), _position(waiting)) for waiting in _waiting(tx, after or (0, 0))
    )
    page = fill(found, count, lambda each: _size(each[0]))
    return Page(tuple(decision for decision, _ in page.items), page.items[-1][1] if page.more else None)


def _waiting(tx: ReadTransaction, after: tuple[int, int]) -> Iterator[WaitingTask]:
    while found := tasks.waiting_for_a_person(tx, after, _BATCH):
        yield from found
        after = _position(found[-1])


def _position(waiting: WaitingTask) -> tuple[int, int]:
    return waiting.first_alert, waiting.task.row


def _size(decision: Decision) -> int:
    """Return about how many bytes a decision takes in an answer, rather too many than too few."""
    late = sum(len(report.report.detail.encode()) + _SIZE_OF_A_REPORT for report in decision.late_reports)
    return size_of_task(decision.task) + late + _SIZE_OF_A_REPORT


def decision_about(tx: ReadTransaction, now: Instant, policy: Policy, task: Task) -> Decision:
    """Return everything known of a task, whether or not it waits for a person."""
    detail = with_reports(tx, task)
    held = leases.of_task(tx, task.task_id)
    late = late_reports.newest_of_task(tx, task.task_id, MAX_LATE_REPORTS)
    shown = [lease.verification for lease in held if lease.verification is not None]
    return Decision(
        task=detail,
        finding=finding(task, held, detail.reports, late),
        allowed=allowed(task),
        late_reports=late,
        last_verification=shown[-1] if shown else None,
        last_worker_id=held[-1].worker_id if held else None,
        alerts=alerts.standing_of_task(tx, task.task_id),
        settles_in=settles_in(now, policy, task, held),
        proposal=waiting_about(tx, now, task.task_id),
    )
