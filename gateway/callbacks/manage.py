"""What a person does with callbacks: look, send one again, send a test."""

from typing import Final

from gateway.domain.callbacks import Callback, CallbackPage, CallbackStatus
from gateway.domain.instant import Instant
from gateway.domain.models import Actor
from gateway.domain.refusals import Reason, Refusal
from gateway.orders.callbacks import file_callback
from gateway.orders.history import record_general
from gateway.store.port import ReadTransaction, Row, Transaction

TEST: Final = "order.test"
_ABOVE_ALL: Final = 2**63 - 1


def list_callbacks(
    tx: ReadTransaction,
    _now: Instant,
    status: CallbackStatus | None,
    task_id: str | None,
    below: int | None,
    count: int,
) -> CallbackPage:
    """Return up to `count` callbacks of rows smaller than `below` (None: from the newest), newest first."""
    suffix, filters = "", {}
    if status is not None:
        suffix, filters["status"] = "_by_status", status.value
    if task_id is not None:
        suffix += "_and_task" if suffix else "_by_task"
        filters["task_id"] = task_id
    rows = tx.all("callbacks_newest" + suffix, below=_ABOVE_ALL if below is None else below, count=count + 1, **filters)
    callbacks = tuple(_callback(row) for row in rows[:count])
    return CallbackPage(callbacks, callbacks[-1].row if len(rows) > count else None)


def replay(tx: Transaction, now: Instant, callback_id: str, actor: Actor) -> Callback | Refusal:
    """Send a callback again at once, with its old id, for three days if need be; its alert clears when it is taken."""
    row = tx.one("callback_get", callback_id=callback_id)
    if row is None:
        return Refusal(Reason.CALLBACK_NOT_FOUND, f"there is no callback {callback_id}")
    record_general(tx, now, "replay_callback", actor, subject=row["task_id"] or "", callback_id=callback_id)
    tx.change("callback_replay", callback_id=callback_id, at=now.utc, elapsed_us=now.elapsed_us)
    return _get(tx, callback_id)


def send_test(tx: Transaction, now: Instant, url: str, actor: Actor) -> Callback:
    """File a callback of type `order.test`, which concerns no task."""
    record_general(tx, now, "test_callback", actor)
    data = {"message": "a test of the callbacks of order-gateway; it concerns no task"}
    return _get(tx, file_callback(tx, now, None, url, TEST, data))


def _get(tx: ReadTransaction, callback_id: str) -> Callback:
    row = tx.one("callback_get", callback_id=callback_id)
    if row is None:
        raise LookupError(f"callback {callback_id} should exist")
    return _callback(row)


def _callback(row: Row) -> Callback:
    return Callback(
        row=row["row"],
        callback_id=row["callback_id"],
        task_id=row["task_id"],
        url=row["url"],
        type=row["type"],
        status=CallbackStatus(row["status"]),
        attempts=row["attempts"],
        created_at=row["created_at"],
        next_attempt_at=row["next_attempt_at"],
        last_result=row["last_result"],
    )
