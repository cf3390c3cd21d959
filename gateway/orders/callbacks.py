"""Filing callbacks in the transaction of the change that they tell of (docs/specification.md#callbacks)."""

import hashlib
from typing import Any, Final

from gateway.domain.callbacks import endpoint_of
from gateway.domain.instant import Instant
from gateway.domain.json_writing import dump
from gateway.domain.states import TaskStatus
from gateway.domain.task_document import task_document
from gateway.store.port import Transaction
from gateway.store.rows import get_task, with_reports

CALLED_BACK: Final = frozenset({TaskStatus.SUCCEEDED, TaskStatus.FAILED, TaskStatus.NEEDS_HUMAN, TaskStatus.STALE})
"""Whoever filed the task is told when it comes into one of these."""


def call_back(tx: Transaction, now: Instant, task_id: str) -> None:
    """Tell the task's upstream how the task stands now, unless it named no address."""
    task = get_task(tx, task_id)
    if task.callback_url is None:
        return
    # The intent, which never changes, is put in on the way out.
    data = task_document(with_reports(tx, task)) | {"intent": None}
    file_callback(tx, now, task_id, task.callback_url, f"order.{task.status}", data)


def file_callback(tx: Transaction, now: Instant, task_id: str | None, url: str, kind: str, data: dict[str, Any]) -> str:
    """Put a callback into the outbox and return its id. An event that tells of it must have been appended before."""
    event = tx.one("event_last")
    # Not the event's number alone: after a restore the same number may stand for another event.
    told = f"{0 if event is None else event['sequence']} {now.utc} {kind} {task_id} {url}"
    callback_id = f"cb_{hashlib.sha256(told.encode()).hexdigest()[:32]}"
    tx.change(
        "callback_file",
        callback_id=callback_id,
        task_id=task_id,
        url=url,
        endpoint=endpoint_of(url),
        type=kind,
        data_json=dump(data),
        at=now.utc,
        elapsed_us=now.elapsed_us,
    )
    return callback_id
