"""Filing callbacks in the transaction of the change that they tell of (docs/specification.md#callbacks)."""

import hashlib
from typing import Any, Final

from gateway.domain.instant import Instant
from gateway.domain.json_writing import dump_document
from gateway.domain.models import Task
from gateway.domain.states import TaskStatus
from gateway.store import callbacks, history
from gateway.store.port import Transaction
from gateway.store.reports import with_reports
from gateway.task_document import task_document

CALLED_BACK: Final = frozenset({TaskStatus.SUCCEEDED, TaskStatus.FAILED, TaskStatus.NEEDS_HUMAN, TaskStatus.STALE})
"""Whoever filed the task is told when it comes into one of these."""


def call_back(tx: Transaction, now: Instant, task: Task, kind: str = "") -> None:
    """Tell the task's upstream how the task stands now, unless it named no address; `kind` empty: by its status."""
    if task.callback_url is None:
        return
    # The intent, which never changes, is put in on the way out.
    data = task_document(with_reports(tx, task)) | {"intent": None}
    file_callback(tx, now, task.task_id, task.callback_url, kind or f"order.{task.status}", data)


def file_callback(tx: Transaction, now: Instant, task_id: str | None, url: str, kind: str, data: dict[str, Any]) -> str:
    """Put a callback into the outbox and return its id. An event that tells of it must have been appended before."""
    # Not the event's number alone: after a restore the same number may stand for another event.
    told = f"{history.last_sequence(tx)} {now.utc} {kind} {task_id} {url}"
    callback_id = f"cb_{hashlib.sha256(told.encode()).hexdigest()[:32]}"
    callbacks.add(tx, now, callback_id, task_id, url, kind, dump_document(data))
    return callback_id
