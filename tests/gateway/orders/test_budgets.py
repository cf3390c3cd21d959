"""What permits reserve of budgets, and what becomes of it (docs/specification.md#budgets)."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gateway.domain.budgets import BudgetPeriod, BudgetScope, BudgetState
from gateway.domain.instant import parse_utc
from gateway.domain.leases import Lease, Permit, Verification
from gateway.domain.models import Actor, Submission
from gateway.domain.operations import Resolution
from gateway.domain.refusals import Reason, Refusal
from gateway.domain.states import OrderState, Placement, TaskStatus
from gateway.operations.actions import requeue, resolve
from gateway.operations.budgets import BudgetOrder, remove_budget, set_budget, show_budget
from gateway.orders.submit import submit
from tests.gateway.support.book import LOOK, OTHER_JOURNAL, Book, reason, refused, terms
from tests.gateway.support.manual_time import TICK

PERSON = Actor("operator")


def with_budget(book: Book, yen: int, name: str = "house", period: str = "day", **scope: Any) -> BudgetState:
    wanted = BudgetOrder(name, BudgetScope(**scope), BudgetPeriod(period), yen, "so much is there")
    state = book.run(set_budget, book.policy, wanted, PERSON)
    assert isinstance(state, BudgetState), state
    return state


def stands(book: Book, name: str = "house") -> tuple[int, int, int]:
    """Yen reserved, settled and left."""
    found = book.run(show_budget, name, None, 10)
    assert not isinstance(found, Refusal)
    state = found.state
    return state.use.reserved_yen, state.use.settled_yen, state.left_yen


def ledger(book: Book) -> list[tuple[str, int, str, int]]:
    sql = "SELECT task_id, lease_number, state, counted_yen FROM budget_entries ORDER BY entry"
    return [(row["task_id"], row["lease_number"], row["state"], row["counted_yen"]) for row in book.rows(sql)]


def permitted(book: Book, yen: int, task_id: str = "po-1", **fields: Any) -> Lease:
    """A task in a worker's hand that may be ordered for so much."""
    lease = book.take(task_id)
    assert isinstance(book.permit(lease, terms=terms(yen), **fields), Permit)
    return lease


def end(book: Book, lease: Lease, status: TaskStatus = TaskStatus.NEEDS_HUMAN, **fields: Any) -> None:
    book.report(lease, fields.pop("state", None), terminal=True, terminal_status=status, sequence=9, **fields)


def resolved(book: Book, outcome: TaskStatus, task_id: str = "po-1", **fields: Any) -> None:
    book.time.advance(book.policy.permit_settle + book.policy.permit_ttl)
    told = Resolution(task_id, "looked there", outcome, fields.pop("state", None), fields.pop("number", None), **fields)
    outcome_ = book.run(resolve, book.policy, told, PERSON)
    assert not isinstance(outcome_, Refusal), outcome_


def again(book: Book, lease: Lease, yen: int) -> Permit | Refusal:
    """The permit that a recovered lease asks for, once the site has settled."""
    return book.permit(lease, attests=True, look=settled_look(book, lease), terms=terms(yen))


def settled_look(book: Book, lease: Lease) -> Verification:
    """A look at the site that is made now, by a worker that has held its lease until the site had settled."""
    for _ in range(5):
        book.time.advance(book.policy.permit_settle / 5)
        book.renew(lease)
    return replace(LOOK, begun_at=book.lease_age(lease))


def test_an_order_for_what_is_left_is_permitted_and_one_yen_more_is_not(book: Book) -> None:
    with_budget(book, 3_000)
    lease = book.take()
    refusal = refused(book.permit(lease, terms=terms(3_001)))
    assert refusal.reason is Reason.BUDGET_EXCEEDED
    assert refusal.retry_after is None, "waiting would not help"
    assert "3001 yen to pay are more than the whole budget house of 3000 yen a day" in refusal.message
    assert book.task().placement is Placement.IMPOSSIBLE
    assert ledger(book) == []
    assert isinstance(book.permit(lease, terms=terms(3_000)), Permit)
    assert stands(book) == (3_000, 0, 0)
    assert book.details("permit")[0]["budgets_left"] == {"house": 0}


def test_where_more_is_used_than_a_budget_holds_not_even_0_yen_are_permitted(book: Book) -> None:
    with_budget(book, 5_000)
    end(book, permitted(book, 3_000), TaskStatus.SUCCEEDED, state=OrderState.PAID)
    with_budget(book, 1_000)
    refusal = refused(book.permit(book.take("po-2"), terms=terms(0)))
    assert refusal.reason is Reason.BUDGET_EXCEEDED
    assert "more than it holds is used of budget house" in refusal.message


