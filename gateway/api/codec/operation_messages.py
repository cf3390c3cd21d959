"""From what the person in charge sees to the contract's messages of operations.proto."""

from google.protobuf import duration_pb2, timestamp_pb2
from ordergateway.v1 import operations_pb2, order_leases_pb2

from gateway.api.codec.messages import duration, report_message, task_message, timestamp
from gateway.domain.models import AlertKind, Verdict, Verification
from gateway.domain.operations import Alert, BackupFacts, Decision, HistoryEvent, LateReport

_ALERT_KIND = {kind: operations_pb2.AlertKind.Value(f"ALERT_KIND_{kind.name}") for kind in AlertKind}
_ALERT_KIND_BACK = {number: kind for kind, number in _ALERT_KIND.items()}
_VERDICT = {
    Verdict.NOT_ORDERED: order_leases_pb2.Verification.VERDICT_NOT_ORDERED,
    Verdict.ORDERED: order_leases_pb2.Verification.VERDICT_ORDERED,
    Verdict.UNKNOWN: order_leases_pb2.Verification.VERDICT_UNKNOWN,
}


def alert_kind_from(number: int) -> AlertKind | None:
    """Read a kind of alert; UNSPECIFIED is None. Raises KeyError for a number that the contract does not know."""
    return None if number == 0 else _ALERT_KIND_BACK[operations_pb2.AlertKind.ValueType(number)]


def alert_message(alert: Alert) -> operations_pb2.Alert:
    """Write an alert."""
    return operations_pb2.Alert(
        alert_id=alert.alert_id,
        kind=_ALERT_KIND[alert.kind],
        subject=alert.subject,
        message=alert.message,
        raised_at=timestamp(alert.raised_at),
        cleared_at=timestamp(alert.cleared_at),
    )


def event_message(event: HistoryEvent) -> operations_pb2.Event:
    """Write one line of the history."""
    return operations_pb2.Event(
        sequence=event.sequence,
        occurred_at=timestamp(event.occurred_at),
        subject=event.subject,
        kind=event.kind,
        actor=event.actor,
        worker_id=event.worker_id or "",
        before=event.before or "",
        after=event.after or "",
        reason=event.reason,
        details_json=event.details_json,
    )


def decision_message(decision: Decision) -> operations_pb2.Decision:
    """Write a task to decide about."""
    look = decision.last_verification
    return operations_pb2.Decision(
        task=task_message(decision.task),
        summary=decision.summary,
        allowed=decision.allowed,
        late_reports=[_late_report(late) for late in decision.late_reports],
        last_verification=None if look is None else _verification(look),
        last_worker_id=decision.last_worker_id or "",
        alerts=[alert_message(alert) for alert in decision.alerts],
        settles_in=None if decision.settles_in is None else duration(decision.settles_in),
    )


def backup_message(backup: BackupFacts) -> operations_pb2.CreateBackupResponse:
    """Write what a backup holds."""
    return operations_pb2.CreateBackupResponse(
        file_name=backup.file_name,
        size_bytes=backup.size_bytes,
        sha256=backup.sha256,
        last_event_sequence=backup.last_event_sequence,
        task_count=backup.task_count,
    )


def _late_report(late: LateReport) -> operations_pb2.LateReport:
    report = report_message(late.report)
    received_at = timestamp_pb2.Timestamp()
    received_at.CopyFrom(report.reported_at)
    report.ClearField("reported_at")
    return operations_pb2.LateReport(
        received_at=received_at, worker_id=late.worker_id, report=report, refusal=late.refusal
    )


def _verification(look: Verification) -> order_leases_pb2.Verification:
    begun_at = duration_pb2.Duration()
    begun_at.FromTimedelta(look.begun_at)
    return order_leases_pb2.Verification(
        verdict=_VERDICT[look.verdict],
        window_fully_covered=look.window_fully_covered,
        evidence_ref=look.evidence_ref or "",
        begun_at_lease_age=begun_at,
    )
