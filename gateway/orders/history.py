"""Writing the history of orders: what happened, who did it, what was refused (docs/specification.md#history)."""

from typing import Any

from gateway.domain.instant import Instant
from gateway.domain.json_writing import dump
from gateway.domain.models import Actor, Task
from gateway.domain.refusals import Refusal
from gateway.domain.states import TaskStatus
from gateway.orders.topics import topic_of
from gateway.store import history
from gateway.store.port import Transaction


def record(
    tx: Transaction,
    now: Instant,
    task: Task,
    kind: str,
    actor: Actor,
    after: TaskStatus | None = None,
    *,
    reason: str = "",
    **details: Any,
) -> None:
    """Append an event of a task, after the change itself; `task` is the task as it was before.

    `after` None: it moves no status. `details` are JSON values, and a token never goes there.
    """
    history.append(
        tx, now, task.task_id, kind, actor,
        moved=(task.status, after or task.status), reason=reason, details_json=dump(details),
    )  # fmt: skip
    tx.notify(topic_of(task.task_id))


def record_general(
    tx: Transaction, now: Instant, kind: str, actor: Actor, *, subject: str = "", reason: str = "", **details: Any
) -> None:
    """Append an event that moves no task: of the whole gateway, or of a task that stays as it is."""
    history.append(tx, now, subject, kind, actor, reason=reason, details_json=dump(details))


def record_refusal(
    tx: Transaction, now: Instant, task: Task, kind: str, actor: Actor, refusal: Refusal, **details: Any
) -> None:
    """Append a refusal, unless the last one of its kind says the same: repeats add nothing."""
    details = refusal_details(refusal, actor, **details)
    if history.last_details(tx, task.task_id, kind) != dump(details):
        record(tx, now, task, kind, actor, reason=refusal.message, **details)


def refusal_details(refusal: Refusal, actor: Actor, **details: Any) -> dict[str, Any]:
    """Return what the history keeps of a refusal: its reason and whom it met, and what else is known."""
    return {"refusal": refusal.reason.value, "by": actor.worker_id or actor.identity, **details}
