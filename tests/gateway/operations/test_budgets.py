"""What operators do about budgets, and the alerts near their end (docs/specification.md#budgets)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.domain.budgets import MAX_BUDGETS, BudgetPeriod, BudgetScope, BudgetState
from gateway.domain.models import Actor
from gateway.domain.refusals import Reason, Refusal
from gateway.domain.states import OrderState
from gateway.operations.budgets import (
    BudgetOrder,
    list_budgets,
    remove_budget,
    set_budget,
    show_budget,
    watch_budgets,
)
from gateway.operations.restore import mark_restored
from gateway.orders.read import least_left
from tests.gateway.orders.test_budgets import PERSON, end, ledger, permitted, stands, until, with_budget
from tests.gateway.support.book import Book, reason, refused

NEARLY, USED_UP = ("budget_nearly_used", "house"), ("budget_used_up", "house")


def watch(book: Book) -> set[tuple[str, str]]:
    book.run(watch_budgets, book.policy)
    return book.alerts() & {NEARLY, USED_UP}


def wanted(name: str, yen: int = 1, period: str = "day", **scope: str) -> BudgetOrder:
    return BudgetOrder(name, BudgetScope(**scope), BudgetPeriod(period), yen, "so much is there")


def test_a_budget_is_set_raised_and_removed_and_the_history_says_by_whom(book: Book) -> None:
    with_budget(book, 3_000, site="rakuten")
    with_budget(book, 3_000, site="rakuten")
    with_budget(book, 5_000, site="rakuten")
    (state,) = book.run(list_budgets)
    assert (state.budget.limit_yen, state.left_yen, state.budget.zone) == (5_000, 5_000, "Asia/Tokyo")
    assert book.run(remove_budget, "house", "not wanted", PERSON) is None
    assert book.run(list_budgets) == ()
    told = book.rows("SELECT kind, actor, reason FROM events WHERE kind LIKE 'budget%' ORDER BY sequence")
    assert [(row["kind"], row["actor"]) for row in told] == [
        ("budget_set", "operator"),
        ("budget_set", "operator"),
        ("budget_remove", "operator"),
    ]
    assert [each["before_yen"] for each in book.details("budget_set", "")] == [None, 3_000]


def test_what_a_budget_is_for_never_changes_and_its_time_zone_neither(book: Book) -> None:
    with_budget(book, 3_000, site="rakuten")
    for other in (wanted("house"), wanted("house", site="sandbox"), wanted("house", 1, "week", site="rakuten")):
        refusal = refused(book.run(set_budget, book.policy, other, PERSON))
        assert refusal.reason is Reason.STATUS_CONFLICT
        assert "of another name" in refusal.message
    book.policy = replace(book.policy, budget_zone="Europe/Berlin")
    assert with_budget(book, 4_000, site="rakuten").budget.zone == "Asia/Tokyo"
    assert with_budget(book, 4_000, "other").budget.zone == "Europe/Berlin"


def test_there_are_a_thousand_at_most(book: Book) -> None:
    for number in range(MAX_BUDGETS):
        assert isinstance(book.run(set_budget, book.policy, wanted(f"b-{number}"), PERSON), BudgetState)
    refusal = refused(book.run(set_budget, book.policy, wanted("more"), PERSON))
    assert refusal.reason is Reason.TOO_MANY
    assert "1,000" in refusal.message
    assert isinstance(book.run(set_budget, book.policy, wanted("b-7", 9), PERSON), BudgetState)
    assert book.run(remove_budget, "b-7", "one less", PERSON) is None
    assert isinstance(book.run(set_budget, book.policy, wanted("more"), PERSON), BudgetState)


def test_one_that_is_not_there_is_told_as_such(book: Book) -> None:
    assert reason(book.run(remove_budget, "house", "gone", PERSON)) is Reason.BUDGET_NOT_FOUND
    assert reason(book.run(show_budget, "house", None, 5)) is Reason.BUDGET_NOT_FOUND
    with_budget(book, 1)
    assert book.run(remove_budget, "house", "gone", PERSON) is None
    assert reason(book.run(remove_budget, "house", "gone", PERSON)) is Reason.BUDGET_NOT_FOUND
    assert not isinstance(book.run(show_budget, "house", None, 5), Refusal)


def test_the_ledger_is_shown_page_by_page_newest_first(book: Book) -> None:
    with_budget(book, 3_000)
    with_budget(book, 3_000, "other")
    for number in range(5):
        end(book, permitted(book, 100 + number, f"po-{number}"))
    seen: list[int] = []
    below = None
    while True:
        page = book.run(show_budget, "house", below, 2)
        assert not isinstance(page, Refusal)
        seen += [entry.reserved_yen for entry in page.entries.items]
        below = page.entries.next_after
        if below is None:
            break
    assert seen == [104, 103, 102, 101, 100]


def test_alerts_tell_of_eighty_percent_and_of_the_end_once_and_clear_when_it_renews(book: Book) -> None:
    ends_at = with_budget(book, 1_000).window.ends_at
    end(book, permitted(book, 799))
    assert watch(book) == set()
    end(book, permitted(book, 1, "po-2"))
    assert watch(book) == {NEARLY}
    assert watch(book) == {NEARLY}
    end(book, permitted(book, 199, "po-3"))
    assert watch(book) == {NEARLY}
    end(book, permitted(book, 1, "po-4"))
    assert watch(book) == {USED_UP}
    book.time.advance(until(book, ends_at) - timedelta(microseconds=1))
    assert watch(book) == {USED_UP}
    book.time.advance(timedelta(microseconds=1))
    assert watch(book) == set()
    told = book.rows(
        "SELECT edge, kind FROM alert_deliveries JOIN alerts USING (alert_id) WHERE kind LIKE 'budget%' "
        "ORDER BY delivery_id"
    )
    assert [(row["edge"], row["kind"]) for row in told] == [
        ("raised", "budget_nearly_used"),
        ("cleared", "budget_nearly_used"),
        ("raised", "budget_used_up"),
        ("cleared", "budget_used_up"),
    ]


@pytest.mark.parametrize("percent", [1, 50, 100])
def test_the_setting_says_how_near_is_near(book: Book, percent: int) -> None:
    book.policy = replace(book.policy, budget_alert_percent=percent)
    with_budget(book, 1_000)
    end(book, permitted(book, percent * 10 - 1))
    assert watch(book) == set()
    end(book, permitted(book, 1, "po-2"))
    assert watch(book) == ({USED_UP} if percent == 100 else {NEARLY})


def test_a_budget_of_nothing_is_no_news(book: Book) -> None:
    with_budget(book, 0)
    assert watch(book) == set()


def test_an_alert_clears_when_the_budget_is_raised_or_removed(book: Book) -> None:
    with_budget(book, 1_000)
    end(book, permitted(book, 1_000))
    assert watch(book) == {USED_UP}
    with_budget(book, 9_000)
    assert watch(book) == set()
    with_budget(book, 1_000)
    assert watch(book) == {USED_UP}
    book.run(remove_budget, "house", "not wanted", PERSON)
    assert watch(book) == set()


def test_health_shows_those_with_the_least_part_left_first(book: Book) -> None:
    with_budget(book, 1_000, "whole")
    with_budget(book, 10_000, "tenth", site="rakuten")
    with_budget(book, 0, "nothing", site="sandbox")
    end(book, permitted(book, 900))
    assert [state.budget.budget_id for state in book.run(least_left)] == ["nothing", "whole", "tenth"]


def test_a_restore_leaves_what_is_reserved_as_it_is(book: Book) -> None:
    with_budget(book, 1_000)
    lease = permitted(book, 600)
    book.run(mark_restored, "a-backup.db", Actor("operator"), book.new_token)
    assert stands(book) == (600, 0, 400)
    book.report(lease, OrderState.PAID, payable_yen=600, sequence=2)
    assert ledger(book) == [("po-1", 1, "reserved", 600)], "a late word settles nothing"
