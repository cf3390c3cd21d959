"""The history and the alerts: what happened, who did it, what a person should look at.

The rule: docs/specification.md#history.
"""

import json
from typing import Any, Final

from gateway.domain.instant import Instant
from gateway.domain.models import Actor, AlertKind, Task
from gateway.domain.refusals import Refusal
from gateway.domain.states import TaskStatus
from gateway.orders.callbacks import CALLED_BACK, call_back
from gateway.store.port import Transaction

GATEWAY: Final = Actor("gateway")
"""The actor of what the gateway does by itself."""

QUEUE: Final = "queue"
"""Topic of everything that may let a waiting lease go on."""


def topic_of(task_id: str) -> str:
    """Return the topic of every change of one task."""
    return f"task:{task_id}"


def record(
    tx: Transaction,
    now: Instant,
    task: Task,
    kind: str,
    actor: Actor,
    after: TaskStatus,
    *,
    before: TaskStatus | None = None,
    reason: str = "",
    **details: Any,
) -> None:
    """Append an event of a task, after the change itself; `details` are JSON values, and a token never goes there.

    Every change of a status passes here, so this is where callbacks are filed.
    """
    before = before or task.status
    tx.change(
        "event_append",
        at=now.utc,
        subject=task.task_id,
        kind=kind,
        actor=actor.identity,
        worker_id=actor.worker_id,
        before=before,
        after=after,
        reason=reason,
        details_json=_json(details),
    )
    if after is not before and after in CALLED_BACK and task.callback_url is not None:
        call_back(tx, now, task.task_id)
    tx.notify(topic_of(task.task_id))


def record_general(
    tx: Transaction, now: Instant, kind: str, actor: Actor, *, subject: str = "", reason: str = "", **details: Any
) -> None:
    """Append an event that moves no task: of the whole gateway, or of a task that stays as it is."""
    tx.change(
        "event_append",
        at=now.utc,
        subject=subject,
        kind=kind,
        actor=actor.identity,
        worker_id=actor.worker_id,
        before=None,
        after=None,
        reason=reason,
        details_json=_json(details),
    )


def record_refusal(
    tx: Transaction, now: Instant, task: Task, kind: str, actor: Actor, refusal: Refusal, **details: Any
) -> None:
    """Append a refusal, unless the last one of its kind says the same: repeats add nothing."""
    details = {"refusal": refusal.reason.value, "by": actor.worker_id or actor.identity, **details}
    last = tx.one("event_last_of_kind", subject=task.task_id, kind=kind)
    if last is None or last["details_json"] != _json(details):
        record(tx, now, task, kind, actor, task.status, reason=refusal.message, **details)


def record_late(
    tx: Transaction, now: Instant, task: Task, kind: str, actor: Actor, refusal: Refusal, **details: Any
) -> bool:
    """Append what came too late to count, unless the history has it; tell whether it was new."""
    details = {"refusal": refusal.reason.value, "by": actor.worker_id or actor.identity, **details}
    if tx.one("event_same", subject=task.task_id, kind=kind, details_json=_json(details)) is not None:
        return False
    record(tx, now, task, kind, actor, task.status, reason=refusal.message, **details)
    return True


def raise_alert(tx: Transaction, now: Instant, kind: AlertKind, subject: str, message: str) -> bool:
    """Raise an alert; one that stands is not raised again. Tell whether it was raised."""
    raised = tx.one("alert_raise", kind=kind, subject=subject, message=message, at=now.utc)
    if raised is None:
        return False
    tx.change("alert_delivery_add", alert_id=raised["alert_id"], edge="raised", elapsed_us=now.elapsed_us)
    return True


def clear_alert(tx: Transaction, now: Instant, kind: AlertKind, subject: str) -> None:
    """Clear an alert if it stands."""
    standing = tx.one("alert_standing", kind=kind, subject=subject)
    if standing is not None:
        tx.change("alert_clear", alert_id=standing["alert_id"], at=now.utc)
        tx.change("alert_delivery_add", alert_id=standing["alert_id"], edge="cleared", elapsed_us=now.elapsed_us)


def _json(details: dict[str, Any]) -> str:
    return json.dumps(details, ensure_ascii=False, separators=(",", ":"))
