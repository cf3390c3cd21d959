"""The one transition function: what the table does not allow and what moves no row is a fault that changes nothing."""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import gateway.orders.transition
from gateway.domain.models import Actor, Task
from gateway.domain.operations import Resolution
from gateway.domain.states import OrderState, TaskStatus
from gateway.domain.transitions import TRANSITIONS, Event
from gateway.operations.actions import requeue, resolve, withdraw
from gateway.operations.restore import mark_restored
from gateway.orders.transition import TransitionError, transition
from gateway.store import tasks
from gateway.store.named_sql import statements
from gateway.store.port import RowCountError
from tests.gateway.orders.test_transitions import in_status
from tests.gateway.support import databases
from tests.gateway.support.book import Book

S = TaskStatus
PERSON = Actor("operator")
Missing = Callable[[], AbstractContextManager[None]]


def everything(book: Book) -> list[list[dict[str, Any]]]:
    tables = ("tasks", "leases", "events", "alerts", "alert_deliveries", "callbacks")
    return [book.rows(f"SELECT * FROM {table}") for table in tables]  # noqa: S608 -- own names


def a_target_that_the_table_does_not_name_is_refused(book: Book, event: Event, status: TaskStatus) -> None:
    in_status(book, status)
    task, before = book.task(), everything(book)
    for to in set(TaskStatus) - TRANSITIONS.get((event, status), frozenset()):
        with pytest.raises(TransitionError):
            book.run(transition, task, event, to, PERSON)
    assert everything(book) == before


def a_task_that_is_not_as_it_was_read_is_left_alone(book: Book, changed: dict[str, Any]) -> None:
    in_status(book, S.STALE)
    as_read, before = replace(book.task(), **changed), everything(book)
    with pytest.raises(RowCountError):
        book.run(transition, as_read, Event.REQUEUE, S.QUEUED, PERSON)
    assert everything(book) == before


@pytest.mark.parametrize("status", list(TaskStatus))
@pytest.mark.parametrize("event", list(Event))
def test_a_target_that_the_table_does_not_name_is_refused(book: Book, event: Event, status: TaskStatus) -> None:
    a_target_that_the_table_does_not_name_is_refused(book, event, status)


READ_ANOTHER_WAY: list[dict[str, Any]] = [
    {"task_id": "po-2"},
    {"status": S.NEEDS_HUMAN},
    {"lease_count": 7},
    {"may_have_clicked": True},
    {"order_known": True},
    {"order_stated": True},
]


@pytest.mark.parametrize("changed", READ_ANOTHER_WAY, ids=lambda changed: next(iter(changed)))
def test_a_task_that_is_not_as_it_was_read_is_left_alone(book: Book, changed: dict[str, Any]) -> None:
    # What the table demands of a task that needs a person is another check.
    a_task_that_is_not_as_it_was_read_is_left_alone(book, changed)


@contextmanager
def without_the_check_of_the_target() -> Iterator[None]:
    """The transition function takes any target."""
    with patch.object(gateway.orders.transition, "leads_to", lambda *_: True):
        yield


@contextmanager
def without_the_check_of_the_row_count() -> Iterator[None]:
    """A statement that moved no row is taken for one that did."""
    with patch.object(databases.transaction_class(), "change_one", databases.transaction_class().change):
        yield


MISSING: list[tuple[Missing, Callable[[Book], None]]] = [
    (
        without_the_check_of_the_target,
        lambda book: a_target_that_the_table_does_not_name_is_refused(book, Event.EXPIRE, S.LEASED),
    ),
    (
        without_the_check_of_the_row_count,
        lambda book: a_task_that_is_not_as_it_was_read_is_left_alone(book, {"lease_count": 7}),
    ),
]


@pytest.mark.parametrize(("missing", "rule"), MISSING, ids=[missing.__name__ for missing, _ in MISSING])
def test_a_check_that_is_taken_out_is_noticed(book: Book, missing: Missing, rule: Callable[[Book], None]) -> None:
    with missing(), pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        rule(book)


def test_what_is_returned_is_what_is_stored(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    move, events = tasks.move, []

    def compared(tx: Any, before: Task, after: Task) -> None:
        move(tx, before, after)
        assert tasks.get(tx, after.task_id) == after
        events.append((before.status, after.status))

    monkeypatch.setattr(tasks, "move", compared)
    lease = book.take()
    book.undo(lease)
    book.report(lease, OrderState.IN_CART, sequence=1)
    book.retake(lease)
    book.lapse(lease)
    book.run(requeue, "po-1", "again", PERSON)
    book.run(withdraw, "po-1", "not yet", PERSON)
    book.run(requeue, "po-1", "now", PERSON)
    book.undo(book.take(acknowledge=False))
    again = book.take()
    book.report(again, OrderState.PAID, sequence=2, terminal=True)
    book.report(again, OrderState.SHIPPED, sequence=3)
    book.submit("po-2")
    book.run(mark_restored, "a-backup.db", PERSON, book.new_token)
    book.time.advance(book.policy.permit_settle)
    book.run(resolve, book.policy, Resolution("po-2", "nothing there", S.FAILED, None, None), PERSON)
    assert {after for _, after in events} == {S.LEASED, S.RUNNING, S.QUEUED, S.STALE, S.SUCCEEDED, S.FAILED}
    assert len(events) > 12


def test_one_statement_changes_a_status_and_one_function_runs_it() -> None:
    sets_a_status = re.compile(r"(--.*\n)*UPDATE tasks\s+SET (?:(?!\bWHERE\b)[^;])*\bstatus =")
    changing = {name for name, sql in statements().items() if sets_a_status.match(sql)}
    house = Path(gateway.__file__).parent
    callers = {
        str(source.relative_to(house))
        for source in house.rglob("*.py")
        if re.search(r"(?<!\.)\btasks\.(move|add)\(", source.read_text())
    }
    assert (changing, callers) == ({"task_move"}, {"orders/transition.py"})