def test_a_refusal_says_what_is_left_and_when_it_renews(book: Book) -> None:
    state = with_budget(book, 3_000)
    end(book, permitted(book, 1_800))
    refusal = refused(book.permit(book.take("po-2"), terms=terms(1_201)))
    assert refusal.reason is Reason.BUDGET_EXCEEDED
    assert "more than the 1200 yen left of budget house (all orders, 3000 yen a day)" in refusal.message
    assert f"renews at {state.window.ends_at}" in refusal.message
    assert refusal.retry_after == parse_utc(state.window.ends_at) - parse_utc(book.clock.now().utc)
    assert ledger(book) == [("po-1", 1, "reserved", 1_800)]


def until(book: Book, utc: str) -> timedelta:
    return parse_utc(utc) - parse_utc(book.run(lambda _tx, now: now.utc))


def test_a_budget_is_whole_again_at_local_midnight_and_not_a_microsecond_before(book: Book) -> None:
    ends_at = with_budget(book, 3_000).window.ends_at
    assert ends_at == "2026-11-30T15:00:00.000000Z", "midnight in Tokyo"
    end(book, permitted(book, 3_000))
    book.time.advance(until(book, ends_at) - timedelta(seconds=10))
    lease = book.take("po-2")
    book.time.advance(until(book, ends_at) - TICK)
    refusal = refused(book.permit(lease, terms=terms(1)))
    assert (refusal.reason, refusal.retry_after) == (Reason.BUDGET_EXCEEDED, TICK)
    book.time.advance(TICK)
    assert isinstance(book.permit(lease, terms=terms(3_000)), Permit)
    assert stands(book) == (3_000, 0, 0)


def test_what_is_paid_later_counts_for_the_period_of_its_permit(book: Book) -> None:
    state = with_budget(book, 3_000)
    lease = permitted(book, 3_000)
    end(book, lease)
    book.time.advance(until(book, state.window.ends_at))
    book.report(lease, OrderState.PAID, payable_yen=2_900, sequence=10)
    assert stands(book) == (0, 0, 3_000), "the new day has all of it"
    (entry,) = book.rows("SELECT starts_at, state, counted_yen FROM budget_entries")
    assert (entry["starts_at"], entry["state"], entry["counted_yen"]) == (state.window.starts_at, "settled", 2_900)


@pytest.mark.parametrize(
    ("scope", "counted"),
    [
        ({}, "abcd"),
        ({"site": "rakuten"}, "abd"),
        ({"site": "rakuten", "account": ""}, "ad"),
        ({"site": "rakuten", "account": "acc"}, "b"),
        ({"identity": "alice"}, "d"),
    ],
    ids=str,
)
def test_a_budget_counts_the_orders_that_it_is_for(book: Book, scope: dict[str, Any], counted: str) -> None:
    with_budget(book, 3_000, **scope)
    book.submit("a", account="")
    book.submit("b", account="acc")
    book.submit("c", site="sandbox")
    book.run(submit, book.policy, Submission("d", "rakuten", "{}", None), Actor("alice"))
    for name in "abcd":
        lease = book.take(name, request=book.request(accounts=("", "acc")))
        exceeded = isinstance(book.permit(lease, terms=terms(3_001)), Refusal)
        assert exceeded == (name in counted), name
        end(book, lease)


def test_of_several_budgets_each_has_to_have_room_and_each_is_reserved(book: Book) -> None:
    with_budget(book, 9_000, "all-month", "month")
    with_budget(book, 3_000, "site-day", "day", site="rakuten")
    end(book, permitted(book, 2_000))
    lease = book.take("po-2")
    assert "site-day" in refused(book.permit(lease, terms=terms(2_000))).message
    assert isinstance(book.permit(lease, terms=terms(1_000)), Permit)
    assert (stands(book, "all-month"), stands(book, "site-day")) == ((3_000, 0, 6_000), (3_000, 0, 0))
    assert book.details("permit", "po-2")[0]["budgets_left"] == {"all-month": 6_000, "site-day": 0}


def test_of_several_without_room_the_one_that_renews_last_is_named(book: Book) -> None:
    with_budget(book, 2_000, "a-day", "day")
    with_budget(book, 2_000, "b-month", "month")
    with_budget(book, 2_000, "c-week", "week")
    end(book, permitted(book, 1_500))
    lease = book.take("po-2")
    assert "c-week" in refused(book.permit(lease, terms=terms(1_000))).message, (
        "the month ends today, the week has begun"
    )
    with_budget(book, 900, "a-day", "day")
    assert "the whole budget a-day" in refused(book.permit(lease, terms=terms(1_000))).message


def test_a_worker_that_shows_no_terms_gets_no_permit_under_a_budget(book: Book) -> None:
    with_budget(book, 3_000)
    refusal = refused(book.permit(book.take()))
    assert refusal.reason is Reason.PERMIT_TERMS_REQUIRED
    assert "update it" in refusal.message
    assert book.task().placement is Placement.IMPOSSIBLE


