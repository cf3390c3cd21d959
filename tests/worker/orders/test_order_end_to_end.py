"""Orders from the lease to their end, over real gRPC, against the real shop; the gateway follows a script."""

import grpc
import pytest
from ordergateway.v1 import order_leases_pb2 as pb
from ordergateway.v1 import orders_pb2

from tests.worker.conftest import Bench, eventually
from tests.worker.scripted_gateway import Refusal

SUCCEEDED = orders_pb2.TASK_STATUS_SUCCEEDED
FAILED = orders_pb2.TASK_STATUS_FAILED
NEEDS_HUMAN = orders_pb2.TASK_STATUS_NEEDS_HUMAN
IN_CART = orders_pb2.ORDER_STATE_IN_CART


async def test_an_order_is_bought_paid_and_reported_step_by_step(bench: Bench) -> None:
    end = await bench.execute()

    assert end.terminal_status == SUCCEEDED
    assert bench.gateway.states("po-1") == ["created", "in_cart", "in_cart", "in_cart", "ordered", "paid"]
    reports = bench.gateway.reports("po-1")
    assert [report.evidence_ref for report in reports] == [
        "",
        "po-1/01-cart-add",
        "po-1/02-cart-check",
        "po-1/03-order-confirm",
        "po-1/04-order-submit",
        "po-1/05-payment",
    ]
    assert [report.sequence for report in reports] == list(range(1, 7))
    assert reports[3].payable_yen >= 1080
    counters = await bench.shop.control.counters()
    assert (counters["orders_placed"], counters["units_sold"], counters["payments_made"]) == (1, 1, 1)
    assert counters["order_numbers"] == [reports[4].site_order_id]


async def test_each_steps_evidence_is_on_disk_before_its_report(bench: Bench) -> None:
    missing: list[str] = []

    async def check(method: str, request: object) -> None:
        if isinstance(request, pb.ReportOrderRequest) and request.evidence_ref:
            for kind in ("html", "meta.json"):
                path = bench.folder / "evidence" / f"{request.evidence_ref}.{kind}"
                if not path.is_file():
                    missing.append(str(path))

    bench.gateway.on_call = check
    await bench.execute()
    assert missing == []
    assert len(bench.gateway.reports("po-1")) == 6


async def test_the_worker_acts_only_after_its_acknowledgement(bench: Bench) -> None:
    requests_at_first_renewal: list[int] = []

    async def count(method: str, request: object) -> None:
        if method == "RenewLease":
            requests_at_first_renewal.append(sum((await bench.shop.control.counters())["requests"].values()))

    bench.gateway.on_call = count
    await bench.execute()
    assert requests_at_first_renewal[0] == 0


async def test_a_lost_answer_to_every_call_is_healed_by_the_repeat(bench: Bench) -> None:
    lost = Refusal(grpc.StatusCode.UNAVAILABLE)
    bench.gateway.script = {
        method: [lost, None, lost] for method in ("LeaseOrders", "RenewLease", "ReportOrder", "RequestSubmitPermit")
    }
    end = await bench.execute()
    assert end.terminal_status == SUCCEEDED
    assert await bench.ordered() == 1


async def test_a_lease_whose_token_is_known_is_dropped(bench: Bench) -> None:
    lease = bench.gateway.offer("po-1", bench.intent())
    async with bench.worker():
        await bench.gateway.end_of("po-1")
        bench.gateway.leases.put_nowait(lease)
        bench.gateway.offer("po-2", bench.intent())
        await bench.gateway.end_of("po-2")
    assert len(bench.gateway.reports("po-1")) == 6
    assert await bench.ordered() == 2


