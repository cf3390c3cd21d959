"""The control API, the faults, the scraper's endpoint, and how the shop is run."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from sandbox_shop.control_client import ShopControl
from sandbox_shop.faults import STEPS
from sandbox_shop.server import build_app, run_sandbox_shop
from sandbox_shop.shop import Shop, ShopSettings
from tests.worker.running_shop import RunningShop, running_shop

TOKEN = ShopSettings().scraper_token


@pytest.fixture
async def shop() -> AsyncIterator[RunningShop]:
    async with running_shop() as running:
        yield running


@pytest.fixture
async def visitor(shop: RunningShop) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=shop.url, trust_env=False, timeout=30) as client:
        yield client


@pytest.mark.parametrize(("address", "status"), [("203.0.113.9", 404), ("127.0.0.1", 200), ("::1", 200)])
async def test_only_loopback_may_control(address: str, status: int) -> None:
    transport = httpx.ASGITransport(build_app(Shop(ShopSettings())), client=(address, 4711))
    async with httpx.AsyncClient(transport=transport, base_url="http://shop.example") as client:
        assert (await client.get("/_control/counters")).status_code == status


async def test_a_form_on_another_page_cannot_control(visitor: httpx.AsyncClient) -> None:
    answer = await visitor.post("/_control/account", content='{"end_sessions": true}')
    assert answer.status_code == 422
    assert "Content-Type" in answer.json()["error"]


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/faults", {"kind": "explode", "step": "cart"}, "kind"),
        ("/faults", {"kind": "slow", "step": "nowhere"}, "step"),
        ("/faults", {"kind": "slow", "step": "cart", "count": 0}, "count"),
        ("/faults", {"kind": "slow", "step": "cart", "count": True}, "count"),
        ("/faults", {"kind": "slow", "step": "cart", "seconds": -1}, "seconds"),
        ("/faults", {"kind": "slow", "step": "cart", "seconds": "1"}, "seconds"),
        ("/faults", {"kind": "redesign", "step": "cart", "blocks": "main"}, "blocks"),
        ("/items/nothing", {"stock": 1}, "no such item"),
        ("/items/sencha-100g", {"stock": -1}, "stock"),
        ("/items/sencha-100g", {"stock": {"white-m": 1}}, "stock"),
        ("/items/sencha-100g", {"price_yen": 1.5}, "price_yen"),
        ("/orders", {}, "items"),
        ("/orders", {"items": [1]}, "items"),
        ("/orders", {"items": [{"code": "nothing"}]}, "商品"),
        ("/orders/306087-20260813-0863947697", {"action": "advance"}, "no such order"),
        ("/payment", {"challenge": "iris"}, "challenge"),
        ("/cart", [], "object"),
    ],
)
async def test_nonsense_is_refused_by_name(visitor: httpx.AsyncClient, path: str, body: Any, field: str) -> None:
    answer = await visitor.post(f"/_control{path}", json=body)
    assert answer.status_code == 422
    assert field in answer.json()["error"]


async def test_bodies_are_bounded(visitor: httpx.AsyncClient) -> None:
    for body in ('{"a": "' + "x" * 100_000 + '"}', "[" * 60_000, "{", "\xff"):
        headers = {"content-type": "application/json"}
        answer = await visitor.post("/_control/cart", content=body.encode("latin-1"), headers=headers)
        assert answer.status_code == 422


async def test_waiting_ends_with_the_event(shop: RunningShop, visitor: httpx.AsyncClient) -> None:
    waiting = asyncio.create_task(shop.control.wait(step="home", requests=2, seconds=10))
    await visitor.get("/")
    assert not waiting.done()
    await visitor.get("/")
    assert await asyncio.wait_for(waiting, 60)
    assert not await shop.control.wait(submits=1, seconds=0.05)


async def test_a_fault_strikes_as_often_as_told(shop: RunningShop, visitor: httpx.AsyncClient) -> None:
    await shop.control.arm("error", "home", count=2)
    await shop.control.arm("error", "login_page", count=None)
    assert [(await visitor.get("/")).status_code for _ in range(3)] == [500, 500, 200]
    assert [(await visitor.get("/login")).status_code for _ in range(3)] == [500, 500, 500]
    await shop.control.disarm()
    assert (await visitor.get("/login")).status_code == 200


@pytest.mark.parametrize(
    ("kind", "error"),
    [("reset", httpx.ReadError), ("lost", httpx.RemoteProtocolError), ("hang", httpx.ReadTimeout)],
)
async def test_connection_faults(
    shop: RunningShop, visitor: httpx.AsyncClient, kind: str, error: type[Exception]
) -> None:
    await shop.control.arm(kind, "home")
    with pytest.raises(error) as raised:
        await visitor.get("/", timeout=0.3)
    if kind == "reset":
        cause: BaseException | None = raised.value
        while cause is not None and not isinstance(cause, ConnectionResetError):
            cause = cause.__cause__ or cause.__context__
        assert isinstance(cause, ConnectionResetError)
    assert (await visitor.get("/")).status_code == 200


@pytest.mark.parametrize("after", [False, True])
async def test_slow_answers(shop: RunningShop, visitor: httpx.AsyncClient, after: bool) -> None:
    await shop.control.arm("slow", "home", seconds=0.3, after=after)
    began = time.monotonic()
    assert (await visitor.get("/")).status_code == 200
    assert time.monotonic() - began >= 0.29


def test_every_route_is_a_step_that_can_fail() -> None:
    shop = Shop(ShopSettings())
    pages = [route for route in build_app(shop).routes if not route.path.startswith("/_control")]  # type: ignore[attr-defined]
    assert len(pages) == len(STEPS)


async def ask_scraper(client: httpx.AsyncClient, body: Any, token: str) -> httpx.Response:
    return await client.post("/api/item_detail", json=body, headers={"authorization": f"Bearer {token}"})


async def test_item_detail_has_the_purchase_block(shop: RunningShop, visitor: httpx.AsyncClient) -> None:
    answer = (await ask_scraper(visitor, {"item_url": shop.item_url("tshirt-basic")}, TOKEN)).json()
    assert (answer["success"], answer["code"]) == (True, 0)
    variants = answer["data"]["purchase"]["variants"]
    assert [(variant["variant_id"], variant["in_stock"]) for variant in variants] == [
        ("white-s", False),
        ("white-m", True),
        ("white-l", True),
        ("navy-m", True),
        ("navy-l", False),
    ]
    answer = (await ask_scraper(visitor, {"item_url": shop.item_url("sencha-100g")}, TOKEN)).json()
    assert answer["data"]["purchase"]["variants"] == []


@pytest.mark.parametrize(
    ("body", "token", "status"),
    [
        ({"item_url": "{shop}/item/sandbox-store/sencha-100g/"}, "guess", 401),
        ({"item_url": "{shop}/item/sandbox-store/nothing/"}, TOKEN, 404),
        ({}, TOKEN, 422),
        ({"item_url": 7}, TOKEN, 422),
        ([], TOKEN, 422),
        ({"item_url": "http://[/"}, TOKEN, 422),
    ],
)
async def test_item_detail_refuses(visitor: httpx.AsyncClient, body: Any, token: str, status: int) -> None:
    answer = await ask_scraper(visitor, body, token)
    assert answer.status_code == status
    assert answer.json()["success"] is False
    assert answer.json()["code"] == status


async def test_running_and_cancelling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox_shop.server.SHUTDOWN_SECONDS", 30)
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    running = asyncio.create_task(
        run_sandbox_shop("127.0.0.1", 0, reflection_delay_seconds=0, on_ready=ready.set_result)
    )
    url = await asyncio.wait_for(ready, 60)
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
    async with ShopControl(url) as control, httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as client:
        await control.arm("hang", "home")
        hanging = asyncio.create_task(client.get("/"))
        assert await control.wait(step="home", requests=1)
        running.cancel()
        began = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert time.monotonic() - began < 15, "a request that hangs is let go, not waited for"
        with pytest.raises(httpx.RemoteProtocolError):
            await hanging
        with pytest.raises(httpx.ConnectError):
            await client.get("/")


async def test_a_closing_shop_lets_go_of_those_who_wait() -> None:
    shop = Shop(ShopSettings())
    waiting = asyncio.create_task(shop.wait_until(lambda: False, 100))
    await asyncio.sleep(0)
    assert not waiting.done()
    shop.close()
    assert await asyncio.wait_for(waiting, 60) is False


async def test_a_taken_port_is_an_error(shop: RunningShop) -> None:
    with pytest.raises(OSError, match="in use"):
        await run_sandbox_shop("127.0.0.1", int(shop.url.rpartition(":")[2]))
