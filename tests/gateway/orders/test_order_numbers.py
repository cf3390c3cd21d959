"""Order numbers: of one task and of others, which a look at the site leaves out; and placement."""

from datetime import timedelta
from typing import Any

import pytest

from gateway.domain.leases import Lease, OtherOrders, Renewed
from gateway.domain.models import Actor
from gateway.domain.states import ENDED, OrderState, Placement, TaskStatus
from gateway.operations.restore import mark_restored
from gateway.orders.expire import expire_due
from tests.gateway.operations.person import Person
from tests.gateway.orders.reporting import late
from tests.gateway.support.book import Book
from tests.gateway.support.manual_time import TICK

S = OrderState


# Numbers.


def test_one_number_on_two_tasks_alerts(book: Book) -> None:
    first = book.take("po-1")
    book.report(first, S.PAID, site_order_id="266123-1", terminal=True)
    second = book.take("po-2")
    assert not any(kind == "site_order_id_conflict" for kind, _ in book.alerts())
    book.report(second, S.ORDERED, site_order_id="266123-1")
    assert ("site_order_id_conflict", "rakuten/266123-1") in book.alerts()


def test_one_number_on_two_sites_is_no_matter(book: Book) -> None:
    first = book.take("po-1")
    book.report(first, S.PAID, site_order_id="266123-1", terminal=True)
    book.submit("po-2", "sandbox")
    second = book.take("po-2")
    book.report(second, S.ORDERED, site_order_id="266123-1")
    assert not any(kind == "site_order_id_conflict" for kind, _ in book.alerts())


@pytest.mark.parametrize("other_state", [S.ORDERED, S.PAID])
def test_two_numbers_on_one_task_alert(book: Book, other_state: S) -> None:
    lease = book.take()
    book.report(lease, S.ORDERED, sequence=1, site_order_id="266123-1")
    assert book.alerts() == set()
    book.report(lease, other_state, sequence=2, site_order_id="266123-2")
    assert ("site_order_id_conflict", "po-1") in book.alerts()


def test_a_number_told_late_counts_as_well(book: Book) -> None:
    lease, _ = late(book)
    book.report(lease, S.ORDERED, site_order_id="266123-1")
    second = book.take("po-2")
    book.report(second, S.ORDERED, site_order_id="266123-1")
    assert ("site_order_id_conflict", "rakuten/266123-1") in book.alerts()


# Orders of other tasks, which a look at the site leaves out.


def others(book: Book, lease: Lease) -> OtherOrders:
    """What the gateway says after a look at the site that found something."""
    renewed = book.renew(lease, with_others=True)
    assert isinstance(renewed, Renewed)
    assert renewed.others is not None
    return renewed.others


def end(book: Book, lease: Lease, **fields: Any) -> None:
    book.report(lease, S.CREATED, terminal=True, terminal_status=TaskStatus.FAILED, **fields)


def test_every_lease_brings_the_numbers_of_other_tasks_however_they_were_told(book: Book) -> None:
    done = book.take("po-0")
    book.report(done, S.PAID, site_order_id="266123-0", terminal=True)
    lapsed = book.take("po-1")
    book.permit(lapsed)
    book.lapse(lapsed)
    book.report(lapsed, S.ORDERED, site_order_id="266123-1")
    assert book.details("report_refused", "po-1")  # only a refused report told it
    first = book.take("po-2")
    expected = OtherOrders(("266123-1", "266123-0"), incomplete=False)
    assert first.others == expected
    assert book.retake(first).others == expected


def test_a_number_that_comes_between_the_lease_and_the_look_is_known_at_the_look(book: Book) -> None:
    lapsed = book.take("po-1")
    book.permit(lapsed)
    book.lapse(lapsed)
    lease = book.take("po-2")
    assert lease.others == OtherOrders((), incomplete=True)
    book.report(lapsed, S.ORDERED, site_order_id="266123-1")
    assert others(book, lease) == OtherOrders(("266123-1",), incomplete=False)
    renewed = book.renew(lease)
    assert isinstance(renewed, Renewed)
    assert renewed.others is None  # it is only looked for where it is asked for


