"""From the domain's values to the documented JSON shapes."""

from collections.abc import Iterable
from typing import Any, Final

from gateway.api.errors import ERRORS
from gateway.domain.budgets import BudgetState
from gateway.domain.health import GatewaySeen, Health, Pause, Problem
from gateway.domain.json_writing import JsonText
from gateway.domain.leases import Lease, OtherOrders, Renewed
from gateway.domain.models import Reported, Submitted
from gateway.domain.refusals import Refusal
from gateway.task_document import task_document

_FIELDS_HERE: Final = {"intent_json": "intent"}
"""The contract's names of fields that have another one here."""


def submitted_json(done: Submitted) -> dict[str, Any]:
    """Write what a submission came to."""
    return {
        "task_id": done.task_id,
        "status": done.status,
        "created": done.created,
        "intent_matches": done.intent_matches,
        "differs": [_FIELDS_HERE.get(name, name) for name in done.differs],
        "same_intent_as": done.same_intent_as,
        "held_for_approval": done.held_for_approval,
    }


def batch_result_json(index: int, outcome: Submitted | Refusal) -> dict[str, Any]:
    """Write what became of the order at this place of a batch."""
    if isinstance(outcome, Submitted):
        return {"success": True, "msg": "ok", "data": submitted_json(outcome), "code": 0, "field": None}
    (violation,) = outcome.violations
    field = f"orders[{index}]" + (f".{violation.field}" if violation.field else "")
    code = ERRORS[outcome.reason].code
    return {"success": False, "msg": f"{field}: {violation.description}", "data": None, "code": code, "field": field}


def lease_json(lease: Lease) -> dict[str, Any]:
    """Write a lease, its token included."""
    return {
        "task_id": lease.task_id,
        "site": lease.site,
        "account": lease.account,
        "intent": JsonText(lease.intent_json),
        "lease_expires_at": lease.lease_expires_at,
        "lease_count": lease.lease_count,
        "known_state": lease.known_state,
        "lease_token": lease.token,
        "labels": JsonText(lease.labels_json),
        "stop_before_submit": lease.stop_before_submit,
        "other_site_order_ids": lease.others.site_order_ids,
        "other_site_order_ids_truncated": lease.others.incomplete,
    }


def renewed_json(renewed: Renewed) -> dict[str, Any]:
    """Write the answer to a renewal."""
    return {
        "task_id": renewed.task_id,
        "lease_expires_at": renewed.lease_expires_at,
        "lease_count": renewed.lease_count,
        **_others_json(renewed.others),
    }


def _others_json(others: OtherOrders | None) -> dict[str, Any]:
    if others is None:
        return {}
    return {"other_site_order_ids": others.site_order_ids, "other_site_order_ids_truncated": others.incomplete}


def reported_json(done: Reported) -> dict[str, Any]:
    """Write the answer to a report."""
    return {"task_id": done.task_id, "status": done.status, "recorded": done.recorded}


def health_json(health: Health) -> dict[str, Any]:
    """Write the health of the gateway (docs/specification.md#health)."""
    return {
        "status": "degraded" if health.degraded else "ok",
        "queued_count": health.queued_count,
        "queued_query_count": health.queued_query_count,
        "active_tasks": [task_document(detail) for detail in health.active_tasks],
        "active_count": health.active_count,
        "held_for_approval_count": health.held_for_approval_count,
        "workers": [
            {
                "worker_id": worker.worker_id,
                "last_seen_at": worker.last_seen_at,
                "last_seen_seconds": worker.silent_for.total_seconds(),
                "sites": worker.sites,
                "accounts": worker.accounts,
                "gateway": worker.gateway,
            }
            for worker in health.workers
        ],
        "offline_workers": [worker.worker_id for worker in health.workers if worker.offline],
        "stale_queued_tasks": [
            {
                "task_id": task.task_id,
                "site": task.site,
                "account": task.account,
                "unserved": task.unserved,
                "created_at": task.created_at,
                "age_seconds": task.age.total_seconds(),
            }
            for task in health.stale_queued_tasks
        ],
        "paused": bool(health.pauses),
        "pauses": [_pause_json(pause) for pause in health.pauses],
        "problems": _problems_json(health.problems),
        "gateways": [_gateway_json(gateway) for gateway in health.fellows.gateways] if health.fellows else [],
        "budgets": [_budget_json(state) for state in health.budgets],
    }


def _budget_json(state: BudgetState) -> dict[str, Any]:
    budget = state.budget
    return {
        "budget_id": budget.budget_id,
        "site": budget.scope.site,
        "account": budget.scope.account,
        "identity": budget.scope.identity,
        "period": budget.period.value,
        "limit_yen": budget.limit_yen,
        "reserved_yen": state.use.reserved_yen,
        "settled_yen": state.use.settled_yen,
        "left_yen": state.left_yen,
        "renews_at": state.window.ends_at,
    }


def _gateway_json(gateway: GatewaySeen) -> dict[str, Any]:
    return {
        "gateway_id": gateway.gateway_id,
        "name": gateway.name,
        "version": gateway.version,
        "started_at": gateway.started_at,
        "last_seen_at": gateway.last_seen_at,
        "last_seen_seconds": None if gateway.silent_for is None else gateway.silent_for.total_seconds(),
        "waiting_count": gateway.waiting,
        "leads": gateway.leads,
        "gone": gateway.gone,
        "answers": gateway.here,
        "problems": _problems_json(gateway.problems),
    }


def _problems_json(problems: Iterable[Problem]) -> list[dict[str, str]]:
    return [{"kind": problem.kind.value, "message": problem.message} for problem in problems]


def _pause_json(pause: Pause) -> dict[str, Any]:
    return {
        "site": pause.site,
        "paused_at": pause.paused_at,
        "paused_by": pause.paused_by,
        "reason": pause.reason,
    }
