"""What is due, and what came of a try: delays grow, and after three days a callback is given up.

The rule: docs/callbacks.md#what-the-gateway-does.

One that can never be delivered is given up at once.
"""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from gateway.domain.callbacks import Callback, Delivery, DueCallback
from gateway.domain.instant import Instant, microseconds
from gateway.domain.json_writing import JsonText, dump_document
from gateway.domain.models import GATEWAY, AlertKind
from gateway.orders.history import record_general
from gateway.store import alerts, callbacks
from gateway.store.port import ReadTransaction, Transaction

FIRST_DELAY: Final = timedelta(seconds=5)
LONGEST_DELAY: Final = timedelta(hours=1)
GIVE_UP_AFTER: Final = timedelta(days=3)


def due_endpoints(tx: ReadTransaction, now: Instant, count: int) -> Sequence[str]:
    """Return up to `count` endpoints for which a callback is due, the longest waiting first."""
    return callbacks.endpoints_due(tx, now, count)


def next_due(tx: ReadTransaction, now: Instant, endpoint: str) -> Delivery | None:
    """Return the callback for this endpoint that has been due for longest; None if none is."""
    due = callbacks.next_due(tx, now, endpoint)
    if due is None:
        return None
    callback = due.callback
    return Delivery(
        callback_id=callback.callback_id,
        task_id=callback.task_id,
        url=callback.url,
        endpoint=callback.endpoint,
        body=_body(due),
        attempts=callback.attempts,
        tried_at=now.utc,
    )


def delivered(tx: Transaction, now: Instant, callback_id: str, result: str) -> None:
    """Note that the receiver has taken a callback."""
    callbacks.mark_delivered(tx, callback_id, result)
    alerts.clear(tx, now, AlertKind.CALLBACK_GIVEN_UP, callback_id)


def reschedule(tx: Transaction, now: Instant, callback_id: str, result: str, jitter: float) -> bool:
    """Note that a try failed and put the next one off, by `jitter` times the delay; True if it is given up instead.

    The delay is as long as the delivery has been going on, so it doubles, from 5 s to an hour.
    """
    callback = callbacks.get(tx, callback_id)
    age = timedelta(microseconds=now.elapsed_us - callback.since_us)
    if age >= GIVE_UP_AFTER:
        return _give_up(tx, now, callback, result, f"after {GIVE_UP_AFTER.days} days")
    delay = min(max(age, FIRST_DELAY), LONGEST_DELAY) * jitter
    due_us = now.elapsed_us + microseconds(delay)
    callbacks.put_off(tx, callback_id, due_us=due_us, next_attempt_at=now.later(delay), result=result)
    return False


def give_up(tx: Transaction, now: Instant, callback_id: str, result: str) -> None:
    """Give a callback up at once, since no further try can help. A person may still send it again."""
    _give_up(tx, now, callbacks.get(tx, callback_id), result, "at once")


def _give_up(tx: Transaction, now: Instant, callback: Callback, result: str, when: str) -> bool:
    """Write down and alert that it is given up; False if it was under way no more."""
    callback_id, subject = callback.callback_id, callback.task_id or ""
    if not callbacks.give_up(tx, callback_id, result):
        return False
    record_general(tx, now, "callback_given_up", GATEWAY, subject=subject, reason=result, callback_id=callback_id)
    about = f"of task {callback.task_id} " if callback.task_id else ""
    alerts.raise_once(
        tx, now, AlertKind.CALLBACK_GIVEN_UP, callback_id,
        f"callback {callback_id} ({callback.type}) {about}to {callback.endpoint} was given up {when}: {result}",
    )  # fmt: skip
    return True


def _body(due: DueCallback) -> str:
    data: dict[str, Any] = json.loads(due.data_json)
    if due.intent_json is not None:
        data["intent"] = JsonText(due.intent_json)
    return dump_document({"type": due.callback.type, "timestamp": due.callback.created_at, "data": data})
