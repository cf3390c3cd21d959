"""Which alerts each event of a task raises and clears: whatever stops until a person acts raises one."""

from collections.abc import Mapping
from typing import Any, Final

from gateway.domain.instant import Instant
from gateway.domain.models import Actor, AlertKind, Task
from gateway.domain.states import OrderState, Placement, TaskStatus
from gateway.domain.transitions import Event
from gateway.store import alerts
from gateway.store.port import Transaction

CLEARED_BY: Final[Mapping[Event, tuple[AlertKind, ...]]] = {
    Event.RECLAIM: (AlertKind.TASK_STALE,),
    Event.REQUEUE: (AlertKind.TASK_STALE, AlertKind.TASK_NEEDS_HUMAN),
    Event.RESTORE: (AlertKind.TASK_NEEDS_HUMAN, AlertKind.APPROVAL_REQUIRED),
    **dict.fromkeys(
        (Event.APPROVE, Event.DENY, Event.CANCEL, Event.TOO_LATE, Event.WITHDRAW), (AlertKind.APPROVAL_REQUIRED,)
    ),
    Event.RESOLVE: (
        AlertKind.TASK_STALE,
        AlertKind.TASK_NEEDS_HUMAN,
        AlertKind.LATE_REPORT,
        AlertKind.CONTRADICTING_REPORT,
        AlertKind.SITE_ORDER_ID_CONFLICT,
        AlertKind.FAILED_IN_DOUBT,
    ),
}
"""Alerts of a task that an event answers."""

_WHAT_TO_DO: Final = {
    Placement.IMPOSSIBLE: "it can be reclaimed or requeued at once, or resolved to failed",
    Placement.POSSIBLE: "look at the site first, then resolve it to what you saw; reclaim or requeue only lets a "
    "worker verify there, and it does not click again unless that is safe",
    Placement.CERTAIN: "look at the site, and resolve it to what is there; a worker that reclaims it only verifies",
}
"""What a person should do about a stale task (docs/runbook.md says the same at length)."""


def apply(
    tx: Transaction, now: Instant, event: Event, before: Task, after: Task, actor: Actor, details: Mapping[str, Any]
) -> None:
    """Raise and clear the alerts that belong to an event, given the task before and after it."""
    for kind in CLEARED_BY.get(event, ()):
        alerts.clear(tx, now, kind, after.task_id)
    raised = _raised(event, before, after, actor, details)
    if raised is not None:
        kind, message = raised
        alerts.raise_once(tx, now, kind, after.task_id, message)


def _raised(
    event: Event, before: Task, after: Task, actor: Actor, details: Mapping[str, Any]
) -> tuple[AlertKind, str] | None:
    task_id, placed = after.task_id, f"an order is {after.placement}"
    to_do = _WHAT_TO_DO[after.placement]
    match event:
        case Event.EXPIRE:
            held = f"the lease of task {task_id} held by {before.lease_owner}"
            return AlertKind.TASK_STALE, f"{held} has run out; {placed}: {to_do}"
        case Event.EXPIRE_NOW:
            held = f"the lease of task {task_id} held by {before.lease_owner}"
            return AlertKind.TASK_STALE, f"{held} was ended by {actor.identity}; {placed}: {to_do}"
        case Event.WITHDRAW:
            gone = f"task {task_id} was withdrawn from the queue by {actor.identity}"
            return AlertKind.TASK_STALE, f"{gone}; {placed}: {to_do}"
        case Event.RESTORE:
            return AlertKind.TASK_STALE, (
                f"task {task_id} was {before.status} in the backup that the gateway was restored from; it may have "
                "been ordered since: look at the site and at the worker's journal, then resolve it"
            )
        case Event.FINISH:
            return _raised_by_end(after, actor, details)
        case _:
            return None


def _raised_by_end(task: Task, actor: Actor, details: Mapping[str, Any]) -> tuple[AlertKind, str] | None:
    """Alert if a worker leaves it to a person, or says that nothing came of it although an order is not impossible."""
    if task.status is TaskStatus.NEEDS_HUMAN:
        detail = details.get("detail", "")
        why = f": {detail[:300]}" if detail else ""
        return AlertKind.TASK_NEEDS_HUMAN, f"task {task.task_id} needs a person, at {task.end_state}{why}"
    is_failed = task.status is TaskStatus.FAILED and task.end_state is not OrderState.CANCELLED
    if is_failed and task.placement is not Placement.IMPOSSIBLE:
        return AlertKind.FAILED_IN_DOUBT, (
            f"{actor.worker_id} ended task {task.task_id} as failed although an order is {task.placement}: look at "
            "the site, then resolve it to what you saw"
        )
    return None
