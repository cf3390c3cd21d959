"""After a restore: dispatch is paused, and every open task counts as permitted (docs/specification.md#restore).

Nobody knows what happened between the backup and the restore: a task that was queued then may have been leased, even
clicked. So each open task turns stale with a lease on it that nobody can hold, permitted and ended now, of a journal
that no worker has. From then on the ordinary rules keep it: no further permit is granted for it, and a person may
resolve it to failed only after the settle time.
"""

from collections.abc import Callable
from typing import Final

from gateway.domain.instant import Instant
from gateway.domain.models import Actor, AlertKind, Task
from gateway.domain.operations import UNKNOWN_JOURNAL, UNKNOWN_WORKER
from gateway.domain.states import ACTIVE, TaskStatus
from gateway.orders.history import clear_alert, raise_alert, record, record_general
from gateway.store.port import Transaction
from gateway.store.rows import task_from

KIND: Final = "restore"


def mark_restored(tx: Transaction, now: Instant, backup: str, actor: Actor, new_token: Callable[[], str]) -> int:
    """Pause all dispatch and mark every open task; return how many there were. `backup` is the backup's file name."""
    reason = f"restored from {backup}: what happened after that backup is not known"
    tx.change("pause_set", site="", at=now.utc, by=actor.identity, reason=reason)
    record_general(tx, now, KIND, actor, reason=reason)
    tasks = [task_from(row) for row in tx.all("tasks_open")]
    for task in tasks:
        _mark(tx, now, task, actor, reason, new_token())
    return len(tasks)


def _mark(tx: Transaction, now: Instant, task: Task, actor: Actor, reason: str, token: str) -> None:
    if task.status in ACTIVE:
        tx.change(
            "lease_end", task_id=task.task_id, lease_number=task.lease_count, at=now.utc, elapsed_us=now.elapsed_us
        )
    number = task.lease_count + 1
    tx.change("task_restore_as_permitted", task_id=task.task_id, lease_number=number, at=now.utc)
    tx.change(
        "lease_of_the_unknown",
        task_id=task.task_id,
        lease_number=number,
        token=token,
        worker_id=UNKNOWN_WORKER,
        journal_id=UNKNOWN_JOURNAL,
        at=now.utc,
        elapsed_us=now.elapsed_us,
    )
    record(tx, now, task, KIND, actor, TaskStatus.STALE, reason=reason, lease_count=number)
    clear_alert(tx, now, AlertKind.TASK_NEEDS_HUMAN, task.task_id)
    raise_alert(
        tx, now, AlertKind.TASK_STALE, task.task_id,
        f"task {task.task_id} was {task.status} in the backup that the gateway was restored from; it may have been "
        "ordered since: look at the site and at the worker's journal, then resolve it",
    )  # fmt: skip
