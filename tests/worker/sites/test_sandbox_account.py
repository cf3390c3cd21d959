"""The adapter's reading of the account: the order list and how far it may be believed, and one order."""

from datetime import UTC, datetime, timedelta

import pytest

from sandbox_shop.shop import ShopSettings
from tests.worker.running_shop import RunningShop, no_look, running_shop
from worker.orders.state import OrderState
from worker.sites.port import Item, LoggedOutError, PageChangedError, SiteError
from worker.sites.sandbox.adapter import SandboxSite

ARTICLE = {"code": "towel-imabari", "variant_id": "sky", "choice": ["御祝"], "quantity": 2}


def days_ago(days: float) -> datetime:
    return datetime.now(UTC) - timedelta(days=days)


@pytest.fixture
async def numbers(shop: RunningShop) -> list[str]:
    """Twelve orders, one a day, the newest first: three pages."""
    return [await shop.control.add_order(ARTICLE, days_ago=days) for days in range(1, 13)]


async def test_all_pages(shop: RunningShop, site: SandboxSite, numbers: list[str]) -> None:
    listed = await site.list_orders(since=None, max_pages=5)
    assert [order.order_number for order in listed.orders] == numbers
    assert listed.window_fully_covered
    assert len(listed.pages) == len(listed.raw_pages) == 3
    assert listed.raw_pages[1]["page"] == 2
    order = listed.orders[0]
    assert order.shop_id == 306087
    assert order.order_date is not None
    assert abs(order.order_date - days_ago(1)) < timedelta(minutes=1)
    assert order.items[0].item_url == shop.item_url("towel-imabari")
    assert (order.items[0].quantity, order.items[0].variant_id) == (2, "sky")


async def test_no_orders_at_all_is_a_covered_window(site: SandboxSite) -> None:
    listed = await site.list_orders(since=None, max_pages=1)
    assert listed.orders == ()
    assert listed.window_fully_covered


async def test_since_ends_the_reading(shop: RunningShop, site: SandboxSite, numbers: list[str]) -> None:
    listed = await site.list_orders(since=days_ago(3.5), max_pages=20)
    assert [order.order_number for order in listed.orders] == numbers[:3]
    assert listed.window_fully_covered
    assert shop.shop.requests["order_list"] == 1


async def test_since_on_the_border_of_a_page_needs_the_next_one(
    shop: RunningShop, site: SandboxSite, numbers: list[str]
) -> None:
    assert not (await site.list_orders(since=days_ago(5.5), max_pages=1)).window_fully_covered
    listed = await site.list_orders(since=days_ago(5.5), max_pages=2)
    assert [order.order_number for order in listed.orders] == numbers[:5]
    assert listed.window_fully_covered


async def test_max_pages_leaves_the_window_open(site: SandboxSite, numbers: list[str]) -> None:
    listed = await site.list_orders(since=None, max_pages=2)
    assert [order.order_number for order in listed.orders] == numbers[:10]
    assert not listed.window_fully_covered
    assert (await site.list_orders(since=None, max_pages=3)).window_fully_covered


@pytest.mark.parametrize("blocks", [["main"], ["state"]])
async def test_a_redesigned_list_proves_nothing(
    shop: RunningShop, site: SandboxSite, numbers: list[str], blocks: list[str]
) -> None:
    await shop.control.arm("redesign", "order_list", blocks=blocks)
    listed = await site.list_orders(since=None, max_pages=20)
    assert listed.orders == ()
    assert not listed.window_fully_covered
    assert len(listed.pages) == 1


async def test_a_logout_in_the_middle(shop: RunningShop, site: SandboxSite, numbers: list[str]) -> None:
    await shop.control.arm("slow", "order_list", seconds=0)
    await shop.control.arm("logged_out", "order_list")
    listed = await site.list_orders(since=None, max_pages=20)
    assert [order.order_number for order in listed.orders] == numbers[:5]
    assert not listed.window_fully_covered
    assert b'id="login-form"' in listed.pages[-1].html


async def test_a_logout_at_the_start(shop: RunningShop, site: SandboxSite) -> None:
    await shop.control.arm("logged_out", "order_list")
    with pytest.raises(LoggedOutError):
        await site.list_orders(since=None, max_pages=20)


async def test_an_error_in_the_middle_reaches_the_caller(
    shop: RunningShop, site: SandboxSite, numbers: list[str]
) -> None:
    await shop.control.arm("slow", "order_list", seconds=0)
    await shop.control.arm("error", "order_list")
    with pytest.raises(SiteError, match="500"):
        await site.list_orders(since=None, max_pages=20)


