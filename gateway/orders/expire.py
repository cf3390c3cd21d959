"""Expiry: a lease that has expired turns its task stale, and only a person moves it on (docs/specification.md#expiry).

Expiry is judged at use as well as by the sweep, always by the service clock.
"""

from gateway.domain.instant import Instant
from gateway.domain.models import GATEWAY, Actor, Task
from gateway.domain.states import ACTIVE, TaskStatus
from gateway.domain.transitions import Event
from gateway.orders.transition import transition
from gateway.store import leases, tasks
from gateway.store.port import Transaction


def is_lease_due(task: Task, now: Instant) -> bool:
    """Tell whether the task's lease has expired: it holds until one tick before its deadline."""
    return task.status in ACTIVE and task.lease_deadline_us is not None and now.elapsed_us >= task.lease_deadline_us


def expire_due(tx: Transaction, now: Instant) -> int:
    """Turn every task whose lease has expired stale; return how many there were."""
    lapsed = tasks.lapsed(tx, now)
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
    leases.end(tx, now, task)
    return transition(
        tx, now, task, event, TaskStatus.STALE, Actor(actor.identity, task.lease_owner),
        reason=reason, details={"expires_at": task.lease_expires_at},
    )  # fmt: skip
