"""Tasks that need a decision, with everything known about each (docs/specification.md#placement)."""

import json
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, Final

from gateway.domain.instant import Instant
from gateway.domain.models import LeaseRecord, Policy, Report, Task, TaskDetail, Verdict, Verification, Via
from gateway.domain.operations import UNKNOWN_JOURNAL, Decision, DecisionPage, LateReport
from gateway.domain.paging import fill
from gateway.domain.states import NOTHING_PLACED, OrderState, Placement
from gateway.domain.transitions import allowed
from gateway.operations.actions import leases_of, settles_in
from gateway.operations.alerts import alert_from
from gateway.operations.history import event_from
from gateway.orders.read import size_of_task
from gateway.orders.settle import may_have_clicked
from gateway.store.port import ReadTransaction, Row
from gateway.store.rows import task_from, with_reports

MAX_LATE_REPORTS: Final = 50
"""Late reports that a decision shows, the newest ones; the history has them all."""


_BATCH: Final = 16
_SIZE_OF_A_REPORT: Final = 4_000


def list_decisions(
    tx: ReadTransaction, now: Instant, policy: Policy, after: tuple[int, int] | None, count: int
) -> DecisionPage:
    """Return up to `count` tasks that wait for a person, the longest waiting first.

    A task waits from its oldest standing alert on: whatever turns a task stale or needs_human raises one. `after` is
    the position (alert, task row) of the page before. Fewer where they are large, but at least one.
    """
    found = ((_decision(tx, now, policy, row), _position(row)) for row in _waiting(tx, after or (0, 0)))
    page = fill(found, count, lambda each: _size(each[0]))
    return DecisionPage(tuple(decision for decision, _ in page.items), page.items[-1][1] if page.more else None)


def summary(task: Task, leases: Sequence[LeaseRecord], reports: Sequence[Report], late: Sequence[LateReport]) -> str:
    """Say in one sentence whether an order is impossible, possible or certain, and why."""
    match task.placement:
        case Placement.CERTAIN:
            return f"An order is certain: {_source(reports, late)}."
        case Placement.POSSIBLE:
            return f"An order is possible: {_chance(leases)}, and nothing is known of what came of it."
        case Placement.IMPOSSIBLE:
            return f"An order is impossible: {_obstacle(leases)}."


def _waiting(tx: ReadTransaction, after: tuple[int, int]) -> Iterator[Row]:
    while rows := tx.all("tasks_to_decide", after_alert=after[0], after_row=after[1], count=_BATCH):
        yield from rows
        after = _position(rows[-1])


def _position(row: Row) -> tuple[int, int]:
    return row["first_alert"], row["row"]


def _size(decision: Decision) -> int:
    """Return about how many bytes a decision takes in an answer, rather too many than too few."""
    late = sum(len(report.report.detail.encode()) + _SIZE_OF_A_REPORT for report in decision.late_reports)
    return size_of_task(decision.task) + late + _SIZE_OF_A_REPORT


def _decision(tx: ReadTransaction, now: Instant, policy: Policy, row: Row) -> Decision:
    detail = with_reports(tx, task_from(row))
    task = detail.task
    leases = leases_of(tx, task.task_id)
    late = _late_reports(tx, task.task_id)
    standing = tx.all("alerts_standing_of_task", task_id=task.task_id, site=task.site)
    return Decision(
        task=TaskDetail(task, detail.reports),
        summary=summary(task, leases, detail.reports, late),
        allowed=allowed(task),
        late_reports=late,
        last_verification=_last_verification(tx, task.task_id),
        last_worker_id=leases[-1].worker_id if leases else None,
        alerts=tuple(alert_from(alert) for alert in standing),
        settles_in=settles_in(now, policy, task, leases),
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


def _chance(leases: Sequence[LeaseRecord]) -> str:
    clicking = [lease for lease in leases if may_have_clicked(lease)]
    if not clicking:
        return "a lease allowed the click"
    last = clicking[-1]
    if last.journal_id == UNKNOWN_JOURNAL:
        return f"the gateway was restored at {last.permitted_at}, what happened since that backup was made is not known"
    if last.via is Via.REST:
        return f"lease {last.lease_number} was taken by {last.worker_id} over REST, where no permit guards the click"
    return f"a submit permit was granted to {last.worker_id} at {last.permitted_at} (lease {last.lease_number})"


def _obstacle(leases: Sequence[LeaseRecord]) -> str:
    if not leases:
        return "the task was never leased"
    return (
        f"no submit permit was ever granted, and without one no worker clicks (leases: {len(leases)}, "
        f"the last one held by {leases[-1].worker_id})"
    )


def _late_reports(tx: ReadTransaction, task_id: str) -> tuple[LateReport, ...]:
    rows = tx.all(
        "events_newest_of_subject",
        subject=task_id,
        kinds=",report_refused,",
        below=2**63 - 1,
        first=0,
        count=MAX_LATE_REPORTS,
    )
    return tuple(_late_report(row) for row in reversed(rows))


def _late_report(row: Row) -> LateReport:
    event = event_from(row)
    said: dict[str, Any] = json.loads(event.details_json)
    return LateReport(
        worker_id=event.worker_id or event.actor,
        report=Report(
            state=OrderState(said["state"]),
            payable_yen=said.get("payable_yen"),
            pay_deadline=said.get("pay_deadline"),
            site_order_id=said.get("site_order_id"),
            evidence_ref=said.get("evidence_ref"),
            detail=said.get("detail", ""),
            error_code=said.get("error_code"),
            reported_at=event.occurred_at,
        ),
        refusal=event.reason,
    )


def _last_verification(tx: ReadTransaction, task_id: str) -> Verification | None:
    row = tx.one("event_last_with_verification", subject=task_id)
    if row is None:
        return None
    look = json.loads(row["details_json"])["verification"]
    return Verification(
        Verdict(look["verdict"]),
        look["window_fully_covered"],
        look["evidence_ref"],
        timedelta(microseconds=look["begun_at_us"]),
    )
