"""The adapter from the click on: submit and pay, each sent once whatever happens."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import httpx
import pytest

from sandbox_shop.orders import JST
from tests.worker.recording_proxy import RecordingProxy
from tests.worker.running_shop import RunningShop, no_look
from worker.orders.state import OrderState
from worker.sites.port import Confirmation, Item, ItemUnavailableError, LoggedOutError, PageChangedError, SiteError
from worker.sites.sandbox.adapter import SandboxSite
from worker.sites.sandbox.http import Answer, SandboxHttp

PAYABLE_YEN = 2 * 1080 + 550


async def confirmed(shop: RunningShop, site: SandboxSite, method: str = "card") -> Confirmation:
    await site.add_to_cart(Item(shop.item_url("sencha-100g"), 2))
    return await site.open_confirmation({"payment_method": method})


async def ordered(shop: RunningShop, site: SandboxSite, method: str = "card") -> str:
    submission = await site.submit(await confirmed(shop, site, method), no_look)
    assert submission.site_order_id is not None
    return submission.site_order_id


async def test_an_order_is_placed_and_paid(shop: RunningShop, site: SandboxSite) -> None:
    submission = await site.submit(await confirmed(shop, site), no_look)
    assert submission.site_order_id is not None
    assert submission.page.location == f"/order/thanks?order_number={submission.site_order_id}"
    thanks = await site.read_thanks(submission)
    assert submission.site_order_id.encode() in thanks.page.html
    assert thanks.contradicts is None
    payment = await site.pay(submission.site_order_id, PAYABLE_YEN, {}, no_look)
    assert payment.state is OrderState.PAID
    assert payment.human_step is None
    assert "支払いが完了".encode() in payment.page.html
    counters = await shop.control.counters()
    assert counters["order_numbers"] == [submission.site_order_id]
    assert counters["units_by_item"] == {"sencha-100g": 2}
    assert counters["payments_by_order"] == {submission.site_order_id: 1}
    assert (await site.read_cart()).items == ()


@pytest.mark.parametrize("kind", ["reset", "lost", "hang", "error"])
@pytest.mark.parametrize("after", [False, True])
async def test_a_submit_without_an_answer_is_sent_once(shop: RunningShop, kind: str, after: bool) -> None:
    impatient = SandboxSite(shop.url, timeout_seconds=0.5)
    confirmation = await confirmed(shop, impatient)
    await shop.control.arm(kind, "submit", after=after)
    with pytest.raises((SiteError, httpx.HTTPError)):
        await impatient.submit(confirmation, no_look)
    assert not await shop.control.wait(submits=2, seconds=0.1)
    counters = await shop.control.counters()
    assert counters["submits_received"] == 1
    assert counters["orders_placed"] == (1 if after else 0)
    await impatient.close()


async def test_submit_and_pay_have_a_connection_of_their_own(shop: RunningShop) -> None:
    async with RecordingProxy(shop.url) as proxy:
        site = SandboxSite(proxy.url)
        await site.add_to_cart(Item(f"{proxy.url}/item/sandbox-store/sencha-100g/"))
        submission = await site.submit(await site.open_confirmation({}), no_look)
        assert submission.site_order_id is not None
        await site.pay(submission.site_order_id, 1080 + 550, {}, no_look)
        await site.close()
    for request in ("POST /order/submit", "POST /payment"):
        carrying = [sent for sent in proxy.connections if request.encode() in sent]
        assert len(carrying) == 1
        assert carrying[0].count(b" HTTP/1.1\r\n") == 1
        assert b"\r\nconnection: close\r\n" in carrying[0].lower()


@pytest.mark.parametrize("what", ["submit", "pay"])
async def test_a_connection_that_is_refused_is_not_tried_again(
    shop: RunningShop, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """The last look came before the first try; a second one would be later than anybody has judged."""
    async with RecordingProxy(shop.url) as proxy:
        site = SandboxSite(proxy.url)
        await site.add_to_cart(Item(f"{proxy.url}/item/sandbox-store/sencha-100g/"))
        confirmation = await site.open_confirmation({})
        if what == "pay":
            number = (await site.submit(confirmation, no_look)).site_order_id or ""
        post_once, connect = SandboxHttp.post_once, anyio.connect_tcp
        tries = 0

        async def nobody_listens(http: SandboxHttp, *values: Any) -> Answer:
            proxy.stop_listening()
            return await post_once(http, *values)

        async def counted(*address: Any, **options: Any) -> Any:
            nonlocal tries
            tries += 1
            return await connect(*address, **options)

        monkeypatch.setattr(SandboxHttp, "post_once", nobody_listens)
        monkeypatch.setattr(anyio, "connect_tcp", counted)
        with pytest.raises(httpx.ConnectError):
            await (site.pay(number, 1080 + 550, {}, no_look) if what == "pay" else site.submit(confirmation, no_look))
        assert tries == 1
        await site.close()


class _TooLateError(Exception):
    """What a last look raises."""


@pytest.mark.parametrize("what", ["submit", "pay"])
async def test_the_last_look_comes_when_the_connection_stands_and_nothing_is_sent(shop: RunningShop, what: str) -> None:
    async with RecordingProxy(shop.url) as proxy:
        site = SandboxSite(proxy.url)
        await site.add_to_cart(Item(f"{proxy.url}/item/sandbox-store/sencha-100g/"))
        confirmation = await site.open_confirmation({})
        number = (await site.submit(confirmation, no_look)).site_order_id or "" if what == "pay" else ""
        looks = 0

        def too_late() -> None:
            nonlocal looks
            looks += 1
            raise _TooLateError

        before = len(proxy.connections)
        with pytest.raises(_TooLateError):
            await (site.pay(number, 1080 + 550, {}, too_late) if what == "pay" else site.submit(confirmation, too_late))
        assert looks == 1
        await site.close()
        async with asyncio.timeout(60):
            while len(proxy.connections) <= before:  # noqa: ASYNC110 -- the proxy gives no signal
                await asyncio.sleep(0.01)
        assert proxy.connections[-1] == b""
    counters = await shop.control.counters()
    assert (counters["orders_placed"], counters["payments_made"]) == (1 if what == "pay" else 0, 0)


async def test_the_same_confirmation_twice_is_two_orders(shop: RunningShop, site: SandboxSite) -> None:
    """The shop does not save a worker that clicks twice."""
    confirmation = await confirmed(shop, site)
    first, second = await site.submit(confirmation, no_look), await site.submit(confirmation, no_look)
    assert first.site_order_id != second.site_order_id
    assert (await shop.control.counters())["orders_placed"] == 2


async def test_a_submit_never_logs_in(shop: RunningShop, site: SandboxSite) -> None:
    confirmation = await confirmed(shop, site)
    await shop.control.change_account(end_sessions=True)
    with pytest.raises(LoggedOutError):
        await site.submit(confirmation, no_look)
    with pytest.raises(LoggedOutError):
        await site.submit(confirmation, no_look)
    counters = await shop.control.counters()
    assert counters["submits_received"] == 1
    assert counters["orders_placed"] == 0
    assert counters["requests"]["login"] == 1


@pytest.mark.parametrize(
    "fault",
    [{"kind": "error"}, {"kind": "reset"}, {"kind": "lost"}, {"kind": "redesign"}, {"kind": "logged_out"}],
)
async def test_the_number_survives_a_broken_thank_you_page(
    shop: RunningShop, site: SandboxSite, fault: dict[str, str]
) -> None:
    confirmation = await confirmed(shop, site)
    await shop.control.arm(step="thanks", **fault)
    submission = await site.submit(confirmation, no_look)
    assert [submission.site_order_id] == (await shop.control.counters())["order_numbers"]
    with suppress(SiteError, httpx.HTTPError):
        assert (await site.read_thanks(submission)).contradicts is None


async def test_stock_gone_at_the_click(shop: RunningShop, site: SandboxSite) -> None:
    confirmation = await confirmed(shop, site)
    await shop.control.change_item("sencha-100g", stock=1)
    with pytest.raises(ItemUnavailableError, match=r"took no order: .*在庫がなくなりました") as error:
        await site.submit(confirmation, no_look)
    assert error.value.page is not None
    assert (await shop.control.counters())["orders_placed"] == 0


async def test_convenience_store_payment_has_three_days(shop: RunningShop, site: SandboxSite) -> None:
    number = await ordered(shop, site, "convenience_store")
    payment = await site.pay(number, PAYABLE_YEN, {"payment_method": "convenience_store"}, no_look)
    assert payment.state is OrderState.AWAITING_PAYMENT
    assert payment.human_step is None
    assert "slip number " in payment.detail
    assert payment.pay_deadline is not None
    assert payment.pay_deadline.tzinfo is UTC
    deadline = payment.pay_deadline.astimezone(JST)
    assert (deadline.hour, deadline.minute) == (23, 59)
    assert deadline.date() - datetime.now(JST).date() in (timedelta(days=3), timedelta(days=2))
    detail = await site.order_detail(number)
    assert detail.order_state is OrderState.AWAITING_PAYMENT
    assert detail.pay_deadline == payment.pay_deadline
    again = await site.pay(number, PAYABLE_YEN, {"payment_method": "convenience_store"}, no_look)
    assert again.pay_deadline == payment.pay_deadline
    assert shop.shop.requests["pay"] == 1


@pytest.mark.parametrize(("method", "step"), [("card_3ds", "3-D Secure"), ("card_sms", "SMS code")])
async def test_a_challenge_is_left_to_a_person(shop: RunningShop, site: SandboxSite, method: str, step: str) -> None:
    number = await ordered(shop, site, method)
    payment = await site.pay(number, PAYABLE_YEN, {"payment_method": method}, no_look)
    assert payment.state is OrderState.AWAITING_PAYMENT
    assert payment.human_step == step
    assert b'id="challenge"' in payment.page.html
    assert shop.shop.requests["challenge_answer"] == 0
    assert (await shop.control.counters())["payments_made"] == 0


@pytest.mark.parametrize(("challenge", "step"), [("3ds", "3-D Secure"), ("sms", "SMS code")])
async def test_a_challenge_can_come_unannounced(
    shop: RunningShop, site: SandboxSite, challenge: str, step: str
) -> None:
    await shop.control.force_challenge(challenge)
    assert (await site.pay(await ordered(shop, site), PAYABLE_YEN, {}, no_look)).human_step == step


async def test_a_challenge_whose_page_is_lost_is_still_one(shop: RunningShop, site: SandboxSite) -> None:
    number = await ordered(shop, site, "card_3ds")
    await shop.control.arm("reset", "challenge")
    payment = await site.pay(number, PAYABLE_YEN, {"payment_method": "card_3ds"}, no_look)
    assert payment.human_step == "identity check"
    assert payment.page.http_status == 303


async def test_what_is_paid_is_not_paid_again(shop: RunningShop, site: SandboxSite) -> None:
    number = await ordered(shop, site)
    await site.pay(number, PAYABLE_YEN, {}, no_look)
    assert (await site.pay(number, PAYABLE_YEN, {}, no_look)).state is OrderState.PAID
    assert shop.shop.requests["pay"] == 1


@pytest.mark.parametrize("kind", ["reset", "lost", "hang", "error"])
async def test_a_payment_without_an_answer_is_sent_once(shop: RunningShop, kind: str) -> None:
    impatient = SandboxSite(shop.url, timeout_seconds=0.5)
    number = await ordered(shop, impatient)
    await shop.control.arm(kind, "pay", after=True)
    with pytest.raises((SiteError, httpx.HTTPError)):
        await impatient.pay(number, PAYABLE_YEN, {}, no_look)
    assert shop.shop.requests["pay"] == 1
    assert (await shop.control.counters())["payments_by_order"] == {number: 1}
    await impatient.close()


async def test_another_way_to_pay_than_the_order_has_is_refused(shop: RunningShop, site: SandboxSite) -> None:
    number = await ordered(shop, site)
    with pytest.raises(SiteError, match="by card"):
        await site.pay(number, PAYABLE_YEN, {"payment_method": "convenience_store"}, no_look)
    with pytest.raises(SiteError, match="404"):
        await site.pay("306087-20260813-0000000000", PAYABLE_YEN, {}, no_look)
    assert shop.shop.requests["pay"] == 0


@pytest.mark.parametrize("step", ["payment_page", "payment_result"])
async def test_a_redesigned_payment_page(shop: RunningShop, site: SandboxSite, step: str) -> None:
    number = await ordered(shop, site)
    await shop.control.arm("redesign", step)
    with pytest.raises(PageChangedError):
        await site.pay(number, PAYABLE_YEN, {}, no_look)
    assert shop.shop.requests["pay"] == (0 if step == "payment_page" else 1)


async def test_a_cancelled_submit_is_not_sent_again(shop: RunningShop, site: SandboxSite) -> None:
    confirmation = await confirmed(shop, site)
    await shop.control.arm("hang", "submit", after=True)
    clicking = asyncio.create_task(site.submit(confirmation, no_look))
    assert await shop.control.wait(orders=1)
    clicking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await clicking
    assert (await shop.control.counters())["submits_received"] == 1
