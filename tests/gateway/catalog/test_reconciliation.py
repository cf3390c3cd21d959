"""What the catalogue finds, and what it does not conclude."""

import itertools
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from common.target import Target
from gateway.account_queries.lease import take_next_query
from gateway.account_queries.result import report_result
from gateway.account_queries.timeouts import move_on_timed_out
from gateway.catalog.ingest import Ingest
from gateway.catalog.read import list_catalog
from gateway.catalog.reconcile import list_discrepancies
from gateway.catalog.rounds import MAX_PAGES, Rounds
from gateway.domain.account_queries import QueryLease, QueryLeaseRequest, QueryOutcome, QueryStatus, QuerySubmitted
from gateway.domain.catalog import CatalogFilter, CatalogOrder, CatalogPolicy
from gateway.domain.instant import utc_text
from gateway.domain.leases import Lease
from gateway.domain.states import OrderState
from tests.gateway.account_queries.test_rules import POLICY as QUERY_POLICY
from tests.gateway.account_queries.test_rules import submit
from tests.gateway.support.book import Book

POLICY = CatalogPolicy(
    sites=("sandbox",),
    interval=timedelta(hours=1),
    window=timedelta(days=30),
    details_a_round=3,
    settle=timedelta(seconds=900),
)


class Shop:
    """The catalogue of one site over a book, and a worker that reads what the test says."""

    def __init__(self, book: Book, policy: CatalogPolicy = POLICY) -> None:
        self.book = book
        numbers = itertools.count(1)
        self.rounds = Rounds(policy, QUERY_POLICY, lambda: f"c-{next(numbers)}")
        self.ingest = Ingest(policy, self.rounds)

    def discover(self) -> QuerySubmitted:
        return self.book.run(self.rounds.discover, Target("sandbox"))

    def take(self) -> QueryLease | None:
        request = QueryLeaseRequest("w1", None, ("sandbox",))
        return self.book.run(take_next_query, QUERY_POLICY, request)

    def bring(self, lease: QueryLease | None, result: dict[str, Any]) -> None:
        assert lease is not None
        told = QueryOutcome(lease.query_id, "w1", lease.attempt, json.dumps(result))
        assert self.book.run(report_result, QUERY_POLICY, told, self.ingest) is QueryStatus.SUCCEEDED

    def show(self, *numbers: str, covered: bool = True, details: dict[str, str] | None = None) -> list[str]:
        """One round: the site shows these orders, newest first; return the orders whose detail was asked for."""
        self.discover()
        self.bring(self.take(), order_list(*numbers, covered=covered))
        asked = []
        while (lease := self.take()) is not None:
            number = json.loads(lease.params_json)["order_number"]
            asked.append(number)
            self.bring(lease, order_detail(number, (details or {}).get(number, "paid")))
        return asked

    def orders(self) -> dict[str, CatalogOrder]:
        return {order.order_number: order for order in self.book.run(list_catalog, CatalogFilter(), None, 200).items}

    def found(self) -> list[tuple[str, str, str]]:
        """Kind, order number and task of what differs, the oldest first."""
        page = self.book.run(list_discrepancies, None, CatalogFilter(), None, 200)
        return [(each.kind.value, each.order_number, each.task_id) for each in reversed(page.items)]


def order_list(*numbers: str, covered: bool = True) -> dict[str, Any]:
    orders = [
        {"order_number": number, "order_date": "2026-11-20T09:00:00+09:00", "shop_id": 306087, "shop_name": "茶の店",
         "items": []}
        for number in numbers
    ]  # fmt: skip
    return {"kind": "order_list", "window_fully_covered": covered, "orders": orders, "raw_pages": []}


def order_detail(number: str, state: str | None, **fields: Any) -> dict[str, Any]:
    detail = {"kind": "order_detail", "order_number": number, "found": True, "stage_label": "出荷",
              "order_state": state, "raw": None, "raw_available": False}  # fmt: skip
    return detail | fields


