"""Expiry: a lease that has run out turns its task stale, and only a person moves it on (specification, section 2).

Expiry is judged at use as well as by the sweep, always by the service clock.
"""

from gateway.domain.models import Actor, AlertKind, Task
from gateway.domain.moment import Moment
from gateway.domain.states import ACTIVE, TaskStatus
from gateway.domain.transitions import Event
from gateway.orders.history import GATEWAY, QUEUE, raise_alert, record
from gateway.store.port import Transaction
from gateway.store.rows import get_task, task_from


def has_lapsed(task: Task, now: Moment) -> bool:
    """Tell whether the task's lease has run out: it holds until one tick before its deadline."""
    return task.status in ACTIVE and task.lease_deadline_us is not None and now.elapsed_us >= task.lease_deadline_us


def expire_lapsed(tx: Transaction, now: Moment) -> int:
    """Turn every task whose lease has run out stale; return how many there were."""
    lapsed = [task_from(row) for row in tx.all("tasks_lapsed", elapsed_us=now.elapsed_us)]
    for task in lapsed:
        expire(tx, now, task)
    return len(lapsed)


def expire(
    tx: Transaction,
    now: Moment,
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
        "look at the site, then reclaim, requeue or resolve it",
    )  # fmt: skip
    tx.hint(QUEUE)
    return get_task(tx, task.task_id)
