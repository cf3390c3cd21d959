"""What a person does with callbacks: look, send one again, send a test."""

from typing import Final

from gateway.domain.callbacks import Callback, CallbackStatus
from gateway.domain.instant import Instant
from gateway.domain.models import Actor
from gateway.domain.paging import Page
from gateway.domain.refusals import Reason, Refusal
from gateway.orders.callbacks import file_callback
from gateway.orders.history import record_general
from gateway.store import callbacks
from gateway.store.port import ABOVE_ALL_ROWS, ReadTransaction, Transaction

TEST: Final = "order.test"


def list_callbacks(
    tx: ReadTransaction,
    _now: Instant,
    status: CallbackStatus | None,
    task_id: str | None,
    below: int | None,
    count: int,
) -> Page[Callback, int]:
    """Return up to `count` callbacks of rows smaller than `below` (None: from the newest), newest first."""
    found = callbacks.newest(tx, status, task_id, below=ABOVE_ALL_ROWS if below is None else below, count=count + 1)
    page = tuple(found[:count])
    return Page(page, page[-1].row if len(found) > count else None)


def replay(tx: Transaction, now: Instant, callback_id: str, actor: Actor) -> Callback | Refusal:
    """Send a callback again at once, with its old id, for three days if need be; its alert clears when it is taken."""
    callback = callbacks.find(tx, callback_id)
    if callback is None:
        return Refusal(Reason.CALLBACK_NOT_FOUND, f"there is no callback {callback_id}")
    record_general(tx, now, "replay_callback", actor, subject=callback.task_id or "", callback_id=callback_id)
    callbacks.replay(tx, now, callback_id)
    return callbacks.get(tx, callback_id)


def send_test(tx: Transaction, now: Instant, url: str, actor: Actor) -> Callback:
    """File a callback of type `order.test`, which concerns no task."""
    record_general(tx, now, "test_callback", actor)
    data = {"message": "a test of the callbacks of order-gateway; it concerns no task"}
    return callbacks.get(tx, file_callback(tx, now, None, url, TEST, data))