@pytest.fixture
def shop(book: Book) -> Shop:
    return Shop(book)


def order(book: Book, task_id: str, number: str, state: OrderState = OrderState.PAID) -> Lease:
    """A task that ended with an order of this number."""
    book.submit(task_id, "sandbox")
    lease = book.take(task_id, request=book.request(sites=("sandbox",)))
    book.report(lease, state, site_order_id=number, terminal=True)
    return lease


def test_a_number_that_only_a_late_report_told_is_known(shop: Shop, book: Book) -> None:
    book.submit("po-1", "sandbox")
    lease = book.take("po-1")
    book.permit(lease)
    book.lapse(lease)
    shop.show("A-1")
    assert shop.found() == [("unknown_to_tasks", "A-1", "")]
    book.report(lease, OrderState.ORDERED, site_order_id="A-1")
    assert book.details("report_refused")
    assert shop.found() == []
    shop.show("A-1")
    assert shop.found() == []


def test_an_order_that_no_task_knows_is_found_once_however_often_it_is_seen(shop: Shop) -> None:
    for _ in range(3):
        shop.show("A-1")
    assert shop.found() == [("unknown_to_tasks", "A-1", "")]


def test_an_order_that_a_task_told_is_no_finding_and_one_told_later_goes(shop: Shop, book: Book) -> None:
    order(book, "po-1", "A-1")
    shop.show("A-2", "A-1")
    assert shop.found() == [("unknown_to_tasks", "A-2", "")]
    order(book, "po-2", "A-2")
    assert shop.found() == []


def test_the_number_of_another_site_s_task_is_unknown(shop: Shop, book: Book) -> None:
    lease = book.take("po-1")
    book.report(lease, OrderState.PAID, site_order_id="A-1", terminal=True)
    shop.show("A-1")
    assert shop.found() == [("unknown_to_tasks", "A-1", "")]


def test_a_task_whose_order_a_complete_list_does_not_show_is_found_once(shop: Shop, book: Book) -> None:
    order(book, "po-1", "A-1")
    book.time.advance(POLICY.settle)
    for _ in range(3):
        shop.show()
    assert shop.found() == [("missing_on_site", "A-1", "po-1")]


def test_a_number_told_with_several_states_is_missing_once(shop: Shop, book: Book) -> None:
    book.submit("po-1", "sandbox")
    lease = book.take("po-1", request=book.request(sites=("sandbox",)))
    for state in (OrderState.ORDERED, OrderState.AWAITING_PAYMENT, OrderState.PAID):
        book.report(lease, state, site_order_id="A-1")
    book.time.advance(POLICY.settle)
    shop.show()
    assert shop.found() == [("missing_on_site", "A-1", "po-1")]


def test_a_window_not_fully_covered_proves_nothing(shop: Shop, book: Book) -> None:
    order(book, "po-1", "A-1")
    book.time.advance(POLICY.settle)
    shop.show(covered=False)
    shop.discover()
    shop.bring(shop.take(), {"kind": "order_list", "orders": []})
    shop.discover()
    shop.bring(shop.take(), order_list() | {"window_fully_covered": "true"})
    assert shop.found() == []


def test_a_list_with_an_order_that_cannot_be_read_proves_nothing(shop: Shop, book: Book) -> None:
    order(book, "po-1", "A-1")
    book.time.advance(POLICY.settle)
    shop.discover()
    shop.bring(shop.take(), order_list("A-2") | {"orders": [{"order_number": 17}, None, "A-1"]})
    assert shop.found() == []


def test_an_order_that_the_site_need_not_show_yet_is_not_missing(shop: Shop, book: Book) -> None:
    order(book, "po-1", "A-1")
    book.time.advance(POLICY.settle - timedelta(seconds=1))
    shop.show()
    assert shop.found() == []
    book.time.advance(timedelta(seconds=1))
    shop.show()
    assert shop.found() == [("missing_on_site", "A-1", "po-1")]


