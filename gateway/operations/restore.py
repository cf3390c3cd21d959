"""After a restore: dispatch is paused, and every open task counts as permitted (docs/specification.md#restore).

Nobody knows what happened between the backup and the restore: a task that was queued then may have been leased, even
clicked. So each open task turns stale with a lease on it that nobody can hold, permitted and ended now, of a journal
that no worker has. From then on the ordinary rules keep it: no further permit is granted for it, and a person may
resolve it to failed only after the settle time.
"""

from collections.abc import Callable

from gateway.domain.instant import Instant
from gateway.domain.models import Actor, Task
from gateway.domain.states import ACTIVE, TaskStatus
from gateway.domain.transitions import Event
from gateway.orders.history import record_general
from gateway.orders.transition import transition
from gateway.store import approvals, leases, pauses, restores, tasks
from gateway.store.port import Transaction


def mark_restored(tx: Transaction, now: Instant, backup: str, actor: Actor, new_token: Callable[[], str]) -> int:
    """Pause all dispatch and mark every open task; return how many there were. `backup` is the backup's file name."""
    reason = f"restored from {backup}: what happened after that backup is not known"
    restores.add(tx, now, reason)
    pauses.add(tx, now, "", reason, actor)
    record_general(tx, now, Event.RESTORE, actor, reason=reason)
    opened = tasks.open_at_restore(tx)
    for task in opened:
        _mark(tx, now, task, actor, reason, new_token())
    return len(opened)


def _mark(tx: Transaction, now: Instant, task: Task, actor: Actor, reason: str, token: str) -> None:
    if task.status in ACTIVE:
        leases.end(tx, now, task)
    # It may have been used since.
    approvals.end(tx, now, task.task_id)
    number = task.lease_count + 1
    marked = transition(
        tx, now, task, Event.RESTORE, TaskStatus.STALE, actor,
        reason=reason,
        details={"lease_count": number},
        lease_count=number, may_have_clicked=True, submit_permitted_at=now.utc, end_state=None, end_status=None,
    )  # fmt: skip
    leases.add_unknown(tx, now, marked, token)
