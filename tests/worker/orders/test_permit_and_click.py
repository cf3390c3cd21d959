"""No permit, no click; one click, whatever becomes of its answer."""

from typing import Any

import grpc
import pytest
from ordergateway.v1 import errors_pb2, orders_pb2
from ordergateway.v1 import order_leases_pb2 as pb

from common.terms_digest import terms_digest
from tests.worker.conftest import Bench
from tests.worker.scripted_gateway import Refusal
from worker.failpoints import FailpointName
from worker.journal.records import OrderStatus
from worker.sites.port import PreSendCheck
from worker.sites.sandbox.http import Answer, SandboxHttp

SUCCEEDED = orders_pb2.TASK_STATUS_SUCCEEDED
NEEDS_HUMAN = orders_pb2.TASK_STATUS_NEEDS_HUMAN
FAILED = orders_pb2.TASK_STATUS_FAILED
IN_CART = orders_pb2.ORDER_STATE_IN_CART
ORDERED = orders_pb2.ORDER_STATE_ORDERED


async def test_a_paused_dispatch_is_waited_out_and_the_page_confirmed_again(bench: Bench) -> None:
    paused = Refusal(grpc.StatusCode.ABORTED, errors_pb2.ERROR_REASON_DISPATCH_PAUSED, retry_after=0.05)
    bench.gateway.script["RequestSubmitPermit"] = [paused, paused]
    end = await bench.execute()
    assert end.terminal_status == SUCCEEDED
    assert (await bench.shop.control.counters())["requests"]["confirm"] == 2
    assert await bench.ordered() == 1


@pytest.mark.parametrize(
    "reason",
    [
        errors_pb2.ERROR_REASON_PERMIT_ORDER_KNOWN,
        errors_pb2.ERROR_REASON_PERMIT_OTHER_JOURNAL,
        errors_pb2.ERROR_REASON_PERMIT_EXPIRED,
    ],
)
async def test_a_refused_permit_needs_a_human_and_no_click_is_made(bench: Bench, reason: int) -> None:
    bench.gateway.script["RequestSubmitPermit"] = [Refusal(grpc.StatusCode.FAILED_PRECONDITION, reason)]
    end = await bench.execute()
    assert end.terminal_status == NEEDS_HUMAN
    assert (await bench.shop.control.counters())["submits_received"] == 0


async def test_the_permit_is_asked_for_with_what_the_confirmation_page_shows(bench: Bench) -> None:
    await bench.execute()
    (request,) = bench.gateway.requests("RequestSubmitPermit")
    assert isinstance(request, pb.RequestSubmitPermitRequest)
    (item,) = request.terms.items
    assert (request.terms.payable_yen, item.quantity, item.unit_price_yen) == (1_080 + 550, 1, 1_080)
    assert item.item_url.startswith(bench.shop.url)
    line = (item.item_url, item.variant_id, item.quantity, item.unit_price_yen)
    assert request.terms.digest == terms_digest(request.terms.payable_yen, [line])


async def test_terms_over_the_cap_need_a_human_with_5004_and_no_click_is_made(bench: Bench) -> None:
    over = Refusal(grpc.StatusCode.FAILED_PRECONDITION, errors_pb2.ERROR_REASON_TERMS_OVER_CAP)
    bench.gateway.script["RequestSubmitPermit"] = [over]
    end = await bench.execute()
    assert (end.terminal_status, end.error_code) == (NEEDS_HUMAN, 5004)
    assert end.payable_yen > 0
    assert (await bench.shop.control.counters())["submits_received"] == 0


async def test_a_budget_that_has_not_so_much_needs_a_human_with_5005_and_no_click_is_made(bench: Bench) -> None:
    exceeded = Refusal(grpc.StatusCode.FAILED_PRECONDITION, errors_pb2.ERROR_REASON_BUDGET_EXCEEDED, retry_after=9_000)
    bench.gateway.script["RequestSubmitPermit"] = [exceeded]
    end = await bench.execute()
    assert (end.terminal_status, end.error_code) == (NEEDS_HUMAN, 5005)
    assert end.payable_yen > 0
    assert (await bench.shop.control.counters())["submits_received"] == 0


