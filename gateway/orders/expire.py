"""Expiry: a lease that has run out turns its task stale, and only a person moves it on (docs/specification.md#expiry).

Expiry is judged at use as well as by the sweep, always by the service clock.
"""

from typing import Final

from gateway.domain.instant import Instant
from gateway.domain.models import Actor, AlertKind, Task
from gateway.domain.states import ACTIVE, Placement, TaskStatus
from gateway.domain.transitions import Event
from gateway.orders.history import GATEWAY, QUEUE, raise_alert, record
from gateway.store.port import Transaction
from gateway.store.rows import get_task, task_from

_WHAT_TO_DO: Final = {
    Placement.IMPOSSIBLE: "it can be reclaimed or requeued at once, or resolved to failed",
    Placement.POSSIBLE: "look at the site first, then resolve it to what you saw; reclaim or requeue only lets a "
    "worker verify there, and it does not click again unless that is safe",
    Placement.CERTAIN: "look at the site, and resolve it to what is there; a worker that reclaims it only verifies",
}


def is_lease_due(task: Task, now: Instant) -> bool:
    """Tell whether the task's lease has run out: it holds until one tick before its deadline."""
    return task.status in ACTIVE and task.lease_deadline_us is not None and now.elapsed_us >= task.lease_deadline_us


def what_to_do(placement: Placement) -> str:
    """Say what a person should do about a stale task, for its alert (docs/runbook.md says the same at length)."""
    return _WHAT_TO_DO[placement]


def expire_due(tx: Transaction, now: Instant) -> int:
    """Turn every task whose lease has run out stale; return how many there were."""
    lapsed = [task_from(row) for row in tx.all("tasks_lapsed", elapsed_us=now.elapsed_us)]
    for task in lapsed:
        expire(tx, now, task)
    return len(lapsed)


def expire(
    tx: Transaction,
    now: Instant,
    task: Task,
    actor: Actor = GATEWAY,
    reason: str = "",
    event: Event = Event.EXPIRE,
) -> Task:
    """Turn an active task stale and return it as it is then; `event` says whether time did it or a person."""
    tx.change("task_turn_stale", task_id=task.task_id, at=now.utc)
    tx.change("lease_end", task_id=task.task_id, lease_number=task.lease_count, at=now.utc, elapsed_us=now.elapsed_us)
    record(
        tx, now, task, event, Actor(actor.identity, task.lease_owner), TaskStatus.STALE,
        reason=reason, expires_at=task.lease_expires_at,
    )  # fmt: skip
    ended = "has run out" if event is Event.EXPIRE else f"was ended by {actor.identity}"
    raise_alert(
        tx, now, AlertKind.TASK_STALE, task.task_id,
        f"the lease of task {task.task_id} held by {task.lease_owner} {ended}; an order is {task.placement}: "
        + what_to_do(task.placement),
    )  # fmt: skip
    tx.notify(QUEUE)
    return get_task(tx, task.task_id)