def test_where_no_budget_counts_it_everything_is_as_it_was(book: Book) -> None:
    with_budget(book, 0, site="sandbox")
    assert isinstance(book.permit(book.take()), Permit)
    assert "budgets_left" not in book.details("permit")[0]
    assert ledger(book) == []


def test_the_same_permit_again_reserves_nothing_more(book: Book) -> None:
    with_budget(book, 3_000)
    lease = permitted(book, 3_000)
    assert isinstance(book.permit(lease, terms=terms(3_000)), Permit)
    assert ledger(book) == [("po-1", 1, "reserved", 3_000)]


def test_a_budget_is_judged_last_so_that_an_order_waits_for_a_pause_first(book: Book) -> None:
    with_budget(book, 3_000)
    lease = book.take()
    book.pause()
    assert reason(book.permit(lease, terms=terms(3_001))) is Reason.DISPATCH_PAUSED


@pytest.mark.parametrize("paid", [2_500, 3_000, 3_400])
def test_a_report_with_an_amount_settles_it_to_what_was_paid(book: Book, paid: int) -> None:
    with_budget(book, 3_000)
    lease = permitted(book, 3_000)
    book.report(lease, OrderState.ORDERED, sequence=1)
    assert stands(book) == (3_000, 0, 0)
    book.report(lease, OrderState.AWAITING_PAYMENT, payable_yen=paid, sequence=2)
    assert stands(book) == (0, paid, max(0, 3_000 - paid))
    book.report(lease, OrderState.PAID, payable_yen=paid, terminal=True, sequence=3)
    assert ledger(book) == [("po-1", 1, "settled", paid)]
    assert book.details("budget_settle") == [{"budgets": {"house": paid}}]


@pytest.mark.parametrize("state", [OrderState.PAID, OrderState.SHIPPED, OrderState.DELIVERED])
def test_what_is_told_as_paid_without_an_amount_is_settled_to_that_of_its_permit(book: Book, state: OrderState) -> None:
    with_budget(book, 3_000)
    lease = permitted(book, 2_000)
    book.report(lease, OrderState.AWAITING_PAYMENT, sequence=1)
    assert stands(book) == (2_000, 0, 1_000)
    for _ in range(2):
        book.report(lease, state, sequence=2)
    assert stands(book) == (0, 2_000, 1_000)
    assert len(book.details("budget_settle")) == 1


def test_the_newest_amount_counts_and_a_late_duplicate_does_not(book: Book) -> None:
    with_budget(book, 3_000)
    lease = permitted(book, 3_000)
    book.report(lease, OrderState.AWAITING_PAYMENT, payable_yen=2_000, sequence=1)
    book.report(lease, OrderState.PAID, payable_yen=2_100, sequence=2)
    book.report(lease, OrderState.AWAITING_PAYMENT, payable_yen=2_000, sequence=1)
    assert stands(book) == (0, 2_100, 900)


def test_an_amount_of_the_cart_settles_nothing(book: Book) -> None:
    with_budget(book, 3_000)
    lease = permitted(book, 3_000)
    book.report(lease, OrderState.IN_CART, payable_yen=2_000, sequence=1)
    assert stands(book) == (3_000, 0, 0)


@pytest.mark.parametrize("status", [TaskStatus.NEEDS_HUMAN, TaskStatus.FAILED])
def test_in_doubt_it_stays_reserved_until_a_person_says_that_there_is_no_order(book: Book, status: TaskStatus) -> None:
    with_budget(book, 3_000)
    end(book, permitted(book, 3_000), status)
    assert stands(book) == (3_000, 0, 0)
    resolved(book, TaskStatus.FAILED)
    assert stands(book) == (0, 0, 3_000)
    assert book.details("budget_release") == [{"budgets": {"house": 0}}]


def test_a_lease_that_runs_out_leaves_it_reserved(book: Book) -> None:
    with_budget(book, 3_000)
    book.lapse(permitted(book, 3_000))
    assert book.task().status in (TaskStatus.STALE, TaskStatus.LEASED)
    assert stands(book) == (3_000, 0, 0)


def test_a_person_who_states_an_order_settles_it_at_its_terms_and_may_revise_that(book: Book) -> None:
    with_budget(book, 3_000)
    end(book, permitted(book, 3_000))
    resolved(book, TaskStatus.SUCCEEDED)
    assert stands(book) == (0, 3_000, 0)
    resolved(book, TaskStatus.FAILED)
    assert stands(book) == (0, 0, 3_000)
    resolved(book, TaskStatus.SUCCEEDED, state=OrderState.PAID)
    assert stands(book) == (0, 3_000, 0)


