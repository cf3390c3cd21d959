"""Targets on each engine: a token names a bounded number of accounts, and those that nobody uses are forgotten."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from common.target import Target
from gateway import targets
from gateway.account_queries.lease import open_query_lease
from gateway.account_queries.result import report_result
from gateway.account_queries.submit import submit_query
from gateway.account_queries.timeouts import move_on_timed_out
from gateway.catalog.ingest import Ingest
from gateway.catalog.rounds import Rounds
from gateway.domain.account_queries import QueryKind, QueryLeaseRequest, QueryOutcome, QuerySubmission
from gateway.domain.leases import Lease, LeaseRequest
from gateway.domain.models import Actor, LeaseScope, Submission, Submitted
from gateway.domain.refusals import Reason, Refusal
from gateway.domain.states import OrderState, TaskStatus
from gateway.operations.unused_targets import begin, forget_unused
from gateway.orders.expire import expire_due
from gateway.orders.lease import open_lease
from gateway.orders.submit import submit, submit_all
from gateway.store import lanes as row_lanes
from gateway.store import workers
from tests.gateway.account_queries.test_rules import POLICY as QUERY_POLICY
from tests.gateway.catalog.test_reconciliation import POLICY as CATALOG_POLICY
from tests.gateway.catalog.test_reconciliation import order_list
from tests.gateway.operations.person import Person
from tests.gateway.store.conformance.conftest import StoreBook
from tests.gateway.support.book import reason, refused
from tests.gateway.support.manual_time import TICK

DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def three_of_a_token_and_five_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "MAX_OF_A_TOKEN", 3)
    monkeypatch.setattr(targets, "MAX_IN_ALL", 5)


def order(task_id: str, account: str) -> Submission:
    return Submission(task_id, "rakuten", "{}", None, account=account)


def name(book: StoreBook, account: str, identity: str = "upstream", task_id: str = "") -> Submitted | Refusal:
    """File an order of an account."""
    filed = book.run(submit, book.policy, order(task_id or f"po-{identity}-{account}", account), Actor(identity))
    assert isinstance(filed, (Submitted, Refusal))
    return filed


def serving(book: StoreBook, *accounts: str, worker: str = "w1", identity: str = "worker") -> LeaseRequest:
    return book.request(worker, sites=("rakuten",), accounts=accounts, identity=identity)


def known(book: StoreBook) -> dict[str, str]:
    """Whose token named each account first."""
    rows = book.rows("SELECT account, introduced_by FROM catalog_targets ORDER BY account")
    counted = {row["introduced_by"]: row["count"] for row in book.rows("SELECT * FROM target_counts WHERE count > 0")}
    by_token = [row["introduced_by"] for row in rows if row["account"]]
    assert counted == {identity: by_token.count(identity) for identity in by_token}
    return {row["account"]: row["introduced_by"] for row in rows}


def lanes(book: StoreBook) -> set[str]:
    return {
        row["account"]
        for table in ("lanes", "query_lanes")
        for row in book.rows(f"SELECT account FROM {table}")  # noqa: S608
    }


def forget(book: StoreBook) -> int:
    """One round of the sweep, a target at a time."""
    forgotten, last = 0, None
    while book.run(begin, 1):
        pass
    while True:
        looked = book.run(forget_unused, last, 1)
        forgotten, last = forgotten + looked.forgotten, looked.last
        if last is None:
            return forgotten


def test_a_token_names_a_bounded_number_of_accounts(book: StoreBook) -> None:
    for account in ("a", "b", "c"):
        assert isinstance(name(book, account), Submitted)
    before = book.rows("SELECT task_id FROM tasks"), book.rows("SELECT subject FROM events")
    refusal = refused(name(book, "d"))
    assert (refusal.reason, [each.field for each in refusal.violations]) == (Reason.TOO_MANY, ["account"])
    assert "upstream has named 3 accounts, and 3 is the limit for one token: name accounts that are known" in (
        refusal.message
    )
    assert "90 days" in refusal.message
    assert (book.rows("SELECT task_id FROM tasks"), book.rows("SELECT subject FROM events")) == before
    assert isinstance(name(book, "a", task_id="again"), Submitted), "a known one may always be named"
    assert isinstance(name(book, ""), Submitted), "so may the site's only one"
    assert isinstance(name(book, "c", "another"), Submitted), "whoever named it first"
    assert isinstance(name(book, "d", "another"), Submitted)
    assert known(book) == {"": "upstream", "a": "upstream", "b": "upstream", "c": "upstream", "d": "another"}


def test_all_tokens_together_name_a_bounded_number_of_accounts(book: StoreBook) -> None:
    filed = [name(book, account, f"upstream-{account}") for account in "abcde"]
    assert all(isinstance(each, Submitted) for each in filed)
    refusal = refused(name(book, "f", "upstream-f"))
    assert refusal.reason is Reason.TOO_MANY
    assert "5 accounts are known, and 5 is the limit" in refusal.message
    assert isinstance(name(book, "e", "upstream-f"), Submitted)


def test_a_query_a_round_and_a_worker_name_accounts_too(book: StoreBook) -> None:
    def query(account: str) -> Any:
        wanted = QuerySubmission(f"q-{account}", "rakuten", QueryKind.ORDER_LIST, "{}", account=account)
        return book.run(submit_query, QUERY_POLICY, wanted, "upstream")

    rounds = Rounds(replace(CATALOG_POLICY, sites=("rakuten",)), QUERY_POLICY, lambda: "c-1")
    assert query("a").created
    assert book.run(rounds.ask, Target("rakuten", "b"), "upstream").created  # type: ignore[union-attr]
    assert isinstance(name(book, "c"), Submitted)
    assert reason(query("d")) is Reason.TOO_MANY
    assert reason(book.run(rounds.ask, Target("rakuten", "e"), "upstream")) is Reason.TOO_MANY
    assert [row["query_id"] for row in book.rows("SELECT query_id FROM account_queries ORDER BY row")] == ["q-a", "c-1"]
    assert query("a").created is False, "what exists is answered"
    assert known(book) == dict.fromkeys("abc", "upstream")


def test_a_worker_that_names_one_too_many_is_refused_and_none_of_them_is_known(book: StoreBook) -> None:
    def ask(*accounts: str, worker: str = "w1", identity: str = "worker") -> Reason | None:
        request = serving(book, *accounts, worker=worker, identity=identity)
        opened = book.run(open_lease, book.policy, request, book.new_token())
        return opened.reason if isinstance(opened, Refusal) else None

    assert ask("a", "b", "c", "d") is Reason.TOO_MANY
    assert (known(book), book.rows("SELECT * FROM workers")) == ({}, [])
    assert ask("a", "b", "c") is None
    assert ask("a", "b", "d") is Reason.TOO_MANY
    assert ask("b", "a", worker="w2") is None
    assert known(book) == dict.fromkeys("abc", "worker")
    assert [row["accounts"] for row in book.rows("SELECT accounts FROM workers ORDER BY worker_id")] == ["a,b,c", "b,a"]


def test_of_a_batch_those_alone_are_refused_that_name_one_too_many(book: StoreBook) -> None:
    orders = [order(f"po-{number}", account) for number, account in enumerate(("a", "b", "a", "c", "d", "a", ""))]
    done = book.run(submit_all, book.policy, orders, Actor("upstream"))
    assert [each.reason if isinstance(each, Refusal) else each and each.created for each in done] == [
        True, True, True, True, Reason.TOO_MANY, True, True,
    ]  # fmt: skip
    again = book.run(submit_all, book.policy, orders, Actor("upstream"))
    assert [each and each.reason for each in again if not isinstance(each, Submitted)] == [
        None, None, None, None, Reason.TOO_MANY, None, None,
    ]  # fmt: skip
    assert len(book.rows("SELECT * FROM tasks")) == 6


def test_a_use_is_written_down_once_a_day(book: StoreBook) -> None:
    def used() -> int:
        return int(book.rows("SELECT used_us FROM catalog_targets")[0]["used_us"])

    name(book, "a", task_id="po-1")
    first = used()
    book.time.advance(DAY - TICK)
    name(book, "a", task_id="po-2")
    assert used() == first
    book.time.advance(TICK)
    name(book, "a", task_id="po-1")
    assert used() == first, "what exists is answered"
    name(book, "a", task_id="po-3")
    assert used() == first + DAY // TICK


def end(book: StoreBook, account: str, state: OrderState = OrderState.PAID) -> Any:
    """An order of the account that has ended."""
    name(book, account, task_id=f"po-{account}")
    lease = book.take(f"po-{account}", request=serving(book, account, worker=f"w-{account}"))
    book.report(lease, state, sequence=1, terminal=True)
    return lease


def test_an_account_that_nobody_used_is_forgotten_and_known_again_when_it_is_named(book: StoreBook) -> None:
    end(book, "a")
    name(book, "")
    book.cancel("po-upstream-")
    book.time.advance(targets.UNUSED - TICK)
    assert forget(book) == 0
    book.time.advance(TICK)
    assert (forget(book), forget(book)) == (1, 0)
    assert (known(book), lanes(book)) == ({"": "upstream"}, {""})
    assert book.status("po-a") is TaskStatus.SUCCEEDED

    assert isinstance(name(book, "a", "another"), Submitted)
    assert known(book)["a"] == "another"
    lease = book.open(serving(book, "a"))
    assert lease is not None
    assert lease.task_id == "po-another-a"


def queued(book: StoreBook) -> None:
    name(book, "a", task_id="po-1")


def leased(book: StoreBook) -> Lease:
    queued(book)
    return book.take("po-1", request=serving(book, "a"))


def stale(book: StoreBook) -> None:
    leased(book)
    book.time.advance(book.policy.lease_ttl)
    book.run(expire_due)
    clear_alerts(book)


def needs_human(book: StoreBook) -> None:
    book.report(leased(book), OrderState.IN_CART, sequence=1, terminal=True)
    clear_alerts(book)


def clear_alerts(book: StoreBook) -> None:
    """Let the task itself be what keeps its account."""
    book.connection.execute("UPDATE alerts SET cleared_at = raised_at")


def an_alert(book: StoreBook) -> None:
    lease = leased(book)
    book.report(lease, OrderState.PAID, sequence=1, terminal=True)
    book.report(lease, OrderState.CANCELLED, sequence=2)


def a_shared_number(book: StoreBook) -> None:
    """An alert about an order number, which a task of another site's account told too."""
    book.policy = replace(book.policy, scope=LeaseScope.ACCOUNT)
    for account in ("a", "b"):
        name(book, account, task_id=f"po-{account}")
        lease = book.take(f"po-{account}", request=serving(book, account, worker=f"w-{account}"))
        book.report(lease, OrderState.PAID, sequence=1, terminal=True, site_order_id="77/8")


