"""The adapter up to the confirmation page."""

import httpx
import pytest

from tests.worker.running_shop import RunningShop
from worker.sites.port import Item, ItemUnavailableError, LoggedOutError, PageChangedError, SiteError
from worker.sites.sandbox.adapter import SandboxSite
from worker.sites.sandbox.checkout_pages import parse_yen


async def test_cart_holds_what_was_added_with_variant_choice_and_quantity(shop: RunningShop, site: SandboxSite) -> None:
    items = (
        Item(shop.item_url("sencha-100g"), 3),
        Item(shop.item_url("towel-imabari"), 1, "sky", ("御祝",)),
        Item(shop.item_url("mug-named"), 2, None, ("ゴールド", "ギフト包装")),
    )
    for item in items:
        page = await site.add_to_cart(item)
        assert page.http_status == 200
        assert page.html.startswith(b"<!DOCTYPE html>")
    cart = await site.read_cart()
    assert cart.items == items
    assert cart.page.url == f"{shop.url}/cart"
    confirmation = await site.open_confirmation({})
    assert confirmation.items == items
    assert confirmation.payable_yen == 3 * 1080 + 3980 + 2 * 2480


async def test_postage_is_part_of_the_amount_below_the_limit(shop: RunningShop, site: SandboxSite) -> None:
    await site.add_to_cart(Item(shop.item_url("sencha-100g")))
    assert (await site.open_confirmation({})).payable_yen == 1080 + 550


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (Item("{shop}/item/sandbox-store/nothing/"), "has no item"),
        (Item("{shop}/item/other-store/sencha-100g/"), "has no item"),
        (Item("{shop}/item/sandbox-store/earphones-soldout/"), "sold out"),
        (Item("{shop}/item/sandbox-store/tshirt-basic/"), "none was chosen"),
        (Item("{shop}/item/sandbox-store/tshirt-basic/", 1, "white-s"), "white-s .* is sold out"),
        (Item("{shop}/item/sandbox-store/tshirt-basic/", 1, "pink"), "pink .* is not offered"),
        (Item("{shop}/item/sandbox-store/sencha-100g/", 1, "white-m"), "not offered"),
        (Item("{shop}/item/sandbox-store/mug-named/"), "ネイビー | ゴールド"),
        (Item("{shop}/item/sandbox-store/mug-named/", 1, None, ("ゴールド",)), "must name one of each"),
        (Item("{shop}/item/sandbox-store/mug-named/", 1, None, ("緑", "包装なし")), "must name one of each"),
        (Item("{shop}/item/sandbox-store/sencha-100g/", 1, None, ("緑",)), "must name one of each"),
        (Item("{shop}/item/sandbox-store/yokan-limited/", 4), "refuses"),
        (Item("{shop}/item/sandbox-store/sencha-100g/", 100), "refuses"),
    ],
)
async def test_what_cannot_be_bought_is_refused(shop: RunningShop, site: SandboxSite, item: Item, message: str) -> None:
    item = Item(item.item_url.format(shop=shop.url), item.quantity, item.variant_id, item.choice)
    with pytest.raises(ItemUnavailableError, match=message) as refusal:
        await site.add_to_cart(item)
    assert refusal.value.page is not None
    assert (await site.read_cart()).items == ()


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9/item/sandbox-store/sencha-100g/",
        "{shop}.example/item/sandbox-store/sencha-100g/",
        "{shop}/item/sandbox-store/sencha-100g",
        "{shop}/item/sandbox-store/sencha-100g/?variant=1",
        "{shop}/item/sandbox-store/../cart/",
        "{shop}/cart",
    ],
)
async def test_addresses_that_are_no_item_are_never_opened(shop: RunningShop, site: SandboxSite, url: str) -> None:
    with pytest.raises(ItemUnavailableError, match="not the address of an item"):
        await site.add_to_cart(Item(url.format(shop=shop.url)))
    assert shop.shop.requests.total() == 0


async def test_clearing_removes_leftovers_and_nothing_else(shop: RunningShop, site: SandboxSite) -> None:
    await shop.control.fill_cart(
        {"code": "sencha-100g"}, {"code": "towel-imabari", "variant_id": "sky", "choice": ["内祝"]}
    )
    assert len((await site.read_cart()).items) == 2
    assert (await site.clear_cart()).items == ()
    assert (await site.read_cart()).items == ()
    assert shop.shop.requests["cart_remove"] == 2
    assert (await site.clear_cart()).items == ()
    assert shop.shop.requests["cart_remove"] == 2


async def test_leftovers_add_up_with_what_is_bought_now(shop: RunningShop, site: SandboxSite) -> None:
    await shop.control.fill_cart({"code": "sencha-100g", "quantity": 2})
    await site.add_to_cart(Item(shop.item_url("sencha-100g")))
    assert (await site.read_cart()).items == (Item(shop.item_url("sencha-100g"), 3),)


