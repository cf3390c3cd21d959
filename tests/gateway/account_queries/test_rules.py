"""The use cases of queries at the exact boundaries of time, and across restarts."""

from datetime import timedelta
from typing import Any

import pytest

from gateway.account_queries.lease import give_back_query, open_query_lease, take_next_query
from gateway.account_queries.result import report_result
from gateway.account_queries.start import resume_queries_after_start
from gateway.account_queries.submit import submit_query
from gateway.account_queries.timeouts import BATCH, TimedOut, move_on_timed_out, prune
from gateway.domain.account_queries import (
    Query,
    QueryKind,
    QueryLease,
    QueryLeaseRequest,
    QueryOutcome,
    QueryPolicy,
    QueryStatus,
    QuerySubmission,
    after_timeout,
)
from gateway.domain.refusals import Refusal
from gateway.store import account_queries
from gateway.store.named_sql import statements
from tests.gateway.support.book import Book
from tests.gateway.support.manual_time import TICK

POLICY = QueryPolicy(
    sites=("rakuten", "sandbox"),
    lease_ttl=timedelta(seconds=180),
    lifetime=timedelta(seconds=900),
    max_attempts=3,
    retention=timedelta(days=7),
    longest_wait=timedelta(seconds=60),
    max_params_bytes=1000,
    max_result_bytes=1000,
)
SITES = ("sandbox", "rakuten")


def submit(book: Book, query_id: str = "q-1", site: str = "sandbox") -> None:
    book.run(submit_query, POLICY, QuerySubmission(query_id, site, QueryKind.ORDER_LIST, "{}"), "upstream")


def lease(book: Book, *sites: str, session: str | None = None) -> QueryLease | None:
    return book.run(open_query_lease, POLICY, QueryLeaseRequest("w1", session, sites or SITES))


def query(book: Book, query_id: str = "q-1") -> Query:
    found = book.run(lambda tx, _: account_queries.find(tx, query_id))
    assert found is not None
    return found


def bring(book: Book, attempt: int, query_id: str = "q-1") -> Any:
    told = QueryOutcome(query_id, "w1", attempt, result_json="{}")
    return book.run(report_result, POLICY, told, lambda *_: None)


def sweep(book: Book) -> TimedOut:
    return book.run(move_on_timed_out, POLICY)


@pytest.mark.parametrize(
    ("attempts", "too_old", "status"),
    [
        (1, False, QueryStatus.QUEUED),
        (2, False, QueryStatus.QUEUED),
        (3, False, QueryStatus.FAILED),
        (1, True, QueryStatus.EXPIRED),
        (3, True, QueryStatus.FAILED),
    ],
)
def test_where_a_lapsed_lease_leads(attempts: int, too_old: bool, status: QueryStatus) -> None:
    assert after_timeout(attempts=attempts, max_attempts=3, too_old=too_old) is status


def test_the_sweep_puts_a_query_back_at_its_deadline_and_not_a_tick_before(book: Book) -> None:
    submit(book)
    lease(book)
    book.time.advance(POLICY.lease_ttl - TICK)
    assert sweep(book) == TimedOut()
    book.time.advance(TICK)
    assert sweep(book) == TimedOut(requeued=1)
    assert query(book).status is QueryStatus.QUEUED
    assert {"queries", "query:q-1"} <= book.notified


def test_a_queued_query_is_expired_at_the_end_of_its_lifetime_and_not_a_tick_before(book: Book) -> None:
    submit(book)
    book.time.advance(POLICY.lifetime - TICK)
    assert sweep(book) == TimedOut()
    book.time.advance(TICK)
    assert sweep(book) == TimedOut(expired=1)
    ended = query(book)
    assert ended.status is QueryStatus.EXPIRED
    assert ended.error is not None


def test_a_query_in_hand_at_the_end_of_its_lifetime_may_still_be_answered_but_not_handed_out_again(book: Book) -> None:
    submit(book, "answered")
    submit(book, "not-answered")
    book.time.advance(POLICY.lifetime - TICK)
    lease(book)
    lease(book)
    book.time.advance(POLICY.lease_ttl - TICK)
    assert bring(book, 1, "answered") is QueryStatus.SUCCEEDED
    book.time.advance(TICK)
    assert sweep(book) == TimedOut(expired=1)
    assert query(book, "not-answered").status is QueryStatus.EXPIRED


def test_no_step_of_the_wall_clock_expires_or_revives_anything(book: Book) -> None:
    submit(book)
    lease(book)
    book.time.step_wall(timedelta(days=30))
    assert sweep(book) == TimedOut()
    assert book.run(prune, POLICY) == 0
    book.time.advance(POLICY.lease_ttl)
    book.time.step_wall(-timedelta(days=60))
    assert sweep(book) == TimedOut(requeued=1)


def test_the_oldest_of_the_worker_s_sites_comes_first_and_a_requeued_query_keeps_its_place(book: Book) -> None:
    for query_id, site in (("first", "rakuten"), ("second", "sandbox"), ("third", "rakuten")):
        submit(book, query_id, site)
    only_sandbox = lease(book, "sandbox")
    assert only_sandbox is not None
    assert only_sandbox.query_id == "second"
    first = lease(book)
    assert first is not None
    assert first.query_id == "first"
    book.time.advance(POLICY.lease_ttl)
    order = [lease(book) for _ in range(3)]
    assert [(each.query_id, each.attempt) for each in order if each] == [("first", 2), ("second", 2), ("third", 1)]


def test_giving_back_leaves_no_trace_and_the_attempt_counts_not(book: Book) -> None:
    submit(book)
    taken = lease(book)
    assert taken is not None
    assert book.run(give_back_query, "q-1", 1) is True
    assert book.run(give_back_query, "q-1", 1) is False
    assert (query(book).status, query(book).attempts) == (QueryStatus.QUEUED, 0)
    assert isinstance(bring(book, 1), Refusal)


