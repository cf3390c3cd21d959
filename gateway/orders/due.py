"""What time brings about: leases that run out, orders whose time has come, and orders that nobody took in time.

Judged at use as well as by the sweeps (docs/specification.md#times).
"""

from typing import Final

from gateway.domain.instant import Instant
from gateway.domain.models import GATEWAY, Task
from gateway.domain.states import TaskStatus
from gateway.domain.transitions import Event
from gateway.orders.expire import expire_due
from gateway.orders.topics import notify_queue
from gateway.orders.transition import transition
from gateway.store import approvals, tasks
from gateway.store.port import Transaction

BATCH: Final = 200
"""So many tasks are ended, or released, in one transaction, so that others get their turn."""


def bring_up_to_date(tx: Transaction, now: Instant) -> None:
    """Write down what time has brought about, up to a batch of each; in one read if it is nothing."""
    due = tasks.due(tx, now)
    if due.lapsed:
        expire_due(tx, now)
    if due.late:
        end_late(tx, now)
    if due.unapproved:
        hold_unapproved(tx, now)
    if due.held:
        release_held(tx, now)


def is_late(task: Task, now: Instant) -> bool:
    """Tell whether the task's time has passed: at its not_after itself it has not."""
    return task.not_after is not None and now.utc > task.not_after


def end_late(tx: Transaction, now: Instant) -> int:
    """End queued tasks whose time has passed and of which an order is impossible; return how many, a batch at most.

    Where an order may be there a worker is to look at the site first; it gets no permit any more.
    """
    late = tasks.late(tx, now, BATCH)
    for task in late:
        why = "too late, never taken" if task.lease_count == 0 else "too late, not taken again; nothing was ordered"
        transition(tx, now, task, Event.TOO_LATE, TaskStatus.FAILED, GATEWAY, reason=why)
    return len(late)


def hold_unapproved(tx: Transaction, now: Instant) -> int:
    """End approvals that have run out; hold again what they had let into the queue. Return how many, up to a batch."""
    found = approvals.run_out(tx, now, BATCH)
    for task_id in found:
        approvals.end(tx, now, task_id)
        task = tasks.get(tx, task_id)
        if task.status is TaskStatus.QUEUED:
            transition(tx, now, task, Event.APPROVAL_EXPIRE, TaskStatus.QUEUED, GATEWAY)
    return len(found)


def release_held(tx: Transaction, now: Instant) -> int:
    """Let tasks whose time has come be handed out; return how many, a batch at most."""
    released = tasks.release(tx, now, BATCH)
    for target in dict.fromkeys(released):
        notify_queue(tx, target)
    return len(released)
