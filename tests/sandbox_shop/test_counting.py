"""The shop counts what it is asked for, and protects nobody from asking twice."""

import re
from collections.abc import AsyncIterator

import httpx
import pytest

from sandbox_shop.shop import ShopSettings
from tests.worker.running_shop import RunningShop, running_shop
from worker.sites.sandbox.http import Credentials

TOKEN = re.compile(r'name="token" value="([^"]+)"')
NUMBER = re.compile(r"306087-[0-9]{8}-[0-9]{10}")


@pytest.fixture
async def shop() -> AsyncIterator[RunningShop]:
    async with running_shop() as running:
        yield running


@pytest.fixture
async def buyer(shop: RunningShop) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=shop.url, trust_env=False, timeout=60) as client:
        await log_in(client, shop)
        yield client


async def log_in(client: httpx.AsyncClient, shop: RunningShop) -> None:
    settings = shop.shop.settings
    form = {"username": settings.username, "password": settings.password}
    assert (await client.post("/login", data=form)).headers["location"] == "/account"


async def add(client: httpx.AsyncClient, code: str = "sencha-100g", quantity: int = 1) -> None:
    answer = await client.post("/cart/add", data={"code": code, "quantity": quantity})
    assert answer.headers["location"] == "/cart"


async def confirm(client: httpx.AsyncClient) -> str:
    found = TOKEN.search((await client.get("/order/confirm")).text)
    assert found
    return found[1]


async def submit(client: httpx.AsyncClient, token: str) -> str:
    location = (await client.post("/order/submit", data={"token": token})).headers["location"]
    assert location.startswith("/order/thanks?order_number=")
    return location.partition("=")[2]


def test_the_adapter_knows_the_account_that_the_shop_opens_with() -> None:
    settings, credentials = ShopSettings(), Credentials()
    assert (credentials.username, credentials.password) == (settings.username, settings.password)


async def test_two_confirmations_of_one_cart_are_two_orders(shop: RunningShop, buyer: httpx.AsyncClient) -> None:
    await add(buyer, quantity=2)
    tokens = [await confirm(buyer), await confirm(buyer)]
    numbers = [await submit(buyer, token) for token in tokens]
    counters = await shop.control.counters()
    assert counters["order_numbers"] == numbers
    assert counters["orders_placed"] == 2
    assert counters["units_sold"] == 4
    assert counters["units_by_item"] == {"sencha-100g": 4}
    assert shop.shop.products["sencha-100g"].stock[None] == 496
    assert all(NUMBER.fullmatch(number) for number in numbers)


async def test_one_form_twice_is_two_orders_unless_forms_are_single_use(
    shop: RunningShop, buyer: httpx.AsyncClient
) -> None:
    await add(buyer)
    token = await confirm(buyer)
    assert await submit(buyer, token) != await submit(buyer, token)
    async with (
        running_shop(ShopSettings(single_use_form_tokens=True)) as strict,
        httpx.AsyncClient(base_url=strict.url, trust_env=False, timeout=60) as client,
    ):
        await log_in(client, strict)
        await add(client)
        token = await confirm(client)
        await submit(client, token)
        assert (await client.post("/order/submit", data={"token": token})).status_code == 409
        counters = await strict.control.counters()
        assert (counters["orders_placed"], counters["submits_received"]) == (1, 2)


async def test_an_order_is_taken_as_it_was_confirmed(shop: RunningShop, buyer: httpx.AsyncClient) -> None:
    await add(buyer)
    token = await confirm(buyer)
    await shop.control.change_item("sencha-100g", price_yen=9999)
    await add(buyer, "yokan-limited")
    await submit(buyer, token)
    (order,) = await shop.control.orders()
    assert order["totalPrice"] == 1080 + 550
    assert [item["itemId"] for item in order["items"]] == [10000101]


async def test_stock_is_never_oversold(shop: RunningShop, buyer: httpx.AsyncClient) -> None:
    await add(buyer, "yokan-limited", 2)
    tokens = [await confirm(buyer), await confirm(buyer)]
    await submit(buyer, tokens[0])
    refused = await buyer.post("/order/submit", data={"token": tokens[1]})
    assert refused.status_code == 409
    assert shop.shop.products["yokan-limited"].stock[None] == 1
    assert (await shop.control.counters())["orders_placed"] == 1


