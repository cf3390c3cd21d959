"""What every adapter of a site has to keep to (worker/sites/port.py), whichever shop it is for.

An adapter's test module makes a class of `Conformance` and gives it a `rig`: the adapter, connected to a shop that a
test can set up, break and count. For a real site that is a server of its recorded pages; the site itself is never used.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from worker.orders.state import OrderState
from worker.sites.port import (
    AMOUNT_CODE,
    Confirmation,
    Item,
    ItemUnavailableError,
    LoggedOutError,
    Page,
    PageChangedError,
    Site,
    SiteError,
)

CONNECTION_FAILS = (OSError, httpx.HTTPError)
READS = ("check_session", "read_cart", "open_confirmation", "list_orders", "order_detail")
WRITES = ("add_to_cart", "submit", "pay")
READ_THROUGH = ("read_cart", "open_confirmation", "order_detail")
"""Reads of one page, from which nothing may be concluded where it was redesigned."""


class Rig(ABC):
    """An adapter and the shop that it is connected to. Operations are called by their names in `Site`."""

    site: Site
    items: Sequence[Item]
    """Two that can be bought together, the first without a variant."""
    unavailable: Item
    options: Mapping[str, Any]
    """With these an order is paid at once."""
    options_for_a_person: Mapping[str, Any] | None
    """With these paying asks for a step that only a person can take; None where the site has none."""

    @abstractmethod
    async def received(self, operation: str) -> int:
        """Return how many requests the shop has received that do what the operation is for."""

    @abstractmethod
    async def placed(self) -> list[str]:
        """Return the numbers of the orders that were placed, oldest first."""

    @abstractmethod
    async def paid(self) -> list[str]:
        """Return the numbers of the orders that were paid, a number for each payment."""

    @abstractmethod
    async def break_off(self, operation: str, *, after: bool) -> None:
        """Reset the connection of the operation's next request, before or after it had its effect."""

    @abstractmethod
    async def redesign(self, operation: str, part: str = "main") -> None:
        """Take a part out of the operation's next page: `main`, or `amount`."""

    @abstractmethod
    async def end_session(self) -> None:
        """Log the account out."""

    @abstractmethod
    async def sell_out(self) -> None:
        """Let nobody buy the items any more."""

    @abstractmethod
    def refuse_connections(self) -> None:
        """Take no new connection any more."""


def no_check() -> None:
    """It is not too late."""


class TooLateError(Exception):
    """What a pre-send check raises."""


class Checks:
    """A pre-send check that counts its calls, and what the shop had received by then."""

    def __init__(self, *, too_late: bool = False) -> None:
        self.calls = 0
        self._too_late = too_late

    def __call__(self) -> None:
        self.calls += 1
        if self._too_late:
            raise TooLateError


async def confirmed(rig: Rig) -> Confirmation:
    await rig.site.add_to_cart(rig.items[0])
    return await rig.site.open_confirmation(rig.options)


async def ordered(rig: Rig, options: Mapping[str, Any] | None = None) -> tuple[str, int | None]:
    """The number and the amount of an order that was placed."""
    await rig.site.add_to_cart(rig.items[0])
    confirmation = await rig.site.open_confirmation(rig.options if options is None else options)
    submission = await rig.site.submit(confirmation, no_check)
    assert submission.site_order_id is not None
    return submission.site_order_id, confirmation.payable_yen


async def prepared(rig: Rig, operation: str) -> Callable[[], Awaitable[Any]]:
    """The operation, with everything done that comes before it."""
    site = rig.site
    await site.check_session()
    if operation == "pay":
        number, yen = await ordered(rig)
        return lambda: site.pay(number, yen, rig.options, no_check)
    if operation == "order_detail":
        number, _ = await ordered(rig)
        return lambda: site.order_detail(number)
    if operation == "submit":
        confirmation = await confirmed(rig)
        return lambda: site.submit(confirmation, no_check)
    if operation == "open_confirmation":
        await site.add_to_cart(rig.items[0])
        return lambda: site.open_confirmation(rig.options)
    return {
        "check_session": site.check_session,
        "clear_cart": site.clear_cart,
        "read_cart": site.read_cart,
        "add_to_cart": lambda: site.add_to_cart(rig.items[0]),
        "list_orders": lambda: site.list_orders(since=None, max_pages=20),
    }[operation]


