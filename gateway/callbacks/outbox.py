"""What is due, and what came of a try: delays grow, and after three days a callback is given up.

The rule: docs/callbacks.md#what-the-gateway-does.

One that can never be delivered is given up at once.
"""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from gateway.domain.callbacks import Delivery
from gateway.domain.instant import Instant, microseconds
from gateway.domain.json_writing import JsonText, dump
from gateway.domain.models import AlertKind
from gateway.orders.history import GATEWAY, clear_alert, raise_alert, record_general
from gateway.store.port import ReadTransaction, Row, Transaction

FIRST_DELAY: Final = timedelta(seconds=5)
LONGEST_DELAY: Final = timedelta(hours=1)
GIVE_UP_AFTER: Final = timedelta(days=3)


def due_endpoints(tx: ReadTransaction, now: Instant, count: int) -> Sequence[str]:
    """Return up to `count` endpoints for which a callback is due, the longest waiting first."""
    return [row["endpoint"] for row in tx.all("callback_endpoints_due", elapsed_us=now.elapsed_us, count=count)]


def next_due(tx: ReadTransaction, now: Instant, endpoint: str) -> Delivery | None:
    """Return the callback for this endpoint that has been due for longest; None if none is."""
    row = tx.one("callback_next_due", endpoint=endpoint, elapsed_us=now.elapsed_us)
    if row is None:
        return None
    return Delivery(
        callback_id=row["callback_id"],
        task_id=row["task_id"],
        url=row["url"],
        endpoint=row["endpoint"],
        body=_body(row),
        attempts=row["attempts"],
        tried_at=now.utc,
    )


def delivered(tx: Transaction, now: Instant, callback_id: str, result: str) -> None:
    """Note that the receiver has taken a callback."""
    tx.change("callback_delivered", callback_id=callback_id, result=result)
    clear_alert(tx, now, AlertKind.CALLBACK_GIVEN_UP, callback_id)


def reschedule(tx: Transaction, now: Instant, callback_id: str, result: str, jitter: float) -> bool:
    """Note that a try failed and put the next one off, by `jitter` times the delay; True if it is given up instead.

    The delay is as long as the delivery has been going on, so it doubles, from 5 s to an hour.
    """
    row = tx.one("callback_get", callback_id=callback_id)
    if row is None:
        return False
    age = timedelta(microseconds=now.elapsed_us - row["since_us"])
    if age >= GIVE_UP_AFTER:
        return _give_up(tx, now, row, result, f"after {GIVE_UP_AFTER.days} days")
    delay = min(max(age, FIRST_DELAY), LONGEST_DELAY) * jitter
    tx.change(
        "callback_put_off",
        callback_id=callback_id,
        due_us=now.elapsed_us + microseconds(delay),
        next_attempt_at=now.later(delay),
        result=result,
    )
    return False


def give_up(tx: Transaction, now: Instant, callback_id: str, result: str) -> None:
    """Give a callback up at once, since no further try can help. A person may still send it again."""
    row = tx.one("callback_get", callback_id=callback_id)
    if row is not None:
        _give_up(tx, now, row, result, "at once")


def _give_up(tx: Transaction, now: Instant, row: Row, result: str, when: str) -> bool:
    """Write down and alert that it is given up; False if it was under way no more."""
    callback_id, subject = row["callback_id"], row["task_id"] or ""
    if tx.change("callback_give_up", callback_id=callback_id, result=result) == 0:
        return False
    record_general(tx, now, "callback_given_up", GATEWAY, subject=subject, reason=result, callback_id=callback_id)
    about = f"of task {row['task_id']} " if row["task_id"] else ""
    raise_alert(
        tx, now, AlertKind.CALLBACK_GIVEN_UP, callback_id,
        f"callback {callback_id} ({row['type']}) {about}to {row['endpoint']} was given up {when}: {result}",
    )  # fmt: skip
    return True


def _body(row: Row) -> str:
    data: dict[str, Any] = json.loads(row["data_json"])
    if row["intent_json"] is not None:
        data["intent"] = JsonText(row["intent_json"])
    return dump({"type": row["type"], "timestamp": row["created_at"], "data": data})
