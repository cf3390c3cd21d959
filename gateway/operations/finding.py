"""What makes an order of a task impossible, possible or certain (docs/specification.md#placement)."""

from collections.abc import Sequence

from gateway.domain.findings import Finding, FindingKind
from gateway.domain.leases import LeaseRecord, Via
from gateway.domain.models import Report, Task
from gateway.domain.operations import UNKNOWN_JOURNAL, LateReport
from gateway.domain.states import NOTHING_PLACED, Placement
from gateway.orders.settle import may_have_clicked


def finding(task: Task, held: Sequence[LeaseRecord], reports: Sequence[Report], late: Sequence[LateReport]) -> Finding:
    """Return what makes an order of the task impossible, possible or certain."""
    match task.placement:
        case Placement.CERTAIN:
            return _source(reports, late)
        case Placement.POSSIBLE:
            return _chance(held)
        case Placement.IMPOSSIBLE:
            return _obstacle(held)


def _source(reports: Sequence[Report], late: Sequence[LateReport]) -> Finding:
    telling = [report for report in reports if _tells(report)]
    if telling:
        values = _told(telling[-1])
        return Finding(FindingKind.REPORTED_WITH_NUMBER if "number" in values else FindingKind.REPORTED, values)
    told = [report for report in late if _tells(report.report)]
    if told:
        values = _told(told[-1].report) | {"worker": told[-1].worker_id}
        kind = FindingKind.REPORTED_LATE_WITH_NUMBER if "number" in values else FindingKind.REPORTED_LATE
        return Finding(kind, values)
    return Finding(FindingKind.IN_THE_HISTORY, {})


def _tells(report: Report) -> bool:
    return report.site_order_id is not None or report.state not in NOTHING_PLACED


def _told(report: Report) -> dict[str, str]:
    number = {} if report.site_order_id is None else {"number": report.site_order_id}
    return {"state": report.state, "at": report.reported_at, **number}


def _chance(held: Sequence[LeaseRecord]) -> Finding:
    clicking = [lease for lease in held if may_have_clicked(lease)]
    if not clicking:
        return Finding(FindingKind.LEASE_ALLOWED, {})
    last = clicking[-1]
    values = {"at": last.permitted_at or "", "lease": str(last.lease_number), "worker": last.worker_id}
    if last.journal_id == UNKNOWN_JOURNAL:
        return Finding(FindingKind.RESTORED, values)
    return Finding(FindingKind.LEASED_OVER_REST if last.via is Via.REST else FindingKind.PERMITTED, values)


def _obstacle(held: Sequence[LeaseRecord]) -> Finding:
    if not held:
        return Finding(FindingKind.NEVER_LEASED, {})
    return Finding(FindingKind.NEVER_PERMITTED, {"count": str(len(held)), "worker": held[-1].worker_id})