def test_an_order_that_the_site_has_cancelled_is_released_once(book: Book) -> None:
    with_budget(book, 3_000)
    lease = permitted(book, 3_000)
    book.report(lease, OrderState.AWAITING_PAYMENT, payable_yen=3_000, sequence=1)
    for sequence in (2, 2, 3):
        book.report(lease, OrderState.CANCELLED, terminal=True, sequence=sequence)
    assert stands(book) == (0, 0, 3_000)
    assert len(book.details("budget_release")) == 1


def test_word_of_an_order_after_all_counts_it_again(book: Book) -> None:
    with_budget(book, 3_000)
    lease = permitted(book, 3_000)
    book.lapse(lease)
    book.open(book.request("w2"))
    resolved(book, TaskStatus.FAILED)
    assert stands(book) == (0, 0, 3_000)
    book.report(lease, OrderState.ORDERED, sequence=3)
    assert stands(book) == (3_000, 0, 0)
    book.report(lease, OrderState.PAID, payable_yen=2_800, sequence=4)
    assert stands(book)[2] < 3_000, "also beyond what is permitted: it is so"


def test_a_second_permit_takes_the_place_of_the_first(book: Book) -> None:
    with_budget(book, 3_000)
    lease = book.retake(permitted(book, 2_000))
    assert stands(book) == (2_000, 0, 1_000)
    assert isinstance(again(book, lease, 3_000), Permit)
    assert ledger(book) == [("po-1", 1, "released", 0), ("po-1", 2, "reserved", 3_000)]
    book.report(lease, OrderState.PAID, payable_yen=3_000, terminal=True, sequence=2)
    assert ledger(book) == [("po-1", 1, "released", 0), ("po-1", 2, "settled", 3_000)]


def test_a_second_permit_that_is_refused_leaves_the_first_one_reserved(book: Book) -> None:
    with_budget(book, 3_000)
    first = permitted(book, 2_000)
    lease = book.retake(first)
    assert reason(again(book, lease, 3_001)) is Reason.BUDGET_EXCEEDED
    assert ledger(book) == [("po-1", 1, "reserved", 2_000)]


def test_a_second_permit_to_another_journal_is_refused_and_nothing_is_released(book: Book) -> None:
    with_budget(book, 3_000)
    lease = book.retake(permitted(book, 2_000), journal=OTHER_JOURNAL)
    look = settled_look(book, lease)
    refusal = book.permit(lease, journal=OTHER_JOURNAL, attests=True, look=look, terms=terms(500))
    assert reason(refusal) is Reason.PERMIT_OTHER_JOURNAL
    assert ledger(book) == [("po-1", 1, "reserved", 2_000)]


def test_an_order_that_was_refused_is_bought_once_the_budget_is_raised(book: Book) -> None:
    with_budget(book, 1_000)
    lease = book.take()
    assert reason(book.permit(lease, terms=terms(2_000))) is Reason.BUDGET_EXCEEDED
    end(book, lease)
    with_budget(book, 2_000)
    assert not isinstance(book.run(requeue, "po-1", "raised", PERSON), Refusal)
    lease = book.take()
    look = replace(LOOK, begun_at=book.lease_age(lease))
    assert isinstance(book.permit(lease, look=look, terms=terms(2_000)), Permit)


def test_a_removed_budget_refuses_nothing_and_its_ledger_is_followed(book: Book) -> None:
    with_budget(book, 3_000)
    lease = permitted(book, 3_000)
    assert book.run(remove_budget, "house", "not wanted", PERSON) is None
    book.report(lease, OrderState.PAID, payable_yen=2_000, terminal=True, sequence=2)
    assert ledger(book) == [("po-1", 1, "settled", 2_000)]
    assert isinstance(book.permit(book.take("po-2"), terms=terms(9_000)), Permit)
    with_budget(book, 3_000)
    assert stands(book) == (0, 2_000, 1_000), "it stands again as it was"


@pytest.mark.parametrize(
    "scope", [{}, {"site": "rakuten"}, {"site": "rakuten", "account": ""}, {"identity": "alice"}], ids=str
)
def test_a_task_under_a_budget_is_not_handed_out_over_rest_and_lets_others_pass(
    book: Book, scope: dict[str, Any]
) -> None:
    with_budget(book, 3_000, **scope)
    book.run(submit, book.policy, Submission("under", "rakuten", "{}", None), Actor("alice"))
    assert book.open(book.rest_request()) is None
    book.submit("free", site="sandbox")
    taken = book.open(book.rest_request())
    assert (taken and taken.task_id) == ("free" if scope else None)
    if taken:
        book.report(taken, terminal=True)
    over_grpc = book.open()
    assert over_grpc is not None
    assert over_grpc.task_id == "under"
    book.lapse(over_grpc)
    refusal = book.reclaim("under", book.rest_request())
    assert reason(refusal) is Reason.STATUS_CONFLICT
