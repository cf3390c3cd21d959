"""What an order list tells about a task, case by case of the table in worker.orders.verification; comparing items."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from worker.orders.matching import Overlap, difference, overlap
from worker.orders.other_tasks import OtherTasks
from worker.orders.verification import Verdict, judge
from worker.sites.port import Item, ListedItem, ListedOrder, OrderList

URL = "https://item.example/shop/tea/"
OTHER = "https://item.example/shop/cup/"
NO_OTHERS = OtherTasks(frozenset())
WANTED = (Item(URL, 2, "green"), Item(OTHER))


def order(number: str, *items: tuple[str, int | None, str | None]) -> ListedOrder:
    listed = tuple(ListedItem(1, "name", url, quantity, variant) for url, quantity, variant in items)
    return ListedOrder(number, datetime(2026, 7, 27, tzinfo=UTC), 1, "shop", listed)


def listed(*orders: ListedOrder, covered: bool = True) -> OrderList:
    return OrderList(orders, covered, (), ())


MATCH = order("1", (URL, 2, "green"), (OTHER, 1, None))
BARE = order("2", (URL, None, None), (OTHER, None, None))
PART = order("3", (URL, 2, "green"))
MORE = order("4", (URL, 2, "green"), (OTHER, 1, None), ("https://item.example/shop/pot/", 1, None))
TOO_MANY = order("5", (URL, 3, "green"), (OTHER, 1, None))
VARIANT = order("6", (URL, 2, "black"), (OTHER, 1, "x"))
FOREIGN = order("7", ("https://item.example/shop/pot/", 1, None))


@pytest.mark.parametrize(
    ("found", "verdict", "number"),
    [
        (listed(), Verdict.VERDICT_NOT_ORDERED, None),
        (listed(FOREIGN), Verdict.VERDICT_NOT_ORDERED, None),
        (listed(FOREIGN, MATCH), Verdict.VERDICT_ORDERED, "1"),
        (listed(BARE), Verdict.VERDICT_ORDERED, "2"),
        (listed(MATCH, BARE), Verdict.VERDICT_UNKNOWN, None),
        (listed(MATCH, PART), Verdict.VERDICT_UNKNOWN, None),
        (listed(PART), Verdict.VERDICT_UNKNOWN, None),
        (listed(MORE), Verdict.VERDICT_UNKNOWN, None),
        (listed(TOO_MANY), Verdict.VERDICT_UNKNOWN, None),
        (listed(covered=False), Verdict.VERDICT_UNKNOWN, None),
        (listed(MATCH, covered=False), Verdict.VERDICT_UNKNOWN, None),
    ],
)
def test_a_list_is_judged_by_the_table(found: OrderList, verdict: int, number: str | None) -> None:
    judgement = judge(found, WANTED, NO_OTHERS)
    assert (judgement.verdict, judgement.order_number) == (verdict, number)


def test_orders_of_other_tasks_are_left_out() -> None:
    assert judge(listed(MATCH), WANTED, OtherTasks(frozenset("1"))).verdict == Verdict.VERDICT_NOT_ORDERED
    assert judge(listed(MATCH, BARE), WANTED, OtherTasks(frozenset("1"))).order_number == "2"


def test_numbers_of_other_tasks_count_whole() -> None:
    mine, alike = order("306087-20260813-0863947697", (URL, 2, "green"), (OTHER, 1, None)), "306087-20260814-0000007697"
    for other in (alike, "7697", "306087-20260813-08639476", mine.order_number.upper() + "0"):
        judgement = judge(listed(mine), WANTED, OtherTasks(frozenset({other})))
        assert judgement.order_number == mine.order_number, other


def test_a_match_proves_nothing_where_not_all_numbers_of_other_tasks_are_known() -> None:
    doubtful = OtherTasks(frozenset(), "another task may have an order")
    found = judge(listed(MATCH), WANTED, doubtful)
    assert (found.verdict, found.order_number) == (Verdict.VERDICT_UNKNOWN, None)
    assert found.why == "order 1 may belong to another task: another task may have an order"
    assert judge(listed(), WANTED, doubtful).verdict == Verdict.VERDICT_NOT_ORDERED


def test_what_the_list_does_not_show_agrees_and_what_it_shows_must() -> None:
    assert overlap(WANTED, BARE) is Overlap.FULL
    assert overlap((Item(URL, 1, None), Item(OTHER, 1, None)), VARIANT) is Overlap.PARTIAL
    assert overlap((Item(URL, 2, None), Item(OTHER)), MATCH) is Overlap.FULL


def test_items_are_compared_whole() -> None:
    assert difference(WANTED, tuple(reversed(WANTED))) is None
    assert difference((Item(URL, 2),), (Item(URL.upper().replace("HTTPS://ITEM.EXAMPLE", "https://Item.Example"), 2),))
    assert difference((Item(URL + "#reviews"),), (Item(URL.rstrip("/")),)) is None
    assert difference((Item(URL), Item(URL)), (Item(URL, 2),)) is None
    assert difference(WANTED, WANTED[:1]) == f"{OTHER.rstrip('/')}: wanted 1, shown 0"
    assert difference((Item(URL, 1, "a", ("x", "y")),), (Item(URL, 1, "a", ("y", "x")),)) is not None
    assert difference((Item(URL),), (Item(URL), Item(OTHER))) is not None


@pytest.mark.parametrize(
    "other",
    [
        Item(URL, 2, "black"),
        Item(URL, 2, None),
        Item(URL, 2, "green", ("gift",)),
        Item(URL + "?size=l", 2, "green"),
        Item(URL, 3, "green"),
    ],
)
def test_another_variant_choice_quantity_or_address_is_another_item(other: Item) -> None:
    wanted = Item(URL, 2, "green")
    assert difference((wanted,), (wanted,)) is None
    assert difference((wanted,), (other,)) is not None
    assert difference((other,), (wanted,)) is not None


def test_addresses_that_differ_in_their_query_are_two_items() -> None:
    small, large = Item(URL + "?size=s"), Item(URL + "?size=l")
    assert difference((small,), (large,)) is not None
    assert difference((small, large), (small, small)) is not None
    assert overlap((small,), order("1", (large.item_url, 1, None))) is Overlap.NONE
    assert overlap((small,), order("1", (small.item_url, 1, None))) is Overlap.FULL


def test_an_item_that_cannot_be_compared_may_be_any() -> None:
    unknown = replace(FOREIGN, items=(replace(FOREIGN.items[0], comparable=False),))
    assert judge(listed(unknown), WANTED, NO_OTHERS).verdict == Verdict.VERDICT_UNKNOWN
    assert judge(listed(MATCH, unknown), WANTED, NO_OTHERS).verdict == Verdict.VERDICT_UNKNOWN
    assert judge(listed(unknown), WANTED, OtherTasks(frozenset("7"))).verdict == Verdict.VERDICT_NOT_ORDERED


def test_one_number_with_two_contents_says_nothing() -> None:
    found = judge(listed(FOREIGN, replace(MATCH, order_number="7")), WANTED, NO_OTHERS)
    assert (found.verdict, found.order_number) == (Verdict.VERDICT_UNKNOWN, None)
    assert found.why == "orders that are listed twice and differ: 7"


@pytest.mark.parametrize("escaped", [URL.replace("tea", "%74ea"), URL.replace("shop/tea", "sho%70/t%65%61")])
def test_an_address_is_the_same_however_it_is_escaped(escaped: str) -> None:
    assert difference((Item(URL),), (Item(escaped),)) is None
    assert overlap((Item(URL),), order("1", (escaped, 1, None))) is Overlap.FULL
    assert difference((Item(URL + "%2f"),), (Item(URL + "/"),)) is not None
