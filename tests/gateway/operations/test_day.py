"""The statement of a day: what stands in it, and what each task counts as (docs/money.md#statement)."""

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from gateway.domain.leases import Lease
from gateway.domain.search import Position
from gateway.domain.statements import MAX_DECISIONS, Spending, StatementDay, StatementLine
from gateway.domain.states import OrderState, TaskStatus
from gateway.operations.day import list_statement
from gateway.orders.expire import expire_due
from tests.gateway.operations.person import WHY, Person
from tests.gateway.support.book import Book, terms
from tests.gateway.support.manual_time import TICK

TOKYO = StatementDay(date(2026, 11, 30), "Asia/Tokyo")


def page(
    book: Book, day: StatementDay = TOKYO, after: Position | None = None, count: int = 200
) -> tuple[tuple[StatementLine, ...], Position | None]:
    found = book.run(list_statement, day, after, count)
    return found.items, found.next_after


def line(book: Book) -> StatementLine:
    """The line of the one task."""
    filed = datetime.fromisoformat(book.task().created_at).date()
    (found,) = page(book, StatementDay(filed, "UTC"))[0]
    return found


def counts(book: Book) -> tuple[Spending, int | None]:
    found = line(book)
    return found.spending, found.yen


def find_no_order(book: Book, lease: Lease) -> None:
    """Let a lease run out, and a person resolve its task to failed after the settle time."""
    book.lapse(lease)
    book.run(expire_due)
    book.time.advance(book.policy.permit_settle + book.policy.lease_ttl)
    Person(book).fail()
    assert book.status() is TaskStatus.FAILED


def test_a_day_begins_at_its_midnight_and_ends_before_the_next(book: Book) -> None:
    for number, moment in enumerate((datetime(2026, 11, 29, 15, tzinfo=UTC), datetime(2026, 11, 30, 15, tzinfo=UTC))):
        if book.time.wall < moment:
            book.time.advance(moment - TICK - book.time.wall)
            book.submit(f"before-{number}")
            book.time.advance(TICK)
        book.submit(f"from-{number}")
    assert [each.task.task_id for each in page(book)[0]] == ["from-0", "before-1"]
    assert [each.task.task_id for each in page(book, replace(TOKYO, day=date(2026, 12, 1)))[0]] == ["from-1"]
    assert [each.task.task_id for each in page(book, StatementDay(date(2026, 11, 30), "UTC"))[0]] == [
        "before-1", "from-1",
    ]  # fmt: skip


def test_pages_are_in_the_order_of_submission_and_neither_skip_nor_repeat(book: Book) -> None:
    for number in range(5):
        book.submit(f"po-{number}")
    seen, after = [], None
    while True:
        lines, after = page(book, after=after, count=2)
        seen += [each.task.task_id for each in lines]
        if after is None:
            break
        if len(seen) == 2:
            book.submit("po-5")
    assert seen == [f"po-{number}" for number in range(6)]


def test_what_cannot_have_been_ordered_costs_nothing(book: Book) -> None:
    lease = book.take()
    book.report(lease, OrderState.IN_CART, payable_yen=3_000, sequence=1)
    assert counts(book) == (Spending.NONE, None)


def test_a_permit_may_have_cost_what_it_was_for_until_a_person_finds_no_order(book: Book) -> None:
    lease = book.take()
    book.permit(lease, terms=terms(2_900))
    assert counts(book) == (Spending.POSSIBLE, 2_900)
    find_no_order(book, lease)
    assert counts(book) == (Spending.NONE, None)
    (decided,) = line(book).decisions
    assert (decided.kind, decided.actor, decided.reason) == ("resolve", "operator", WHY)


def test_an_order_costs_what_was_told_last_and_a_cancelled_one_is_told_apart(book: Book) -> None:
    lease = book.take()
    book.permit(lease, terms=terms(2_900))
    book.report(lease, OrderState.ORDERED, site_order_id="R-1", sequence=1)
    assert counts(book) == (Spending.ORDERED, 2_900)
    book.report(lease, OrderState.PAID, payable_yen=3_100, sequence=2)
    assert counts(book) == (Spending.ORDERED, 3_100)
    assert line(book).site_order_ids == ("R-1",)
    book.report(lease, OrderState.CANCELLED, sequence=3, terminal=True)
    assert counts(book) == (Spending.CANCELLED, 3_100)


def test_a_worker_s_word_of_an_order_outweighs_a_person_who_found_none(book: Book) -> None:
    lease = book.take()
    book.permit(lease, terms=terms(2_900))
    holder = book.holder(lease)
    find_no_order(book, lease)
    book.report(lease, OrderState.ORDERED, site_order_id="R-1", sequence=1, holder=holder)
    assert counts(book) == (Spending.POSSIBLE, 2_900)


def test_of_many_decisions_the_newest_stand_in_the_order_of_time(book: Book) -> None:
    lease = book.take()
    book.lapse(lease)
    person = Person(book)
    for _ in range(MAX_DECISIONS):
        person.requeue()
        person.withdraw()
    kinds = [event.kind for event in line(book).decisions]
    assert kinds == ["requeue", "withdraw"] * (MAX_DECISIONS // 2)


@pytest.mark.parametrize("day", [date(1970, 1, 1), date(2999, 12, 31)])
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Midway", "UTC"])
def test_the_first_and_the_last_day_have_a_beginning_and_an_end(book: Book, day: date, zone: str) -> None:
    assert page(book, StatementDay(day, zone)) == ((), None)