def test_numbers_are_the_sites_own_and_none_is_the_tasks_own(book: Book) -> None:
    book.submit("po-1", site="sandbox")
    other_site = book.take("po-1")
    book.report(other_site, S.PAID, site_order_id="266123-1", terminal=True)
    lease = book.take("po-2")
    book.report(lease, S.ORDERED, site_order_id="266123-2")
    assert others(book, lease) == OtherOrders((), incomplete=False)


def test_more_numbers_than_an_answer_holds_are_told_to_be_incomplete(book: Book) -> None:
    lease = book.take("po-1")
    book.report(lease, S.PAID, site_order_id="266123-0", terminal=True)
    lease = book.take("po-2")
    copy = "INSERT INTO order_numbers SELECT site, ?, task_id, told_at, 0, account FROM order_numbers LIMIT 1"
    for number in range(999):
        book.connection.execute(copy, (f"n-{number}",))
    told = others(book, lease)
    assert (len(told.site_order_ids), told.incomplete) == (1_000, False)
    book.connection.execute(copy, ("n-999",))
    told = others(book, lease)
    assert (len(told.site_order_ids), told.incomplete) == (1_000, True)


def test_a_task_that_may_have_an_order_without_a_number_makes_the_others_incomplete(book: Book) -> None:
    clicked = book.take("po-1")
    book.permit(clicked)
    book.lapse(clicked)
    lease = book.take("po-2")
    assert lease.others.incomplete
    end(book, lease)
    found = book.retake_stale(clicked)
    assert not found.others.incomplete  # its own order is not another one's
    book.report(found, S.ORDERED, site_order_id="266123-1", terminal=True, terminal_status=TaskStatus.NEEDS_HUMAN)
    third = book.take("po-3")
    assert third.others == OtherOrders(("266123-1",), incomplete=False)


@pytest.mark.parametrize("status", sorted(ENDED))
def test_a_workers_end_without_a_number_leaves_the_order_in_doubt(book: Book, status: TaskStatus) -> None:
    clicked = book.take("po-1")
    book.permit(clicked)
    book.report(clicked, S.IN_CART, terminal=True, terminal_status=status)
    assert book.take("po-2").others.incomplete


@pytest.mark.parametrize("status", sorted(ENDED))
def test_a_workers_end_before_any_permit_leaves_no_doubt(book: Book, status: TaskStatus) -> None:
    book.report(book.take("po-1"), S.IN_CART, terminal=True, terminal_status=status)
    assert book.take("po-2").others == OtherOrders((), incomplete=False)


def test_a_person_who_found_no_order_ends_the_doubt_and_one_who_found_it_does_not(book: Book) -> None:
    person = Person(book)
    clicked = book.take("po-1")
    book.permit(clicked)
    book.lapse(clicked)
    book.run(expire_due)
    book.time.advance(book.policy.permit_settle)
    lease = book.take("po-2")
    person.fail("po-1")
    assert others(book, lease) == OtherOrders((), incomplete=False)
    person.resolve(TaskStatus.FAILED, "po-1", state=S.CANCELLED)
    assert others(book, lease).incomplete  # it is there, cancelled, and nobody said which
    person.resolve(TaskStatus.SUCCEEDED, "po-1", number="266123-1")
    assert others(book, lease) == OtherOrders(("266123-1",), incomplete=False)


def test_after_a_restore_tasks_may_be_forgotten_that_have_ordered(book: Book) -> None:
    book.run(mark_restored, "backup.db", Actor("operator"), book.new_token)
    book.resume()
    assert book.take("po-1").others == OtherOrders((), incomplete=True)
    book.time.advance(timedelta(days=1) + TICK)
    book.submit("po-2")
    lease = book.open(book.request(session="session-two-days-later"))
    assert lease is not None
    assert lease.others == OtherOrders((), incomplete=False)


# Placement.


def test_placement_is_impossible_possible_certain(book: Book) -> None:
    lease = book.take()
    book.report(lease, S.IN_CART)
    assert book.task().placement is Placement.IMPOSSIBLE
    book.permit(lease)
    assert book.task().placement is Placement.POSSIBLE
    book.report(lease, S.ORDERED)
    assert book.task().placement is Placement.CERTAIN


def test_a_lease_over_rest_makes_an_order_possible_until_its_undo(book: Book) -> None:
    book.submit()
    lease = book.open(book.rest_request())
    assert lease is not None
    assert book.task().placement is Placement.POSSIBLE
    assert book.undo(lease)
    assert book.task().placement is Placement.IMPOSSIBLE