def is_evidence(page: Page | None) -> bool:
    return page is not None and bool(page.url) and bool(page.method) and page.http_status > 0


class Conformance:
    """The rules. A subclass gives the fixture `rig`."""

    # What it says of itself

    async def test_it_has_a_name_of_the_contract_and_orders(self, rig: Rig) -> None:
        assert re.fullmatch("[a-z0-9_-]{1,64}", rig.site.name)
        assert rig.site.can_order
        assert rig.site.can_read_orders

    # The session

    async def test_it_tells_whether_the_account_is_logged_in(self, rig: Rig) -> None:
        assert await rig.site.check_session() is True

    @pytest.mark.parametrize("operation", ["read_cart", "add_to_cart", "open_confirmation", "list_orders"])
    async def test_a_session_that_has_ended_is_told_with_its_code_and_page(self, rig: Rig, operation: str) -> None:
        act = await prepared(rig, operation)
        await rig.end_session()
        with pytest.raises(LoggedOutError) as told:
            await act()
        assert told.value.error_code == 5001
        assert is_evidence(told.value.page)

    # The cart

    async def test_the_cart_holds_what_was_added_and_shows_it(self, rig: Rig) -> None:
        for item in rig.items:
            assert is_evidence(await rig.site.add_to_cart(item))
        cart = await rig.site.read_cart()
        assert sorted(cart.items, key=lambda item: item.item_url) == sorted(rig.items, key=lambda item: item.item_url)
        assert is_evidence(cart.page)

    async def test_a_cleared_cart_is_empty_and_shows_it(self, rig: Rig) -> None:
        for item in rig.items:
            await rig.site.add_to_cart(item)
        cleared = await rig.site.clear_cart()
        assert cleared.items == ()
        assert is_evidence(cleared.page)
        assert (await rig.site.read_cart()).items == ()

    async def test_what_cannot_be_bought_is_refused_and_not_in_the_cart(self, rig: Rig) -> None:
        with pytest.raises(ItemUnavailableError) as told:
            await rig.site.add_to_cart(rig.unavailable)
        assert is_evidence(told.value.page)
        assert (await rig.site.read_cart()).items == ()

    # The confirmation page

    async def test_the_confirmation_page_shows_items_and_amount_and_orders_nothing(self, rig: Rig) -> None:
        await rig.site.add_to_cart(rig.items[0])
        confirmation = await rig.site.open_confirmation(rig.options)
        assert confirmation.items == (rig.items[0],)
        assert confirmation.payable_yen is not None
        assert confirmation.payable_yen > 0
        assert is_evidence(confirmation.page)
        assert await rig.placed() == []

    async def test_an_amount_that_cannot_be_read_is_none(self, rig: Rig) -> None:
        await rig.site.add_to_cart(rig.items[0])
        await rig.redesign("open_confirmation", "amount")
        assert (await rig.site.open_confirmation(rig.options)).payable_yen is None

    @pytest.mark.parametrize("operation", READ_THROUGH)
    async def test_from_a_redesigned_page_nothing_is_concluded(self, rig: Rig, operation: str) -> None:
        act = await prepared(rig, operation)
        await rig.redesign(operation)
        with pytest.raises(PageChangedError) as told:
            await act()
        assert is_evidence(told.value.page)

    # Never twice

    @pytest.mark.parametrize("operation", WRITES)
    @pytest.mark.parametrize("after", [False, True])
    async def test_a_write_without_an_answer_is_sent_once(self, rig: Rig, operation: str, after: bool) -> None:
        act = await prepared(rig, operation)
        before = await rig.received(operation)
        await rig.break_off(operation, after=after)
        with pytest.raises((SiteError, *CONNECTION_FAILS)):
            await act()
        assert await rig.received(operation) == before + 1

    @pytest.mark.parametrize("operation", READS)
    async def test_a_read_that_is_broken_off_reaches_the_caller_and_is_not_repeated(
        self, rig: Rig, operation: str
    ) -> None:
        act = await prepared(rig, operation)
        before = await rig.received(operation)
        await rig.break_off(operation, after=False)
        with pytest.raises((SiteError, *CONNECTION_FAILS)):
            await act()
        assert await rig.received(operation) == before + 1

    async def test_reading_orders_and_pays_nothing(self, rig: Rig) -> None:
        number, _ = await ordered(rig)
        await rig.site.add_to_cart(rig.items[0])
        before = [await rig.received(operation) for operation in WRITES]
        for operation in ("check_session", "read_cart", "list_orders"):
            await (await prepared(rig, operation))()
        await rig.site.open_confirmation(rig.options)
        await rig.site.order_detail(number)
        assert [await rig.received(operation) for operation in WRITES] == before
        assert await rig.placed() == [number]

    # The click

    async def test_the_click_places_one_order_and_tells_its_number(self, rig: Rig) -> None:
        confirmation = await confirmed(rig)
        checks = Checks()
        submission = await rig.site.submit(confirmation, checks)
        assert await rig.placed() == [submission.site_order_id]
        assert is_evidence(submission.page)
        assert (checks.calls, await rig.received("submit"), await rig.paid()) == (1, 1, [])

    async def test_nothing_speaks_against_an_order_that_was_placed(self, rig: Rig) -> None:
        submission = await rig.site.submit(await confirmed(rig), no_check)
        if submission.thanks_path is not None:
            thanks = await rig.site.read_thanks(submission)
            assert thanks.contradicts is None
            assert is_evidence(thanks.page)
        assert await rig.received("submit") == 1

    async def test_a_thank_you_page_that_fails_does_not_take_the_number_along(self, rig: Rig) -> None:
        confirmation = await confirmed(rig)
        await rig.break_off("read_thanks", after=False)
        assert [(await rig.site.submit(confirmation, no_check)).site_order_id] == await rig.placed()

    async def test_what_is_sold_out_at_the_click_is_refused_in_words(self, rig: Rig) -> None:
        confirmation = await confirmed(rig)
        await rig.sell_out()
        with pytest.raises(ItemUnavailableError) as told:
            await rig.site.submit(confirmation, no_check)
        assert is_evidence(told.value.page)
        assert await rig.placed() == []

    @pytest.mark.parametrize("operation", ["submit", "pay"])
    async def test_a_check_that_says_too_late_keeps_the_request_back(self, rig: Rig, operation: str) -> None:
        act = await self._with_checks(rig, operation, checks := Checks(too_late=True))
        before = await rig.received(operation)
        with pytest.raises(TooLateError):
            await act()
        assert (checks.calls, await rig.received(operation)) == (1, before)

    @pytest.mark.parametrize("operation", ["submit", "pay"])
    async def test_the_check_comes_when_the_connection_stands(self, rig: Rig, operation: str) -> None:
        """Where none is to be had it does not come at all: its word would be older than the request."""
        act = await self._with_checks(rig, operation, checks := Checks())
        before = await rig.received(operation)
        rig.refuse_connections()
        with pytest.raises(CONNECTION_FAILS):
            await act()
        assert (checks.calls, await rig.received(operation)) == (0, before)

    async def _with_checks(self, rig: Rig, operation: str, checks: Checks) -> Callable[[], Awaitable[Any]]:
        if operation == "submit":
            confirmation = await confirmed(rig)
            return lambda: rig.site.submit(confirmation, checks)
        number, yen = await ordered(rig)
        return lambda: rig.site.pay(number, yen, rig.options, checks)

    # The payment

    async def test_an_order_is_paid_once(self, rig: Rig) -> None:
        number, yen = await ordered(rig)
        payment = await rig.site.pay(number, yen, rig.options, checks := Checks())
        assert (payment.state, payment.human_step, checks.calls) == (OrderState.PAID, None, 1)
        assert is_evidence(payment.page)
        checks = Checks()
        assert (await rig.site.pay(number, yen, rig.options, checks)).state is OrderState.PAID
        assert (checks.calls, await rig.paid()) == (0, [number])

    @pytest.mark.parametrize("difference", [1, -1, None])
    async def test_another_amount_than_the_confirmed_one_is_not_paid(self, rig: Rig, difference: int | None) -> None:
        number, yen = await ordered(rig)
        assert yen is not None
        with pytest.raises(SiteError) as told:
            await rig.site.pay(number, None if difference is None else yen + difference, rig.options, no_check)
        assert told.value.error_code == AMOUNT_CODE
        assert is_evidence(told.value.page)
        assert await rig.paid() == []

    async def test_a_step_that_only_a_person_can_take_is_left_to_one(self, rig: Rig) -> None:
        if rig.options_for_a_person is None:
            return
        number, yen = await ordered(rig, rig.options_for_a_person)
        payment = await rig.site.pay(number, yen, rig.options_for_a_person, no_check)
        assert payment.state is OrderState.AWAITING_PAYMENT
        assert payment.human_step
        assert is_evidence(payment.page)
        assert await rig.paid() == []

    # The orders

    async def test_no_orders_are_a_window_that_was_seen_whole(self, rig: Rig) -> None:
        listed = await rig.site.list_orders(since=None, max_pages=1)
        assert (listed.orders, listed.window_fully_covered) == ((), True)
        assert all(is_evidence(page) for page in listed.pages)
        assert listed.pages

    async def test_an_order_is_listed_with_number_time_and_items(self, rig: Rig) -> None:
        number, _ = await ordered(rig)
        (order,) = (await rig.site.list_orders(since=datetime.now(UTC) - timedelta(days=1), max_pages=20)).orders
        assert order.order_number == number
        assert order.order_date is not None
        assert order.order_date.utcoffset() == timedelta(0)
        (item,) = order.items
        assert item.item_url == rig.items[0].item_url
        assert item.quantity in (None, rig.items[0].quantity)
        assert item.comparable

    async def test_a_redesigned_list_is_no_covered_window(self, rig: Rig) -> None:
        await ordered(rig)
        await rig.redesign("list_orders")
        try:
            listed = await rig.site.list_orders(since=None, max_pages=20)
        except PageChangedError:
            return
        assert not listed.window_fully_covered

    async def test_a_list_that_was_not_read_to_its_end_is_no_covered_window(self, rig: Rig) -> None:
        while (listed := await rig.site.list_orders(since=None, max_pages=1)).window_fully_covered:
            await ordered(rig)
        assert len(listed.pages) == 1
        whole = await rig.site.list_orders(since=None, max_pages=20)
        assert whole.window_fully_covered
        assert [order.order_number for order in reversed(whole.orders)] == await rig.placed()

    async def test_the_page_of_an_order_tells_its_state(self, rig: Rig) -> None:
        number, _ = await ordered(rig)
        detail = await rig.site.order_detail(number)
        assert (detail.order_number, detail.found, detail.order_state) == (number, True, OrderState.ORDERED)
        assert is_evidence(detail.page)

    async def test_an_order_that_is_not_shown_is_no_error(self, rig: Rig) -> None:
        number, _ = await ordered(rig)
        last = "1" if number[-1] != "1" else "2"
        detail = await rig.site.order_detail(number[:-1] + last)
        assert (detail.found, detail.order_state) == (False, None)
        assert is_evidence(detail.page)