def test_what_counts_is_when_the_list_was_read_not_when_its_result_came(shop: Shop, book: Book) -> None:
    order(book, "po-1", "A-1")
    shop.discover()
    book.time.advance(POLICY.settle - timedelta(seconds=1))
    lease = shop.take()
    book.time.advance(timedelta(seconds=100))
    shop.bring(lease, order_list())
    assert shop.found() == []


def test_an_order_from_before_the_window_is_not_missing(shop: Shop, book: Book) -> None:
    order(book, "po-1", "A-1")
    book.time.advance(POLICY.window + timedelta(seconds=1))
    shop.show()
    assert shop.found() == []


def test_an_order_of_a_task_from_before_the_window_is_not_missing_though_it_was_told_in_it(
    shop: Shop, book: Book
) -> None:
    book.submit("po-1", "sandbox")
    book.time.advance(POLICY.window)
    lease = book.take("po-1", request=book.request(sites=("sandbox",)))
    book.report(lease, OrderState.PAID, site_order_id="A-1", terminal=True)
    book.time.advance(POLICY.settle)
    shop.show()
    assert shop.found() == []


def test_a_cancelled_order_may_well_be_off_the_list(shop: Shop, book: Book) -> None:
    order(book, "po-1", "A-1", OrderState.CANCELLED)
    book.time.advance(POLICY.settle)
    shop.show()
    assert shop.found() == []


def test_a_missing_order_that_the_site_shows_again_is_missing_no_more(shop: Shop, book: Book) -> None:
    order(book, "po-1", "A-1")
    book.time.advance(POLICY.settle)
    shop.show()
    book.time.advance(1)
    shop.show("A-1", covered=False)
    assert shop.found() == []


def test_an_order_seen_before_and_then_not_in_a_complete_list_is_missing(shop: Shop, book: Book) -> None:
    order(book, "po-1", "A-1")
    shop.show("A-1")
    book.time.advance(POLICY.settle)
    shop.show(covered=False)
    assert shop.found() == []
    shop.show()
    assert shop.found() == [("missing_on_site", "A-1", "po-1")]


def test_a_state_that_moved_on_is_found_once_and_goes_when_the_task_has_caught_up(shop: Shop, book: Book) -> None:
    lease = order(book, "po-1", "A-1", OrderState.PAID)
    for _ in range(2):
        shop.show("A-1", details={"A-1": "shipped"})
    (found,) = book.run(list_discrepancies, None, CatalogFilter(), None, 10).items
    assert (found.kind.value, found.task_state, found.site_state) == ("state_moved_on", "paid", "shipped")
    assert "shipped" in found.explanation
    assert "paid" in found.explanation

    book.report(lease, OrderState.SHIPPED)
    assert shop.found() == []


def test_an_earlier_or_unknown_state_on_the_site_is_no_finding(shop: Shop, book: Book) -> None:
    order(book, "po-1", "A-1", OrderState.SHIPPED)
    shop.show("A-1", details={"A-1": "paid"})
    shop.discover()
    shop.bring(shop.take(), order_list("A-1"))
    shop.bring(shop.take(), order_detail("A-1", None))
    assert shop.found() == []
    assert shop.orders()["A-1"].order_state is None


def test_every_kind_at_once_is_listed_newest_first_and_by_kind(shop: Shop, book: Book) -> None:
    order(book, "po-1", "A-1")
    order(book, "po-2", "A-2")
    book.time.advance(POLICY.settle)
    shop.show("A-9", "A-1", details={"A-1": "delivered"})
    assert sorted(shop.found()) == [
        ("missing_on_site", "A-2", "po-2"),
        ("state_moved_on", "A-1", "po-1"),
        ("unknown_to_tasks", "A-9", ""),
    ]
    first = book.run(list_discrepancies, None, CatalogFilter(), None, 2)
    rest = book.run(list_discrepancies, None, CatalogFilter(), first.next_after, 2)
    assert len({each.row for each in first.items + rest.items}) == 3
    assert rest.next_after is None
    only = book.run(list_discrepancies, first.items[0].kind, CatalogFilter("sandbox"), None, 10).items
    assert [each.kind for each in only] == [first.items[0].kind]
    assert book.run(list_discrepancies, None, CatalogFilter("rakuten"), None, 10).items == ()