def paused(book: StoreBook) -> None:
    end(book, "a")
    book.pause("rakuten")


def all_paused(book: StoreBook) -> None:
    end(book, "a")
    book.pause()


@pytest.mark.parametrize("bring", [queued, leased, stale, needs_human, an_alert, a_shared_number, paused, all_paused])
def test_what_is_in_use_without_being_named_is_kept(book: StoreBook, bring: Callable[[StoreBook], object]) -> None:
    bring(book)
    before = known(book)
    for _ in range(2):
        book.time.advance(targets.UNUSED)
        assert forget(book) == 0
    assert known(book) == before
    assert "a" in lanes(book)


def test_an_account_is_kept_for_its_time_after_its_pause_was_lifted(book: StoreBook) -> None:
    paused(book)
    book.time.advance(targets.UNUSED)
    assert forget(book) == 0
    book.resume("rakuten")
    book.time.advance(targets.UNUSED - TICK)
    assert forget(book) == 0
    book.time.advance(TICK)
    assert forget(book) == 1


def test_what_a_worker_serves_is_kept_while_it_is_heard_of_and_named_anew_when_it_comes_back(book: StoreBook) -> None:
    def hear() -> None:
        book.run(lambda tx, now: workers.seen(tx, now, "w1"))

    request = serving(book, "a", "b")
    assert book.open(request) is None
    book.time.advance(targets.UNUSED - TICK)
    hear()
    book.time.advance(targets.UNUSED - TICK)
    assert (forget(book), set(known(book))) == (0, {"a", "b"})
    book.time.advance(targets.UNUSED)
    assert (forget(book), known(book)) == (2, {})
    hear()  # by a report that it could not bring before
    assert book.open(request) is None
    assert known(book) == {"a": "worker", "b": "worker"}


