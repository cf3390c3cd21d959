"""Writing the history of orders: what happened, who did it, what was refused (docs/specification.md#history)."""

from typing import Any, Final

from gateway.domain.instant import Instant
from gateway.domain.json_writing import dump
from gateway.domain.models import Actor, Task
from gateway.domain.refusals import Refusal
from gateway.domain.states import TaskStatus
from gateway.orders.topics import topic_of
from gateway.store import history
from gateway.store.port import Transaction

MAX_REFUSALS: Final = 200
"""Events of one kind of refusal that a task's history takes from one identity."""


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
        moved=(task.status, after or task.status), reason=reason, details_json=_details(actor, details),
    )  # fmt: skip
    tx.notify(topic_of(task.task_id))


def record_general(
    tx: Transaction, now: Instant, kind: str, actor: Actor, *, subject: str = "", reason: str = "", **details: Any
) -> None:
    """Append an event that moves no task: of the whole gateway, or of a task that stays as it is."""
    history.append(tx, now, subject, kind, actor, reason=reason, details_json=_details(actor, details))


def record_refusal(
    tx: Transaction, now: Instant, task: Task, kind: str, actor: Actor, refusal: Refusal, **details: Any
) -> None:
    """Append a refusal, unless the last one of its kind to this identity says the same, or there were enough."""
    details = refusal_details(refusal, actor, **details)
    if history.last_details(tx, task.task_id, kind, actor) == dump(details):
        return
    if history.are_as_many(tx, task.task_id, kind, actor, MAX_REFUSALS):
        return
    is_last = history.are_as_many(tx, task.task_id, kind, actor, MAX_REFUSALS - 1)
    more = f"; further ones of {actor.identity} are not written down" if is_last else ""
    record(tx, now, task, kind, actor, reason=refusal.message + more, **details)


def refusal_details(refusal: Refusal, actor: Actor, **details: Any) -> dict[str, Any]:
    """Return what the history keeps of a refusal: its reason and whom it met, and what else is known."""
    return {"refusal": refusal.reason.value, "by": actor.worker_id or actor.identity, **details}


def _details(actor: Actor, details: dict[str, Any]) -> str:
    return dump(details if actor.confirmed_by is None else {**details, "confirmed_by": actor.confirmed_by})
