"""From the domain's values to the documented JSON shapes."""

from typing import Any

from gateway.api.rest.envelope import JsonText
from gateway.domain.models import Health, Lease, Pause, Renewed, Report, Reported, Submitted, TaskDetail


def task_json(detail: TaskDetail) -> dict[str, Any]:
    """Write a task with its reports."""
    task = detail.task
    return {
        "task_id": task.task_id,
        "site": task.site,
        "intent": JsonText(task.intent_json),
        "callback_url": task.callback_url,
        "status": task.status,
        "lease_owner": task.lease_owner,
        "lease_expires_at": task.lease_expires_at,
        "lease_count": task.lease_count,
        "created_at": task.created_at,
        "updated_at": task.updated_at,
        "latest_state": task.latest_state,
        "reports": [_report_json(report) for report in detail.reports],
        "submit_permitted_at": task.submit_permitted_at,
        "placement": task.placement,
    }


def submitted_json(done: Submitted) -> dict[str, Any]:
    """Write what a submission came to."""
    return {
        "task_id": done.task_id,
        "status": done.status,
        "created": done.created,
        "intent_matches": done.intent_matches,
    }


def lease_json(lease: Lease) -> dict[str, Any]:
    """Write a lease, its token included."""
    return {
        "task_id": lease.task_id,
        "site": lease.site,
        "intent": JsonText(lease.intent_json),
        "lease_expires_at": lease.lease_expires_at,
        "lease_count": lease.lease_count,
        "known_state": lease.known_state,
        "lease_token": lease.token,
    }


def renewed_json(renewed: Renewed) -> dict[str, Any]:
    """Write the answer to a renewal."""
    return {
        "task_id": renewed.task_id,
        "lease_expires_at": renewed.lease_expires_at,
        "lease_count": renewed.lease_count,
    }


def reported_json(done: Reported) -> dict[str, Any]:
    """Write the answer to a report."""
    return {"task_id": done.task_id, "status": done.status, "recorded": done.recorded}


def health_json(health: Health) -> dict[str, Any]:
    """Write the health of the gateway (specification, section 7)."""
    return {
        "status": "degraded" if health.degraded else "ok",
        "queued_count": health.queued_count,
        "queued_query_count": health.queued_query_count,
        "active_tasks": [task_json(detail) for detail in health.active_tasks],
        "workers": [
            {
                "worker_id": worker.worker_id,
                "last_seen_at": worker.last_seen_at,
                "last_seen_seconds": worker.silent_for.total_seconds(),
            }
            for worker in health.workers
        ],
        "offline_workers": [worker.worker_id for worker in health.workers if worker.offline],
        "stale_queued_tasks": [
            {
                "task_id": task.task_id,
                "site": task.site,
                "created_at": task.created_at,
                "age_seconds": task.age.total_seconds(),
            }
            for task in health.stale_queued_tasks
        ],
        "paused": bool(health.pauses),
        "pauses": [_pause_json(pause) for pause in health.pauses],
    }


def _report_json(report: Report) -> dict[str, Any]:
    return {
        "state": report.state,
        "payable_yen": report.payable_yen,
        "pay_deadline": report.pay_deadline,
        "site_order_id": report.site_order_id,
        "evidence_ref": report.evidence_ref,
        "detail": report.detail,
        "error_code": report.error_code,
        "reported_at": report.reported_at,
    }


def _pause_json(pause: Pause) -> dict[str, Any]:
    return {
        "site": pause.site,
        "paused_at": pause.paused_at,
        "paused_by": pause.paused_by,
        "reason": pause.reason,
    }
