"""A task as the documented JSON contract shows it: in answers of the REST facade and in callbacks.

The rule: docs/specification.md#rest-contract.
"""

from typing import Any

from gateway.domain.approvals import Approval
from gateway.domain.json_writing import JsonText
from gateway.domain.models import Report, TaskDetail
from gateway.domain.terms import terms_document


def task_document(detail: TaskDetail) -> dict[str, Any]:
    """Return the task detail as JSON values; the intent and the labels are JsonTexts."""
    task = detail.task
    return {
        "task_id": task.task_id,
        "site": task.site,
        "account": task.account,
        "intent": JsonText(task.intent_json),
        "callback_url": task.callback_url,
        "status": task.status,
        "lease_owner": task.lease_owner,
        "lease_expires_at": task.lease_expires_at,
        "lease_count": task.lease_count,
        "created_at": task.created_at,
        "updated_at": task.updated_at,
        "latest_state": task.latest_state,
        "reports": [_report(report) for report in detail.reports],
        "submit_permitted_at": task.submit_permitted_at,
        "placement": task.placement,
        "labels": JsonText(task.labels_json),
        "max_total_yen": task.max_total_yen,
        "terms": terms_document(task.terms),
        "not_before": task.not_before,
        "not_after": task.not_after,
        "stop_before_submit": task.stop_before_submit,
        "cancel_requested_at": task.cancel_requested_at,
        "same_intent_as": task.same_intent_as,
        "submitted_by": task.submitted_by,
        "requires_approval": task.requires_approval,
        "approval_reasons": task.approval_reasons,
        "held_for_approval": task.is_held_for_approval,
        "approval": None if detail.approval is None else _approval(detail.approval),
    }


def _approval(approval: Approval) -> dict[str, Any]:
    return {
        "verdict": approval.verdict,
        "decided_by": approval.decided_by,
        "decided_at": approval.decided_at,
        "reason": approval.reason,
        "max_total_yen": approval.max_total_yen,
        "valid_until": approval.valid_until,
        "used_by_lease": approval.used_by_lease,
        "ended_at": approval.ended_at,
    }


def _report(report: Report) -> dict[str, Any]:
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
