"""Tasks that need a decision, with everything known about each (docs/specification.md#placement)."""

from collections.abc import Iterator, Sequence
from typing import Final

from gateway.domain.instant import Instant
from gateway.domain.leases import LeaseRecord, Via
from gateway.domain.models import Policy, Report, Task
from gateway.domain.operations import UNKNOWN_JOURNAL, Decision, LateReport
from gateway.domain.paging import Page, fill
from gateway.domain.states import NOTHING_PLACED, Placement
from gateway.domain.transitions import allowed
from gateway.operations.actions import settles_in
from gateway.orders.read import size_of_task
from gateway.orders.settle import may_have_clicked
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
        (_decision(tx, now, policy, waiting.task), _position(waiting)) for waiting in _waiting(tx, after or (0, 0))
    )
    page = fill(found, count, lambda each: _size(each[0]))
    return Page(tuple(decision for decision, _ in page.items), page.items[-1][1] if page.more else None)


def summary(task: Task, held: Sequence[LeaseRecord], reports: Sequence[Report], late: Sequence[LateReport]) -> str:
    """Say in one sentence whether an order is impossible, possible or certain, and why."""
    match task.placement:
        case Placement.CERTAIN:
            return f"An order is certain: {_source(reports, late)}."
        case Placement.POSSIBLE:
            return f"An order is possible: {_chance(held)}, and nothing is known of what came of it."
        case Placement.IMPOSSIBLE:
            return f"An order is impossible: {_obstacle(held)}."


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


def _decision(tx: ReadTransaction, now: Instant, policy: Policy, task: Task) -> Decision:
    detail = with_reports(tx, task)
    held = leases.of_task(tx, task.task_id)
    late = late_reports.newest_of_task(tx, task.task_id, MAX_LATE_REPORTS)
    shown = [lease.verification for lease in held if lease.verification is not None]
    return Decision(
        task=detail,
        summary=summary(task, held, detail.reports, late),
        allowed=allowed(task),
        late_reports=late,
        last_verification=shown[-1] if shown else None,
        last_worker_id=held[-1].worker_id if held else None,
        alerts=alerts.standing_of_task(tx, task.task_id),
        settles_in=settles_in(now, policy, task, held),
    )


def _source(reports: Sequence[Report], late: Sequence[LateReport]) -> str:
    telling = [report for report in reports if _tells(report)]
    if telling:
        last = telling[-1]
        return f"it was reported as {last.state}{_number(last)} at {last.reported_at}"
    told = [report for report in late if _tells(report.report)]
    if told:
        last_late = told[-1]
        report = last_late.report
        return (
            f"a late report of {last_late.worker_id} at {report.reported_at}, refused but kept, "
            f"says {report.state}{_number(report)}"
        )
    return "a report in the history says so"


def _tells(report: Report) -> bool:
    return report.site_order_id is not None or report.state not in NOTHING_PLACED


def _number(report: Report) -> str:
    return "" if report.site_order_id is None else f" with the order number {report.site_order_id}"


def _chance(held: Sequence[LeaseRecord]) -> str:
    clicking = [lease for lease in held if may_have_clicked(lease)]
    if not clicking:
        return "a lease allowed the click"
    last = clicking[-1]
    if last.journal_id == UNKNOWN_JOURNAL:
        return f"the gateway was restored at {last.permitted_at}, what happened since that backup was made is not known"
    if last.via is Via.REST:
        return f"lease {last.lease_number} was taken by {last.worker_id} over REST, where no permit guards the click"
    return f"a submit permit was granted to {last.worker_id} at {last.permitted_at} (lease {last.lease_number})"


def _obstacle(held: Sequence[LeaseRecord]) -> str:
    if not held:
        return "the task was never leased"
    return (
        f"no submit permit was ever granted, and without one no worker clicks (leases: {len(held)}, "
        f"the last one held by {held[-1].worker_id})"
    )