async def test_what_was_cancelled_before_the_click_ends_as_failed(bench: Bench) -> None:
    cancelled = Refusal(grpc.StatusCode.FAILED_PRECONDITION, errors_pb2.ERROR_REASON_CANCEL_REQUESTED)
    bench.gateway.script["RequestSubmitPermit"] = [cancelled]
    end = await bench.execute()
    assert end.terminal_status == FAILED
    assert end.detail.startswith("cancelled before the click")
    assert (await bench.shop.control.counters())["submits_received"] == 0


async def test_what_comes_too_late_ends_as_failed_and_no_click_is_made(bench: Bench) -> None:
    late = Refusal(grpc.StatusCode.FAILED_PRECONDITION, errors_pb2.ERROR_REASON_TOO_LATE)
    bench.gateway.script["RequestSubmitPermit"] = [late]
    end = await bench.execute()
    assert end.terminal_status == FAILED
    assert end.detail.startswith("too late")
    assert (await bench.shop.control.counters())["submits_received"] == 0


async def test_what_comes_too_late_and_was_in_hand_before_needs_a_human(bench: Bench) -> None:
    late = Refusal(grpc.StatusCode.FAILED_PRECONDITION, errors_pb2.ERROR_REASON_TOO_LATE)
    bench.gateway.script["RequestSubmitPermit"] = [late]
    end = await bench.execute(lease_count=2)
    assert end.terminal_status == NEEDS_HUMAN
    assert "nothing was clicked by this run" in end.detail
    assert (await bench.shop.control.counters())["submits_received"] == 0


async def test_a_permit_that_was_waited_for_is_not_used_for_another_amount(bench: Bench) -> None:
    async def dearer(method: str, _request: object) -> None:
        if method == "RequestSubmitPermit":
            await bench.shop.control.change_item("sencha-100g", price_yen=1_090)

    bench.gateway.on_call = dearer
    paused = Refusal(grpc.StatusCode.ABORTED, errors_pb2.ERROR_REASON_DISPATCH_PAUSED, retry_after=0.05)
    bench.gateway.script["RequestSubmitPermit"] = [paused]
    end = await bench.execute()
    assert end.terminal_status == NEEDS_HUMAN
    assert "the permit is for" in end.detail
    assert (await bench.shop.control.counters())["submits_received"] == 0