async def test_a_changed_price_shows_on_the_confirmation(shop: RunningShop, site: SandboxSite) -> None:
    await site.add_to_cart(Item(shop.item_url("sencha-100g")))
    await shop.control.change_item("sencha-100g", price_yen=12800)
    assert (await site.open_confirmation({})).payable_yen == 12800


async def test_an_amount_that_cannot_be_read_is_none(shop: RunningShop, site: SandboxSite) -> None:
    await site.add_to_cart(Item(shop.item_url("sencha-100g")))
    await shop.control.arm("redesign", "confirm", blocks=["amount"])
    confirmation = await site.open_confirmation({})
    assert confirmation.payable_yen is None
    assert confirmation.items


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("12,800円", 12800),
        ("0円", 0),
        ("550円", 550),
        ("1,298,000円", 1298000),
        ("12,80円", None),
        ("-5円", None),
        ("12800", None),
        ("約12,800円", None),
        ("1,000円〜2,000円", None),
        ("１２円", None),
        ("9" * 13 + "円", None),
        ("", None),
        (None, None),
    ],
)
def test_amounts(text: str | None, amount: int | None) -> None:
    assert parse_yen(text) == amount


@pytest.mark.parametrize(
    ("step", "block", "call"),
    [
        ("login_page", "main", "check_session"),
        ("account", "main", "check_session"),
        ("item", "main", "add"),
        ("cart", "main", "read_cart"),
        ("cart", "main", "clear_cart"),
        ("confirm", "main", "confirm"),
        ("confirm", "token", "confirm"),
    ],
)
async def test_a_redesigned_page_is_never_half_understood(
    shop: RunningShop, site: SandboxSite, step: str, block: str, call: str
) -> None:
    await shop.control.fill_cart({"code": "sencha-100g"})
    await shop.control.arm("redesign", step, blocks=[block])
    calls = {
        "add": lambda: site.add_to_cart(Item(shop.item_url("sencha-100g"))),
        "confirm": lambda: site.open_confirmation({}),
        "check_session": site.check_session,
        "read_cart": site.read_cart,
        "clear_cart": site.clear_cart,
    }
    with pytest.raises(PageChangedError) as error:
        await calls[call]()
    assert error.value.page is not None
    assert b"</html>" in error.value.page.html


async def test_an_empty_cart_has_no_confirmation(site: SandboxSite) -> None:
    with pytest.raises(SiteError, match="409"):
        await site.open_confirmation({})


@pytest.mark.parametrize("method", ["bitcoin", "", 7, None, ["card"]])
async def test_unknown_ways_to_pay_touch_nothing(shop: RunningShop, site: SandboxSite, method: object) -> None:
    with pytest.raises(SiteError, match="payment_method"):
        await site.open_confirmation({"payment_method": method})
    assert shop.shop.requests.total() == 0


async def test_an_expired_session_is_told_once_and_healed_by_the_next_call(
    shop: RunningShop, site: SandboxSite
) -> None:
    assert await site.check_session()
    await shop.control.arm("logged_out", "cart")
    with pytest.raises(LoggedOutError) as error:
        await site.read_cart()
    assert error.value.error_code == 5001
    assert error.value.page is not None
    assert b'id="login-form"' in error.value.page.html
    assert (await site.read_cart()).items == ()


async def test_refused_logins(shop: RunningShop, site: SandboxSite) -> None:
    await shop.control.change_account(login_refused=True)
    assert not await site.check_session()
    with pytest.raises(LoggedOutError, match="refuses") as error:
        await site.read_cart()
    assert error.value.error_code == 5001
    await shop.control.change_account(login_refused=False)
    assert await site.check_session()


@pytest.mark.parametrize(
    ("kind", "error"), [("error", SiteError), ("reset", httpx.ReadError), ("lost", httpx.HTTPError)]
)
async def test_broken_answers_reach_the_caller(
    shop: RunningShop, site: SandboxSite, kind: str, error: type[Exception]
) -> None:
    await site.check_session()
    await shop.control.arm(kind, "cart")
    with pytest.raises(error):
        await site.read_cart()
    assert shop.shop.requests["cart"] == 1


async def test_a_silent_shop_times_out(shop: RunningShop) -> None:
    impatient = SandboxSite(shop.url, timeout_seconds=0.3)
    await impatient.check_session()
    await shop.control.arm("hang", "cart")
    with pytest.raises(httpx.ReadTimeout):
        await impatient.read_cart()
    await impatient.close()


async def test_a_slow_answer_is_an_answer(shop: RunningShop, site: SandboxSite) -> None:
    await shop.control.arm("slow", "cart", seconds=0.2)
    assert (await site.read_cart()).items == ()


async def test_the_size_of_a_page_is_bounded(shop: RunningShop) -> None:
    small = SandboxSite(shop.url, max_page_bytes=1000)
    with pytest.raises(SiteError, match="larger than 1000 bytes"):
        await small.check_session()
    await small.close()