@pytest.mark.parametrize("in_hand", [False, True])
def test_an_open_query_keeps_its_account_and_no_round_is_filed_meanwhile(book: StoreBook, in_hand: bool) -> None:
    rounds = Rounds(replace(CATALOG_POLICY, sites=("rakuten",)), QUERY_POLICY, iter(("c-1", "c-2")).__next__)
    end(book, "a")
    book.time.advance(targets.UNUSED - TICK)
    assert book.run(rounds.file_due) == 1
    if in_hand:
        request = QueryLeaseRequest("w1", None, ("rakuten",), accounts=("a",))
        assert book.run(open_query_lease, QUERY_POLICY, request) is not None
    book.time.advance(TICK)
    assert (forget(book), set(known(book))) == (0, {"a"})
    book.time.advance(CATALOG_POLICY.interval or DAY)
    book.run(move_on_timed_out, QUERY_POLICY)
    assert book.rows("SELECT status FROM account_queries") == [{"status": "expired"}]
    assert book.run(rounds.file_due) == 0
    assert (forget(book), known(book), lanes(book)) == (1, {}, set())


def test_an_account_that_the_catalogue_is_told_of_is_in_use(book: StoreBook) -> None:
    policy = replace(CATALOG_POLICY, sites=("rakuten",))
    rounds = Rounds(policy, QUERY_POLICY, lambda: "c-1")
    end(book, "a")
    book.time.advance(targets.UNUSED - TICK)
    assert book.run(rounds.file_due) == 1
    lease = book.run(open_query_lease, QUERY_POLICY, QueryLeaseRequest("w1", None, ("rakuten",), accounts=("a",)))
    assert lease is not None
    told = QueryOutcome(lease.query_id, "w1", lease.attempt, json.dumps(order_list()))
    book.run(report_result, QUERY_POLICY, told, Ingest(policy, rounds))
    book.time.advance(TICK)
    assert forget(book) == 0
    assert book.run(rounds.file_due) == 0, "an interval has not passed"
    book.time.advance(targets.UNUSED)
    assert forget(book) == 1