async def test_a_cart_outlives_its_session(shop: RunningShop, buyer: httpx.AsyncClient) -> None:
    await add(buyer, quantity=3)
    await shop.control.change_account(end_sessions=True)
    assert (await buyer.get("/cart")).headers["location"] == "/login"
    await log_in(buyer, shop)
    assert '<td class="number quantity">3</td>' in (await buyer.get("/cart")).text


async def test_paying_twice_is_counted_twice(shop: RunningShop, buyer: httpx.AsyncClient) -> None:
    await add(buyer)
    number = await submit(buyer, await confirm(buyer))
    for _ in range(2):
        await buyer.post("/payment", data={"order_number": number})
    counters = await shop.control.counters()
    assert counters["payments_made"] == 2
    assert counters["payments_by_order"] == {number: 2}
    assert counters["double_payments"] == [number]


async def test_a_person_answers_the_challenge(shop: RunningShop, buyer: httpx.AsyncClient) -> None:
    await shop.control.force_challenge("3ds")
    await add(buyer)
    number = await submit(buyer, await confirm(buyer))
    asked = await buyer.post("/payment", data={"order_number": number})
    assert asked.headers["location"] == f"/payment/challenge?order_number={number}"
    wrong = await buyer.post("/payment/challenge", data={"order_number": number, "code": "12"})
    assert wrong.status_code == 422
    assert not await shop.control.wait(payments=1, seconds=0)
    await buyer.post("/payment/challenge", data={"order_number": number, "code": "123456"})
    assert await shop.control.wait(payments=1, seconds=0)


async def test_orders_from_elsewhere_are_shown_but_not_counted(shop: RunningShop, buyer: httpx.AsyncClient) -> None:
    number = await shop.control.add_order({"code": "sencha-100g"}, days_ago=2)
    assert number in (await buyer.get("/account/orders")).text
    assert (await shop.control.counters())["orders_placed"] == 0


async def test_strangers_see_nothing(shop: RunningShop, buyer: httpx.AsyncClient) -> None:
    await add(buyer)
    number = await submit(buyer, await confirm(buyer))
    async with httpx.AsyncClient(base_url=shop.url, trust_env=False, timeout=60) as stranger:
        for path in ("/cart", "/account", "/account/orders", f"/payment?order_number={number}", "/order/confirm"):
            assert (await stranger.get(path)).headers["location"] == "/login"
        wrong = await stranger.post("/login", data={"username": "buyer@sandbox.example", "password": "guess"})
        assert wrong.status_code == 401
        assert "set-cookie" not in wrong.headers


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"code": "nothing", "quantity": "1"},
        {"code": "sencha-100g", "quantity": "0"},
        {"code": "sencha-100g", "quantity": "-1"},
        {"code": "sencha-100g", "quantity": "1e3"},
        {"code": "sencha-100g", "quantity": "9" * 400},
        {"code": "sencha-100g", "quantity": "1", "choice": "x"},
        {"code": "tshirt-basic", "quantity": "1"},
        {"code": "tshirt-basic", "quantity": "1", "variant_id": "white-s"},
    ],
)
async def test_nonsense_never_reaches_the_cart(buyer: httpx.AsyncClient, form: dict[str, str]) -> None:
    assert (await buyer.post("/cart/add", data=form)).status_code == 409
    assert "買い物かごに商品はありません" in (await buyer.get("/cart")).text


async def test_large_forms_are_not_read(buyer: httpx.AsyncClient) -> None:
    answer = await buyer.post("/cart/add", content=b"code=" + b"a" * 100_000)
    assert answer.status_code == 413


async def test_what_visitors_send_is_escaped(buyer: httpx.AsyncClient) -> None:
    answer = await buyer.get("/account/orders/detail", params={"order_number": "<script>alert(1)</script>"})
    assert answer.status_code == 404
    assert "&lt;script&gt;alert(1)" in answer.text
