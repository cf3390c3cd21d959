"""The test of every await is a test only if it finds what it looks for: each guard is taken out, and it must notice."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from gateway.api.auth.admission import Admission
from gateway.api.grpc.handlers import Running
from gateway.api.grpc.incoming import Places
from gateway.dispatch.dispatcher import Dispatcher
from gateway.dispatch.notifier import Notifier
from gateway.store.sqlite.engine import SqliteStore
from gateway.store.sqlite.transaction import SqliteTransaction
from gateway.store.sqlite.writer import GroupWriter
from tests.cancellation.calls import CASES
from tests.cancellation.test_every_await import break_off_everywhere


async def _transaction_of_the_caller(self: Any, operation: Any, /, *args: Any, **kwargs: Any) -> Any:
    notified: set[str] = set()
    connection = self._writer._connection
    connection.execute("BEGIN IMMEDIATE")
    result = operation(SqliteTransaction(connection, notified), self._clock.now(), *args, **kwargs)
    await asyncio.sleep(0.0005)
    connection.execute("COMMIT")
    self._writer._publish(notified)
    return result


async def _open_without_a_shield(self: Any, waiter: Any) -> Any:
    return await self._store.write(self._source.open, waiter.request)


def _leave_without_giving_back(self: Any, waiter: Any) -> None:
    self._drop(waiter)
    self._superseded.discard(waiter)
    self._latest.clear()


def _stay_in_line(self: Any, waiter: Any) -> None:
    if waiter.future.done() and not waiter.handed_over:
        self._send(self._release(waiter.request, waiter.future.result()))


def _deliver_to_the_gone(self: Any, taken: Any) -> None:
    for waiter, lease in taken:
        waiter.future.set_result(lease)
        self._drop(waiter)


def _answer_whoever_has_gone(self: Any, group: Any) -> None:
    for job in group:
        job.future.set_result(job.result)


@contextmanager
def _waiting_without_an_end(self: Any, _call: Any) -> Iterator[None]:
    self._waiters += 1
    yield
    self._waiters -= 1


def _count_for_ever(self: Any, error: Any, *_: Any) -> None:
    if error is None:
        self.calls -= 1
        self._one_ended.set()


def _stay_where_it_is(self: Any, error: Any, *_: Any) -> None:
    self._taken -= error is None


HELD, NOBODY = "held after", "leased to nobody"
BROKEN: dict[str, tuple[str, str, Any, str, Any]] = {
    "a transaction that belongs to the caller": (
        "SubmitOrder", HELD, SqliteStore, "write", _transaction_of_the_caller,
    ),
    "an opening that is cancelled with its caller": (
        "LeaseOrders, at once", NOBODY, Dispatcher, "_open", _open_without_a_shield,
    ),
    "a lease that is not given back": ("LeaseQueries, later", NOBODY, Dispatcher, "_leave", _leave_without_giving_back),
    "a waiter that stays in line": ("LeaseOrders, later", HELD, Dispatcher, "_leave", _stay_in_line),
    "a delivery to whoever has gone": ("LeaseOrders, later", NOBODY, Dispatcher, "_deliver", _deliver_to_the_gone),
    "an answer to whoever has gone": ("PauseDispatch", HELD, GroupWriter, "_answer", _answer_whoever_has_gone),
    "a subscription that stays": ("WatchOrder", HELD, Notifier, "_remove", lambda *_: None),
    "a place among the waiters that stays taken": ("WatchQuery", HELD, Admission, "waiting", _waiting_without_an_end),
    "a call that is counted for ever": ("WatchOrder", HELD, Running, "__exit__", _count_for_ever),
    "a place among the unread that stays taken": ("WatchOrder", HELD, Places, "__exit__", _stay_where_it_is),
}  # fmt: skip
"""What is broken: the call that finds it out, what is found, and what takes the guard's place."""


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_guard_is_noticed(name: str) -> None:
    found_by, finding, owner, attribute, broken = BROKEN[name]
    (case,) = (case for case in CASES if str(case) == found_by)
    with patch.object(owner, attribute, broken), pytest.raises(AssertionError, match=finding):
        break_off_everywhere(case)