def test_the_time_of_those_that_were_known_before_begins_at_the_first_look(book: StoreBook) -> None:
    end(book, "a")
    book.connection.execute("UPDATE catalog_targets SET used_us = NULL")
    book.time.advance(targets.UNUSED * 2)
    assert forget(book) == 0
    book.time.advance(targets.UNUSED - TICK)
    assert forget(book) == 0
    book.time.advance(TICK)
    assert forget(book) == 1


def test_a_lane_that_is_gone_comes_back_with_what_moves_in_it(book: StoreBook) -> None:
    stale(book)
    wanted = QuerySubmission("q-1", "rakuten", QueryKind.ORDER_LIST, "{}", account="a")
    book.run(submit_query, QUERY_POLICY, wanted, "upstream")
    request = QueryLeaseRequest("w1", None, ("rakuten",), accounts=("a",))
    assert book.run(open_query_lease, QUERY_POLICY, request) is not None
    for table in ("lanes", "query_lanes", "catalog_targets"):
        book.connection.execute(f"DELETE FROM {table}")  # noqa: S608

    Person(book).requeue()
    book.time.advance(QUERY_POLICY.lease_ttl)
    book.run(move_on_timed_out, QUERY_POLICY)
    assert known(book) == {"a": ""}
    assert book.run(lambda tx, _: [*row_lanes.ready(tx, "rakuten")]) == [(book.task().row, Target("rakuten", "a"))]
    assert book.rows("SELECT queued FROM query_lanes") == [{"queued": 1}]
    lease = book.open(serving(book, "a"))
    assert lease is not None
    assert lease.task_id == "po-1"
    book.report(lease, OrderState.PAID, sequence=1, terminal=True)
    again = book.run(open_query_lease, QUERY_POLICY, request)
    assert again is not None
    assert book.rows("SELECT queued FROM query_lanes") == [{"queued": 0}]