async def test_an_order_without_a_readable_date(shop: RunningShop, site: SandboxSite, numbers: list[str]) -> None:
    await shop.control.change_order(numbers[1], "hide_date")
    for since in (None, days_ago(3.5)):
        listed = await site.list_orders(since=since, max_pages=20)
        assert numbers[1] in [order.order_number for order in listed.orders]
        assert not listed.window_fully_covered


async def test_an_order_that_arrives_between_two_pages_hides_none(
    shop: RunningShop, site: SandboxSite, numbers: list[str]
) -> None:
    """Everything moves down by one, so one order is seen twice, and none is missed."""
    read = site._visit.page_at

    async def read_and_order(path: str, params: dict[str, str] | None = None) -> object:
        page = await read(path, params)
        if params == {"page": "1"}:
            await shop.control.add_order(ARTICLE)
        return page

    site._visit.page_at = read_and_order  # type: ignore[assignment, method-assign]
    listed = await site.list_orders(since=None, max_pages=20)
    assert [order.order_number for order in listed.orders] == numbers
    assert not listed.window_fully_covered
    assert (await site.list_orders(since=days_ago(11.5), max_pages=20)).window_fully_covered


async def test_a_new_order_is_not_shown_before_its_time() -> None:
    start = datetime(2026, 8, 13, 3, 0, tzinfo=UTC)
    clock = [start]
    async with running_shop(ShopSettings(reflection_delay_seconds=600), lambda: clock[0]) as shop:
        site = SandboxSite(shop.url)
        await site.add_to_cart(Item(shop.item_url("sencha-100g")))
        number = (await site.submit(await site.open_confirmation({}), no_look)).site_order_id
        assert number == "306087-20260813-0863947697"
        clock[0] = start + timedelta(seconds=599)
        assert (await site.list_orders(since=None, max_pages=1)).orders == ()
        detail = await site.order_detail(number)
        assert (detail.found, detail.stage_label, detail.order_state, detail.raw) == (False, None, None, None)
        assert "見つかりません".encode() in detail.page.html
        clock[0] = start + timedelta(seconds=600)
        assert [order.order_number for order in (await site.list_orders(since=None, max_pages=1)).orders] == [number]
        assert (await site.order_detail(number)).found
        await site.close()


async def test_detail_follows_the_order(shop: RunningShop, site: SandboxSite) -> None:
    await site.add_to_cart(Item(shop.item_url("sencha-100g")))
    number = (await site.submit(await site.open_confirmation({}), no_look)).site_order_id
    assert number is not None
    seen = []
    for action in ("", "pay", "advance", "advance", "advance"):
        if action:
            await shop.control.change_order(number, action)
        detail = await site.order_detail(number)
        assert detail.raw["orderDetailData"]["orderNumber"] == number
        seen.append((detail.stage_label, detail.delivery_status, detail.order_state))
    assert seen == [
        ("注文受付", "ACCEPTED", OrderState.ORDERED),
        ("注文受付", "ACCEPTED", OrderState.PAID),
        ("発送準備", "PREPARING", OrderState.PAID),
        ("出荷", "SHIPPED", OrderState.SHIPPED),
        ("配達完了", "DELIVERED", OrderState.DELIVERED),
    ]


async def test_detail_of_a_cancelled_order(shop: RunningShop, site: SandboxSite, numbers: list[str]) -> None:
    await shop.control.change_order(numbers[0], "cancel")
    detail = await site.order_detail(numbers[0])
    assert (detail.stage_label, detail.order_state) == ("キャンセル", OrderState.CANCELLED)


async def test_a_redesigned_detail(shop: RunningShop, site: SandboxSite, numbers: list[str]) -> None:
    await shop.control.arm("redesign", "order_detail", blocks=["state"])
    detail = await site.order_detail(numbers[0])
    assert (detail.found, detail.raw, detail.order_state) == (True, None, OrderState.PAID)
    await shop.control.arm("redesign", "order_detail")
    with pytest.raises(PageChangedError):
        await site.order_detail(numbers[0])
    await shop.control.arm("redesign", "order_detail")
    with pytest.raises(PageChangedError):
        await site.order_detail("306087-20260813-0000000000")


@pytest.mark.parametrize(
    "number", ["../../cart", "a&order_number=b", "<script>alert(1)</script>", "%2e%2e", "注文", ""]
)
async def test_odd_order_numbers_are_only_not_found(shop: RunningShop, site: SandboxSite, number: str) -> None:
    detail = await site.order_detail(number)
    assert not detail.found
    assert b"<script>alert" not in detail.page.html
    assert detail.page.url.startswith(f"{shop.url}/account/orders/detail?")