def test_a_lease_that_was_given_to_its_session_again_is_not_given_back_with_the_first_stream(book: Book) -> None:
    submit(book)
    first, again = lease(book, session="session-1"), lease(book, session="session-1")
    assert first is not None
    assert first == again
    assert book.run(give_back_query, "q-1", 1) is False
    assert bring(book, 1) is QueryStatus.SUCCEEDED
    assert book.run(give_back_query, "q-1", 1) is False


def test_the_rest_of_its_life_is_told_with_a_lease_that_is_given_again(book: Book) -> None:
    submit(book)
    lease(book, session="session-1")
    book.time.advance(60)
    again = lease(book, session="session-1")
    assert again is not None
    assert again.lives_for == timedelta(seconds=120)


def test_each_transaction_moves_on_a_bounded_number(book: Book) -> None:
    for number in range(BATCH + 5):
        submit(book, f"q-{number}")
    book.time.advance(POLICY.lifetime)
    assert [sweep(book).expired for _ in range(3)] == [BATCH, 5, 0]
    book.time.advance(POLICY.retention)
    assert [book.run(prune, POLICY) for _ in range(3)] == [BATCH, 5, 0]


def test_none_of_many_that_are_too_old_is_leased_though_no_sweep_came_by(book: Book) -> None:
    for number in range(BATCH * 2 + 5):
        submit(book, f"q-{number}")
    book.time.advance(POLICY.lifetime)
    submit(book, "young")
    taken = book.run(take_next_query, POLICY, QueryLeaseRequest("w1", None, SITES))
    assert taken is not None
    assert taken.query_id == "young"


def test_the_database_keeps_the_counts(book: Book) -> None:
    for number in range(4):
        submit(book, f"q-{number}")
    lease(book)
    lease(book)
    bring(book, 1, "q-0")
    book.run(give_back_query, "q-1", 1)
    counted = {row["status"]: row["count"] for row in book.rows("SELECT * FROM query_counts") if row["count"]}
    assert counted == {"queued": 3, "succeeded": 1}
    book.time.advance(POLICY.retention)
    book.run(prune, POLICY)
    sweep(book)
    counted = {row["status"]: row["count"] for row in book.rows("SELECT * FROM query_counts") if row["count"]}
    assert counted == {"expired": 3}


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE account_queries SET status = 'leased'",
        "UPDATE account_queries SET lease_owner = 'w1'",
        "UPDATE account_queries SET status = 'failed', completed_at = 'now', completed_us = 1",
        "DELETE FROM account_queries",
    ],
)
def test_the_database_refuses_what_no_rule_allows(book: Book, sql: str) -> None:
    submit(book)
    with pytest.raises(Exception, match=r"(?i)check constraint|only an ended query"):
        book.connection.execute(sql)


def test_an_ended_query_moves_on_by_no_statement(book: Book) -> None:
    submit(book)
    lease(book)
    bring(book, 1)
    with pytest.raises(Exception, match="an ended query never moves on"):
        book.connection.execute("UPDATE account_queries SET status = 'queued'")


def restart(book: Book, *, crash: bool = False) -> int:
    book.restart(crash=crash)
    return book.run(
        resume_queries_after_start, POLICY, clock_continues=book.clock.continues, wall_utc=book.clock.wall_utc()
    )


def test_a_restart_of_the_process_changes_nothing(book: Book) -> None:
    submit(book)
    lease(book)
    book.time.advance(POLICY.lease_ttl - TICK)
    assert restart(book) == 0
    assert query(book).status is QueryStatus.LEASED
    assert bring(book, 1) is QueryStatus.SUCCEEDED


def test_after_a_reboot_every_lease_counts_as_lapsed_and_what_is_left_of_a_lifetime_counts_on(book: Book) -> None:
    submit(book, "in-hand")
    submit(book, "queued")
    lease(book)
    book.run(book.clock.save)
    book.time.reboot(down=timedelta(seconds=600))
    assert restart(book, crash=True) == 1
    assert (query(book, "in-hand").status, query(book, "in-hand").attempts) == (QueryStatus.QUEUED, 1)
    assert sweep(book) == TimedOut()
    book.time.advance(timedelta(seconds=300))
    assert sweep(book) == TimedOut(expired=2)


def test_after_a_long_reboot_what_waits_is_expired(book: Book) -> None:
    submit(book)
    book.run(book.clock.save)
    book.time.reboot(down=timedelta(days=2))
    restart(book, crash=True)
    assert lease(book) is None
    assert query(book).status is QueryStatus.EXPIRED


@pytest.mark.sqlite
def test_what_every_lease_asks_of_the_database_walks_an_index_also_beside_many_that_ended(book: Book) -> None:
    for number in range(300):
        submit(book, f"q-{number}")
    for number in range(250):
        lease(book)
        bring(book, 1, f"q-{number}")
    values = {
        "site": "sandbox",
        "account": "",
        "elapsed_us": 5,
        "count": 5,
        "session_id": "s",
        "status": "queued",
        "below": 9,
        "skip": 0,
    }
    for name in (
        "query_oldest_queued", "queries_lease_due", "queries_too_old", "queries_of_session", "queries_newest_by_status",
    ):  # fmt: skip
        for analyzed in (False, True):
            if analyzed:
                book.connection.execute("ANALYZE")
            plan = [row[3] for row in book.connection.execute(f"EXPLAIN QUERY PLAN {statements()[name]}", values)]
            assert len(plan) == 1, (name, plan)
            assert plan[0].startswith("SEARCH account_queries USING INDEX"), (name, plan)