def test_details_are_read_of_what_is_new_or_not_final_and_bounded_a_round(shop: Shop) -> None:
    numbers = [f"A-{number}" for number in range(5)]
    final = {"A-0": "delivered", "A-1": "cancelled"}
    assert len(shop.show(*numbers, details=final)) == POLICY.details_a_round
    second = shop.show(*numbers, details=final)
    assert len(second) == POLICY.details_a_round
    seen = [number for _ in range(4) for number in shop.show(*numbers, details=final)]
    assert set(seen) == {"A-2", "A-3", "A-4"}
    assert shop.orders()["A-0"].order_state is OrderState.DELIVERED


def test_an_order_whose_detail_is_in_flight_is_not_asked_for_again(shop: Shop) -> None:
    shop.discover()
    shop.bring(shop.take(), order_list("A-1"))
    in_flight = shop.take()
    shop.discover()
    shop.bring(shop.take(), order_list("A-1"))
    assert shop.take() is None
    shop.bring(in_flight, order_detail("A-1", "paid"))


def test_an_order_that_the_site_does_not_detail_yet_stays_new_and_does_not_block_the_others(book: Book) -> None:
    shop = Shop(book, replace(POLICY, details_a_round=1))
    asked = []
    for _ in range(4):
        shop.discover()
        shop.bring(shop.take(), order_list("A-2", "A-1"))
        lease = shop.take()
        assert lease is not None
        number = json.loads(lease.params_json)["order_number"]
        asked.append(number)
        shop.bring(lease, order_detail(number, "paid", found=number != "A-1"))
        book.time.advance(1)
    assert asked.count("A-1") == asked.count("A-2") == 2
    assert shop.orders()["A-1"].detail_fetched_at is None


def test_the_catalogue_keeps_the_normalised_fields_latest_seen_first(shop: Shop, book: Book) -> None:
    shop.show("A-2", "A-1")
    book.time.advance(60)
    shop.discover()
    shop.bring(shop.take(), order_list("A-3", "A-1"))
    while (lease := shop.take()) is not None:
        number = json.loads(lease.params_json)["order_number"]
        shop.bring(lease, order_detail(number, "shipped", delivery_status="SHIPPED"))

    assert list(shop.orders()) == ["A-3", "A-1", "A-2"]
    kept = shop.orders()["A-1"]
    assert (kept.shop_id, kept.shop_name, kept.order_date) == ("306087", "茶の店", "2026-11-20T00:00:00.000000Z")
    assert (kept.delivery_status, kept.order_state) == ("SHIPPED", OrderState.SHIPPED)
    assert kept.discovered_at < kept.last_seen_at
    assert kept.detail_fetched_at == kept.last_seen_at
    pages = book.run(list_catalog, CatalogFilter("sandbox"), None, 2)
    assert [each.order_number for each in pages.items] == ["A-3", "A-1"]
    last = book.run(list_catalog, CatalogFilter("sandbox"), pages.next_after, 2)
    assert ([each.order_number for each in last.items], last.next_after) == (["A-2"], None)


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"orders": None, "window_fully_covered": True},
        {"orders": {"order_number": "A-1"}, "window_fully_covered": True},
        {"orders": [{}, 1, None, [], {"order_number": ""}, {"order_number": "x" * 129}], "window_fully_covered": True},
        {"orders": [{"order_number": "A-1", "order_date": "soon", "shop_id": [1], "shop_name": True}]},
    ],
)
def test_a_result_of_any_form_is_taken_and_harms_nothing(shop: Shop, book: Book, result: dict[str, Any]) -> None:
    order(book, "po-1", "A-7")
    book.time.advance(POLICY.settle)
    shop.discover()
    shop.bring(shop.take(), result)
    assert ("missing_on_site", "A-7", "po-1") not in shop.found() or result["orders"] == []
    for detail in ({}, {"found": 1}, order_detail("A-2", "paid"), order_detail("A-1", "lost"), {"order_state": {}}):
        lease = shop.take()
        if lease is None:
            shop.discover()
            shop.bring(shop.take(), order_list("A-1"))
            lease = shop.take()
        shop.bring(lease, detail)
    assert shop.orders().get("A-1") is None or shop.orders()["A-1"].order_state is None


