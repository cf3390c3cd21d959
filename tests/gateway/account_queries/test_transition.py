"""Every change of a query's status: what the table allows, of exactly one row, and told to those who wait."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from common.target import Target
from gateway.account_queries import transition as module
from gateway.account_queries.topics import QUERIES, topic_of_query
from gateway.account_queries.transition import QueryTransitionError, transition
from gateway.domain.account_queries import (
    QUERY_ENDED,
    QUERY_TRANSITIONS,
    Query,
    QueryError,
    QueryEvent,
    QueryHold,
    QueryKind,
    QueryStatus,
    QuerySubmission,
)
from gateway.domain.hints import hint
from gateway.store import account_queries
from gateway.store.port import RowCountError
from tests.gateway.support import databases
from tests.gateway.support.book import Book

HOLD = QueryHold("w1", "session-1", "2026-11-29T15:58:22.123456Z", 300_000_000)
ERROR = QueryError(0, "why")
PATHS = {
    QueryStatus.QUEUED: (),
    QueryStatus.LEASED: ((QueryEvent.LEASE, QueryStatus.LEASED),),
    QueryStatus.SUCCEEDED: (
        (QueryEvent.LEASE, QueryStatus.LEASED),
        (QueryEvent.REPORT, QueryStatus.SUCCEEDED),
    ),
    QueryStatus.FAILED: ((QueryEvent.LEASE, QueryStatus.LEASED), (QueryEvent.REPORT, QueryStatus.FAILED)),
    QueryStatus.EXPIRED: ((QueryEvent.EXPIRE, QueryStatus.EXPIRED),),
}
"""How a query comes into each status."""
STEPS = list(product(QueryEvent, QueryStatus, QueryStatus))
ALLOWED = [(event, before, to) for event, before, to in STEPS if to in QUERY_TRANSITIONS.get((event, before), ())]
OTHERS = [step for step in STEPS if step not in ALLOWED]


def found(book: Book) -> Query:
    query = book.run(lambda tx, _: account_queries.find(tx, "q-1"))
    assert query is not None
    return query


def move(book: Book, query: Query, event: QueryEvent, to: QueryStatus) -> Query:
    """Let it happen, with what has to go with the status."""
    return book.run(
        transition, query, event, to,
        hold=HOLD if to is QueryStatus.LEASED else None,
        error=ERROR if to in (QueryStatus.FAILED, QueryStatus.EXPIRED) else None,
    )  # fmt: skip


def brought_to(book: Book, status: QueryStatus) -> Query:
    """A query in this status; nobody has been told of anything since."""
    book.run(module.file, QuerySubmission("q-1", "sandbox", QueryKind.ORDER_LIST, "{}"), 900_000_000)
    for event, to in PATHS[status]:
        move(book, found(book), event, to)
    book.notified.clear()
    return found(book)


@pytest.mark.parametrize(("event", "before", "to"), ALLOWED)
def test_what_the_table_allows_happens_and_those_who_wait_are_told(
    book: Book, event: QueryEvent, before: QueryStatus, to: QueryStatus
) -> None:
    query = brought_to(book, before)
    book.time.advance(1)
    after = move(book, query, event, to)
    assert after == found(book)
    assert (after.status, after.updated_at > query.updated_at) == (to, True)
    assert (after.completed_at is not None) == (to in QUERY_ENDED)
    assert book.notified == {topic_of_query("q-1")} | (
        {QUERIES, hint(QUERIES, Target("sandbox"))} if to is QueryStatus.QUEUED else set()
    )


def refuses_what_the_table_does_not_allow(book: Book, event: QueryEvent, before: QueryStatus, to: QueryStatus) -> None:
    query = brought_to(book, before)
    with pytest.raises(QueryTransitionError, match=f"query q-1: {event} does not lead from {before} to {to}"):
        move(book, query, event, to)
    assert found(book) == query
    assert book.notified == set()


@pytest.mark.parametrize(("event", "before", "to"), OTHERS)
def test_nothing_else_happens(book: Book, event: QueryEvent, before: QueryStatus, to: QueryStatus) -> None:
    refuses_what_the_table_does_not_allow(book, event, before, to)


def test_nothing_but_the_queue_is_open_to_a_new_query() -> None:
    firsts = {event: after for (event, before), after in QUERY_TRANSITIONS.items() if before is None}
    assert firsts == {QueryEvent.SUBMIT: {QueryStatus.QUEUED}}


def refuses_what_has_moved_since_it_was_read(book: Book, change: dict[str, Any]) -> None:
    query = brought_to(book, QueryStatus.LEASED)
    with pytest.raises(RowCountError, match="query_move moved 0 rows"):
        book.run(transition, replace(query, **change), QueryEvent.UNDO, QueryStatus.QUEUED)
    assert found(book) == query
    assert book.notified == set()


@pytest.mark.parametrize("change", [{"query_id": "q-2"}, {"attempts": 2}], ids=str)
def test_a_query_that_has_moved_since_it_was_read_is_left_alone(book: Book, change: dict[str, Any]) -> None:
    refuses_what_has_moved_since_it_was_read(book, change)


def test_a_query_that_was_taken_since_it_was_read_is_not_taken_again(book: Book) -> None:
    queued = brought_to(book, QueryStatus.QUEUED)
    leased = move(book, queued, QueryEvent.LEASE, QueryStatus.LEASED)
    with pytest.raises(RowCountError):
        move(book, queued, QueryEvent.LEASE, QueryStatus.LEASED)
    assert found(book) == leased


def no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_check", lambda *_: None)


def no_row_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        databases.transaction_class(),
        "change_one",
        lambda tx, name, /, **parameters: tx.change(name, **parameters),
    )


@pytest.mark.parametrize(
    ("take_out", "test", "arguments"),
    [
        (no_table, refuses_what_the_table_does_not_allow, (QueryEvent.EXPIRE, QueryStatus.LEASED, QueryStatus.EXPIRED)),
        (no_row_count, refuses_what_has_moved_since_it_was_read, ({"attempts": 2},)),
    ],
)
def test_a_check_that_is_taken_out_is_found_out(
    book: Book,
    monkeypatch: pytest.MonkeyPatch,
    take_out: Callable[..., None],
    test: Callable[..., None],
    arguments: Any,
) -> None:
    take_out(monkeypatch)
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        test(book, *arguments)