async def test_the_token_goes_to_the_gateway_and_never_to_the_log(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    lease = bench.gateway.lease("po-1", bench.intent())
    await bench.execute()
    assert {entry["authorization"] for entry in bench.gateway.metadata} == {"Bearer secret-token"}
    assert caplog.records
    for record in caplog.records:
        words = f"{record.getMessage()} {vars(record)}"
        assert "secret-token" not in words
        if not record.name.startswith("aiosqlite"):
            assert lease.lease_token not in words


async def test_a_malformed_intent_fails_before_anything_touches_the_site(bench: Bench) -> None:
    end = await bench.execute(intent_json='{"items": []}')
    assert (end.terminal_status, end.error_code) == (FAILED, 422)
    assert "items" in end.detail
    assert (await bench.shop.control.counters())["requests"] == {}


async def test_a_malformed_intent_of_a_task_that_was_in_other_hands_needs_a_human(bench: Bench) -> None:
    end = await bench.execute(intent_json='{"items": [], "a_newer_field": 1}', lease_count=2)
    assert (end.terminal_status, end.error_code) == (NEEDS_HUMAN, 422)
    assert "malformed intent: " in end.detail
    assert "not known whether the order was placed" in end.detail
    assert (await bench.shop.control.counters())["requests"] == {}


async def test_an_amount_over_the_limit_stops_before_the_click(bench: Bench) -> None:
    end = await bench.execute(intent_json=bench.intent(max_total_yen=100))
    assert (end.terminal_status, end.error_code, end.state) == (NEEDS_HUMAN, 5004, IN_CART)
    assert end.payable_yen > 100
    assert end.evidence_ref == "po-1/03-order-confirm"
    assert (await bench.shop.control.counters())["submits_received"] == 0
    assert bench.gateway.requests("RequestSubmitPermit") == []


async def test_without_any_limit_nothing_is_bought(bench: Bench) -> None:
    bench.settings["order_max_total_yen"] = None
    end = await bench.execute()
    assert (end.terminal_status, end.error_code) == (NEEDS_HUMAN, 5004)
    assert await bench.ordered() == 0


async def test_the_first_variant_in_stock_is_taken_where_the_intent_names_none(bench: Bench) -> None:
    end = await bench.execute(intent_json=bench.intent("tshirt-basic"))
    assert end.terminal_status == SUCCEEDED
    (order,) = bench.shop.shop.orders.values()
    assert [line.variant_id for line in order.quote.lines] == ["white-m"]


async def test_what_is_sold_out_fails(bench: Bench) -> None:
    end = await bench.execute(intent_json=bench.intent("earphones-soldout"))
    assert end.terminal_status == FAILED
    assert "nothing was bought" in end.detail


async def test_leftovers_in_the_cart_are_cleared_first(bench: Bench) -> None:
    await bench.shop.control.fill_cart({"code": "yokan-limited", "quantity": 3})
    end = await bench.execute(intent_json=bench.intent(quantity=2))
    assert end.terminal_status == SUCCEEDED
    counters = await bench.shop.control.counters()
    assert counters["units_sold"] == 2


async def test_a_logged_out_account_needs_a_human(bench: Bench) -> None:
    await bench.shop.control.change_account(end_sessions=True, login_refused=True)
    end = await bench.execute()
    assert (end.terminal_status, end.error_code) == (NEEDS_HUMAN, 5001)
    assert await bench.ordered() == 0


async def test_a_site_that_is_down_before_the_permit_fails_the_order(bench: Bench) -> None:
    bench.settings["sandbox_url"] = "http://127.0.0.1:9"
    bench.settings["scraper_base_url"] = ""
    end = await bench.execute()
    assert end.terminal_status == FAILED
    assert "nothing was bought" in end.detail


async def test_a_step_that_hangs_before_the_permit_fails_the_order(bench: Bench) -> None:
    bench.settings["step_timeout_seconds"] = 0.3
    await bench.shop.control.arm("slow", "confirm", seconds=5)
    end = await bench.execute()
    assert end.terminal_status == FAILED
    assert await bench.ordered() == 0


async def test_three_d_secure_needs_a_human_and_keeps_the_scene(bench: Bench) -> None:
    end = await bench.execute(intent_json=bench.intent(options={"payment_method": "card_3ds"}))
    assert (end.terminal_status, end.state) == (NEEDS_HUMAN, orders_pb2.ORDER_STATE_AWAITING_PAYMENT)
    assert "3-D Secure" in end.detail
    assert (bench.folder / "evidence/po-1/05-payment.html").is_file()
    counters = await bench.shop.control.counters()
    assert (counters["orders_placed"], counters["payments_made"]) == (1, 0)


async def test_a_convenience_store_payment_ends_with_its_deadline(bench: Bench) -> None:
    end = await bench.execute(intent_json=bench.intent(options={"payment_method": "convenience_store"}))
    assert (end.terminal_status, end.state) == (NEEDS_HUMAN, orders_pb2.ORDER_STATE_AWAITING_PAYMENT)
    assert end.HasField("pay_deadline")
    assert end.site_order_id


async def test_low_disk_takes_no_order_and_tells_why(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.gateway.offer("po-1", bench.intent())
    async with bench.worker(min_free_disk_mib=10**9):
        await eventually(lambda: "no new order is taken" in caplog.text)
    assert bench.gateway.requests("LeaseOrders") == []