def test_queries_of_others_are_not_taken_in(shop: Shop, book: Book) -> None:
    submit(book, "of-an-upstream")
    shop.bring(shop.take(), order_list("A-1"))
    assert shop.orders() == {}
    assert shop.found() == []


def test_a_round_is_filed_every_interval_for_each_site_and_never_two_at_once(book: Book) -> None:
    shop = Shop(book, replace(POLICY, sites=("sandbox", "rakuten")))
    assert POLICY.interval is not None
    assert [book.run(shop.rounds.file_due) for _ in range(2)] == [2, 0]
    book.time.advance(POLICY.interval / 4)
    book.run(move_on_timed_out, QUERY_POLICY)
    book.time.advance(POLICY.interval * 3 / 4 - timedelta(microseconds=1))
    assert book.run(shop.rounds.file_due) == 0
    book.time.advance(timedelta(microseconds=1))
    assert book.run(shop.rounds.file_due) == 2


def test_a_round_in_flight_is_answered_and_not_doubled(shop: Shop, book: Book) -> None:
    first = shop.discover()
    assert (first.created, first.status) == (True, QueryStatus.QUEUED)
    lease = shop.take()
    assert lease is not None
    again = shop.discover()
    assert (again.query_id, again.created, again.status) == (first.query_id, False, QueryStatus.LEASED)
    since = utc_text(book.time.wall - POLICY.window)
    assert json.loads(lease.params_json) == {"since": since, "max_pages": MAX_PAGES}
    shop.bring(lease, order_list())
    assert shop.discover().created is True


def test_each_known_target_has_rounds_of_its_own_and_orders_of_its_own(book: Book) -> None:
    shop = Shop(book, replace(POLICY, sites=("sandbox",)))
    book.submit("po-1", "sandbox", account="a")
    book.open(book.request("w9", sites=("sandbox",), accounts=("b",)))
    assert POLICY.interval is not None
    assert [book.run(shop.rounds.file_due) for _ in range(2)] == [2, 0]
    rows = book.rows("SELECT account FROM account_queries ORDER BY account")
    assert rows == [{"account": "a"}, {"account": "b"}]

    def look(account: str, *numbers: str) -> None:
        request = QueryLeaseRequest("w1", None, ("sandbox",), accounts=(account,))
        lease = book.run(take_next_query, QUERY_POLICY, request)
        assert lease is not None
        shop.bring(lease, order_list(*numbers))

    lease = book.take("po-1", request=book.request(sites=("sandbox",), accounts=("a",)))
    book.report(lease, OrderState.PAID, site_order_id="A-1", terminal=True)
    look("b", "A-1", "B-1")
    found = book.run(list_discrepancies, None, CatalogFilter(account="b"), None, 10).items
    # A number that another account's task told is none of this account's.
    assert {(item.kind.value, item.account, item.order_number) for item in found} == {
        ("unknown_to_tasks", "b", "A-1"),
        ("unknown_to_tasks", "b", "B-1"),
    }
    look("a", "A-1")
    assert book.run(list_discrepancies, None, CatalogFilter(account="a"), None, 10).items == ()
    listed = book.run(list_catalog, CatalogFilter(account="a"), None, 10).items
    assert [(order.account, order.order_number) for order in listed] == [("a", "A-1")]
    again = book.run(shop.rounds.discover, Target("sandbox", "c"))
    assert (again.created, book.run(shop.rounds.discover, Target("sandbox", "c")).created) == (True, False)
