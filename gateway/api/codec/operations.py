"""What a person sees and decides, between the contract's messages and the domain's values.

What reads a request raises RefusedError INVALID_FIELD with the field's path and the limit.
"""

import re
from typing import Final, Protocol

from google.protobuf import timestamp_pb2
from ordergateway.v1 import operations_pb2

from gateway.api.codec.budgets import budget_message
from gateway.api.codec.leases import verification_message
from gateway.api.codec.orders import order_state, report_message, task_message, task_status
from gateway.api.codec.proposals import proposal_message
from gateway.api.codec.times import datetime_of, duration, timestamp
from gateway.domain import fields
from gateway.domain.health import GatewaySeen, Health, Pause, Problem, QueuedTask, WorkerSeen
from gateway.domain.instant import utc_text
from gateway.domain.models import AlertKind
from gateway.domain.operations import Alert, BackupFacts, Decision, HistoryEvent, HistoryFilter, LateReport, Resolution
from gateway.domain.refusals import invalid
from gateway.domain.states import TaskStatus

MAX_KINDS: Final = 32

_KIND: Final = re.compile(r"[a-z][a-z_]{0,63}", re.ASCII)
_ALERT_KIND = {kind: operations_pb2.AlertKind.Value(f"ALERT_KIND_{kind.name}") for kind in AlertKind}
_ALERT_KIND_BACK = {number: kind for kind, number in _ALERT_KIND.items()}


class _Reasoned(Protocol):
    @property
    def reason(self) -> str: ...


def reason(request: _Reasoned) -> str:
    """Check why a person does something: 1 to 1,000 characters."""
    return fields.text("reason", request.reason, limit=fields.MAX_REASON_CHARACTERS, required=True)


def site_or_all(text: str, known: tuple[str, ...]) -> str:
    """Check a site; empty stands for all."""
    return fields.site("site", text, known) if text else ""


def resolution(request: operations_pb2.ResolveOrderRequest) -> Resolution:
    """Check what a person states about an order."""
    outcome = task_status("outcome", request.outcome)
    if outcome not in (TaskStatus.SUCCEEDED, TaskStatus.FAILED):
        raise invalid("outcome", "is required: succeeded or failed")
    return Resolution(
        task_id=fields.key("task_id", request.task_id),
        reason=reason(request),
        outcome=outcome,
        state=order_state("state", request.state),
        site_order_id=fields.site_order_id(
            "site_order_id", request.site_order_id if request.HasField("site_order_id") else None
        ),
        although_impossible=request.although_impossible,
    )


def alert_kind(number: int) -> AlertKind | None:
    """Check a kind of alert; UNSPECIFIED is None."""
    if number == 0:
        return None
    found = _ALERT_KIND_BACK.get(operations_pb2.AlertKind.ValueType(number))
    if found is None:
        raise invalid("kind", f"is {number}, which is no kind of alert")
    return found


def history_filter(request: operations_pb2.ListEventsRequest) -> HistoryFilter:
    """Check which events are wanted."""
    if len(request.kinds) > MAX_KINDS:
        raise invalid("kinds", f"must name at most {MAX_KINDS} kinds")
    for kind in request.kinds:
        if not _KIND.fullmatch(kind):
            raise invalid("kinds", "must be words of a-z and _, such as report_refused")
    return HistoryFilter(
        subject=fields.text("subject", request.subject, limit=fields.MAX_REASON_CHARACTERS) or None,
        kinds=tuple(sorted(set(request.kinds))),
        since=utc_text(datetime_of("since", request.since)) if request.HasField("since") else None,
        until=utc_text(datetime_of("until", request.until)) if request.HasField("until") else None,
    )


def health_message(health: Health) -> operations_pb2.GetHealthResponse:
    """Write the health of the gateway."""
    return operations_pb2.GetHealthResponse(
        status=operations_pb2.HEALTH_STATUS_DEGRADED if health.degraded else operations_pb2.HEALTH_STATUS_OK,
        queued_count=health.queued_count,
        queued_query_count=health.queued_query_count,
        active_tasks=[task_message(detail) for detail in health.active_tasks],
        active_count=health.active_count,
        held_for_approval_count=health.held_for_approval_count,
        workers=[worker_message(worker) for worker in health.workers],
        offline_workers=[worker.worker_id for worker in health.workers if worker.offline],
        stale_queued_tasks=[_queued(task) for task in health.stale_queued_tasks],
        pauses=[pause_message(pause) for pause in health.pauses],
        problems=[_problem(problem) for problem in health.problems],
        gateways=[_gateway(gateway) for gateway in health.fellows.gateways] if health.fellows else [],
        budgets=[budget_message(state) for state in health.budgets],
        notification_channels=[
            operations_pb2.NotificationChannel(
                channel=state.channel, failures=state.failures, told=state.told, tried_at=timestamp(state.tried_at)
            )
            for state in health.channels
        ],
    )


def _problem(problem: Problem) -> operations_pb2.HealthProblem:
    return operations_pb2.HealthProblem(
        kind=operations_pb2.HealthProblemKind.Value(f"HEALTH_PROBLEM_KIND_{problem.kind.name}"),
        message=problem.message,
    )


def _gateway(gateway: GatewaySeen) -> operations_pb2.Gateway:
    return operations_pb2.Gateway(
        gateway_id=gateway.gateway_id,
        name=gateway.name,
        version=gateway.version,
        started_at=timestamp(gateway.started_at),
        last_seen_at=timestamp(gateway.last_seen_at),
        last_seen_ago=None if gateway.silent_for is None else duration(gateway.silent_for),
        waiting_count=gateway.waiting,
        leads=gateway.leads,
        gone=gateway.gone,
        answers=gateway.here,
        problems=[_problem(problem) for problem in gateway.problems],
    )


def worker_message(worker: WorkerSeen) -> operations_pb2.Worker:
    """Write a worker."""
    return operations_pb2.Worker(
        worker_id=worker.worker_id,
        last_seen_at=timestamp(worker.last_seen_at),
        last_seen_ago=duration(worker.silent_for),
        offline=worker.offline,
        sites=worker.sites,
        accounts=worker.accounts,
        gateway=worker.gateway,
    )


def _queued(task: QueuedTask) -> operations_pb2.QueuedTask:
    return operations_pb2.QueuedTask(
        task_id=task.task_id,
        site=task.site,
        account=task.account,
        created_at=timestamp(task.created_at),
        age=duration(task.age),
        unserved=task.unserved,
    )


def pause_message(pause: Pause) -> operations_pb2.Pause:
    """Write a pause of dispatch."""
    return operations_pb2.Pause(
        site=pause.site or "", paused_at=timestamp(pause.paused_at), paused_by=pause.paused_by, reason=pause.reason
    )


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
        last_verification=None if look is None else verification_message(look),
        last_worker_id=decision.last_worker_id or "",
        alerts=[alert_message(alert) for alert in decision.alerts],
        settles_in=None if decision.settles_in is None else duration(decision.settles_in),
        proposal=None if decision.proposal is None else proposal_message(decision.proposal),
    )


def _late_report(late: LateReport) -> operations_pb2.LateReport:
    report = report_message(late.report)
    received_at = timestamp_pb2.Timestamp()
    received_at.CopyFrom(report.reported_at)
    report.ClearField("reported_at")
    return operations_pb2.LateReport(
        received_at=received_at, worker_id=late.worker_id, report=report, refusal=late.refusal
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
