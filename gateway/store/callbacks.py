"""The outbox of callbacks in the database."""

from gateway.domain.callbacks import Callback, CallbackStatus, DueCallback, endpoint_of
from gateway.domain.instant import Instant
from gateway.store.port import ABOVE_ALL_ROWS, ReadTransaction, Row, Transaction


def add(
    tx: Transaction, now: Instant, callback_id: str, task_id: str | None, url: str, kind: str, data_json: str
) -> None:
    """File a callback, due now; `task_id` None for a test."""
    tx.insert(
        "callback_file",
        callback_id=callback_id,
        task_id=task_id,
        url=url,
        endpoint=endpoint_of(url),
        type=kind,
        data_json=data_json,
        at=now.utc,
        elapsed_us=now.elapsed_us,
    )


def find(tx: ReadTransaction, callback_id: str) -> Callback | None:
    """Return the callback, or None."""
    row = tx.one("callback_get", callback_id=callback_id)
    return None if row is None else _callback(row)


def get(tx: ReadTransaction, callback_id: str) -> Callback:
    """Return a callback that is known to exist. Raises LookupError."""
    callback = find(tx, callback_id)
    if callback is None:
        raise LookupError(f"callback {callback_id} should exist")
    return callback


def endpoints_due(tx: ReadTransaction, now: Instant, count: int) -> list[str]:
    """Return up to `count` endpoints for which a callback is due, the longest waiting first."""
    return [row["endpoint"] for row in tx.all("callback_endpoints_due", elapsed_us=now.elapsed_us, count=count)]


def next_due(tx: ReadTransaction, now: Instant, endpoint: str) -> DueCallback | None:
    """Return the callback for this endpoint that has been due for longest; None if none is."""
    row = tx.one("callback_next_due", endpoint=endpoint, elapsed_us=now.elapsed_us)
    return None if row is None else DueCallback(_callback(row), row["data_json"], row["intent_json"])


def newest(
    tx: ReadTransaction,
    status: CallbackStatus | None,
    task_id: str | None,
    *,
    below: int = ABOVE_ALL_ROWS,
    count: int,
) -> list[Callback]:
    """Return up to `count` callbacks of rows below `below`, newest first."""
    if status is not None and task_id is not None:
        rows = tx.all("callbacks_newest_by_status_and_task", status=status, task_id=task_id, below=below, count=count)
    elif status is not None:
        rows = tx.all("callbacks_newest_by_status", status=status, below=below, count=count)
    elif task_id is not None:
        rows = tx.all("callbacks_newest_by_task", task_id=task_id, below=below, count=count)
    else:
        rows = tx.all("callbacks_newest", below=below, count=count)
    return [_callback(row) for row in rows]


def mark_delivered(tx: Transaction, callback_id: str, result: str) -> None:
    """Write down that the receiver took it. Raises RowCountError if it is not pending."""
    tx.change_one("callback_delivered", callback_id=callback_id, result=result)


def put_off(tx: Transaction, callback_id: str, *, due_us: int, next_attempt_at: str, result: str) -> None:
    """Write down that a try failed and when the next one is due. Raises RowCountError if it is not pending.

    `due_us` is of the service clock, `next_attempt_at` UTC text for people.
    """
    tx.change_one(
        "callback_put_off", callback_id=callback_id, due_us=due_us, next_attempt_at=next_attempt_at, result=result
    )


def give_up(tx: Transaction, callback_id: str, result: str) -> bool:
    """Give a callback up; False, and nothing is changed, if it is not pending."""
    return tx.change("callback_give_up", callback_id=callback_id, result=result) == 1


def replay(tx: Transaction, now: Instant, callback_id: str) -> None:
    """Make a callback, whatever became of it, pending and due at once."""
    tx.change_one("callback_replay", callback_id=callback_id, at=now.utc, elapsed_us=now.elapsed_us)


def _callback(row: Row) -> Callback:
    return Callback(
        row=row["row"],
        callback_id=row["callback_id"],
        task_id=row["task_id"],
        url=row["url"],
        endpoint=row["endpoint"],
        type=row["type"],
        status=CallbackStatus(row["status"]),
        attempts=row["attempts"],
        created_at=row["created_at"],
        since_us=row["since_us"],
        next_attempt_at=row["next_attempt_at"],
        last_result=row["last_result"],
    )