async def test_without_a_gateway_to_ask_no_click_is_made(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worker.orders.permit.PERMIT_PATIENCE", 0.3)
    monkeypatch.setattr("worker.orders.permit.BETWEEN_ASKING", 0.05)
    bench.gateway.script["RequestSubmitPermit"] = [Refusal(grpc.StatusCode.UNAVAILABLE)] * 1000
    end = await bench.execute()
    assert end.terminal_status == NEEDS_HUMAN
    assert "no click was made" in end.detail
    assert (await bench.shop.control.counters())["submits_received"] == 0


async def test_a_permit_that_ran_out_before_the_click_record_leaves_none(bench: Bench) -> None:
    async def dawdle(name: FailpointName) -> None:
        if name is FailpointName.PERMITTED:
            bench.clock.leap(bench.gateway.permit_ttl)

    bench.gateway.offer("po-1", bench.intent())
    async with bench.worker(dawdle):
        end = await bench.gateway.end_of("po-1")
    assert end.terminal_status == NEEDS_HUMAN
    assert (await bench.shop.control.counters())["submits_received"] == 0
    assert not await bench.in_journal(lambda journal: journal.claims.has_click("po-1"))


async def test_a_permit_that_ran_out_after_the_click_record_makes_no_click(bench: Bench) -> None:
    async def dawdle(name: FailpointName) -> None:
        if name is FailpointName.CLICK_RECORDED:
            bench.clock.leap(bench.gateway.permit_ttl)

    bench.gateway.offer("po-1", bench.intent())
    async with bench.worker(dawdle):
        end = await bench.gateway.end_of("po-1")
    assert end.terminal_status == NEEDS_HUMAN
    assert (await bench.shop.control.counters())["submits_received"] == 0
    assert await bench.in_journal(lambda journal: journal.claims.has_click("po-1"))


async def test_a_connection_that_opens_too_late_makes_no_click(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The look before the connection is opened is in time; the one when it stands is not."""
    post_once = SandboxHttp.post_once

    async def slowly(http: SandboxHttp, path: str, fields: Any, pre_send_check: PreSendCheck) -> Answer:
        bench.clock.leap(bench.gateway.permit_ttl)
        return await post_once(http, path, fields, pre_send_check)

    monkeypatch.setattr(SandboxHttp, "post_once", slowly)
    end = await bench.execute()
    assert end.terminal_status == NEEDS_HUMAN
    assert "the permit ran out before the click; no click was made" in end.detail
    assert (await bench.shop.control.counters())["submits_received"] == 0
    assert await bench.in_journal(lambda journal: journal.claims.has_click("po-1"))


@pytest.mark.parametrize("fault", ["reset", "lost", "error"])
async def test_a_lost_answer_to_the_click_is_one_order_found_and_never_paid(bench: Bench, fault: str) -> None:
    await bench.shop.control.arm(fault, "submit", after=True)
    end = await bench.execute()
    assert (end.terminal_status, end.state) == (NEEDS_HUMAN, ORDERED)
    counters = await bench.shop.control.counters()
    assert (counters["submits_received"], counters["orders_placed"], counters["payments_made"]) == (1, 1, 0)
    assert end.site_order_id == counters["order_numbers"][0]


async def test_a_click_that_the_shop_never_took_needs_a_human(bench: Bench) -> None:
    await bench.shop.control.arm("reset", "submit")
    end = await bench.execute()
    assert (end.terminal_status, end.state) == (NEEDS_HUMAN, IN_CART)
    assert "the click was made" in end.detail
    assert await bench.ordered() == 0


async def test_a_lease_lost_during_the_click_does_not_break_it_off(bench: Bench) -> None:
    await bench.shop.control.arm("slow", "submit", seconds=0.5)
    bench.gateway.offer("po-1", bench.intent())
    async with bench.worker():
        assert await bench.shop.control.wait(step="submit", requests=1)
        bench.clock.leap(bench.gateway.ttl)
        await bench.gateway.told("po-1", "ordered")
    counters = await bench.shop.control.counters()
    assert (counters["orders_placed"], counters["payments_made"]) == (1, 0)
    order = await bench.in_journal(lambda journal: journal.orders.find("po-1"))
    assert (order.status, order.state) == (OrderStatus.OPEN, "ordered")


async def test_trouble_after_a_permit_was_asked_for_is_never_told_as_failed(bench: Bench) -> None:
    paused = Refusal(grpc.StatusCode.ABORTED, errors_pb2.ERROR_REASON_DISPATCH_PAUSED, retry_after=0.05)
    bench.gateway.script["RequestSubmitPermit"] = [paused]

    async def break_the_page(method: str, request: object) -> None:
        if method == "RequestSubmitPermit":
            await bench.shop.control.disarm()
            await bench.shop.control.arm("error", "confirm")

    bench.gateway.on_call = break_the_page
    end = await bench.execute()
    assert end.terminal_status == NEEDS_HUMAN
    assert (await bench.shop.control.counters())["submits_received"] == 0


async def test_a_payment_that_fails_needs_a_human_who_is_told_of_the_order(bench: Bench) -> None:
    await bench.shop.control.arm("error", "pay")
    end = await bench.execute()
    assert (end.terminal_status, end.state) == (NEEDS_HUMAN, ORDERED)
    assert end.detail.startswith("after the click")
    assert end.site_order_id == (await bench.shop.control.counters())["order_numbers"][0]
    assert (bench.folder / "evidence/po-1/05-payment.html").is_file()


async def test_a_payment_whose_answer_is_lost_is_not_repeated(bench: Bench) -> None:
    await bench.shop.control.arm("reset", "pay", after=True)
    end = await bench.execute()
    assert end.terminal_status == NEEDS_HUMAN
    counters = await bench.shop.control.counters()
    assert (counters["payments_made"], counters["double_payments"]) == (1, [])
