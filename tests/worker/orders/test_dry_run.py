"""A dry run ends at the confirmation page: everything is shown, nothing is ordered, the cart is empty."""

import grpc
import pytest
from ordergateway.v1 import errors_pb2, orders_pb2
from ordergateway.v1 import order_leases_pb2 as pb

from tests.worker.conftest import Bench
from tests.worker.scripted_gateway import Refusal

DRY_RUN = Refusal(grpc.StatusCode.FAILED_PRECONDITION, errors_pb2.ERROR_REASON_PERMIT_DRY_RUN)
ANSWERS = {
    "refused": (DRY_RUN, "dry run"),
    "refused for another reason": (
        Refusal(grpc.StatusCode.ABORTED, errors_pb2.ERROR_REASON_DISPATCH_PAUSED),
        "dry run",
    ),
    "not to be asked": (Refusal(grpc.StatusCode.UNAVAILABLE), "dry run; the gateway could not be shown the terms"),
    "granted": (None, "dry run; the gateway granted a permit for it, which was not used"),
}


@pytest.mark.parametrize("name", ANSWERS)
async def test_it_ends_in_the_cart_whatever_the_gateway_says(bench: Bench, name: str) -> None:
    answer, detail = ANSWERS[name]
    bench.gateway.script["RequestSubmitPermit"] = [answer]
    end = await bench.execute(stop_before_submit=True)
    assert (end.terminal_status, end.state) == (orders_pb2.TASK_STATUS_SUCCEEDED, orders_pb2.ORDER_STATE_IN_CART)
    assert end.detail.startswith(detail)
    assert end.payable_yen > 0
    assert end.evidence_ref.endswith("03-order-confirm")
    counters = await bench.shop.control.counters()
    assert (counters["submits_received"], counters["orders_placed"]) == (0, 0)
    assert not await bench.in_journal(lambda journal: journal.claims.has_click("po-1"))


async def test_it_shows_its_terms_and_leaves_an_empty_cart(bench: Bench) -> None:
    bench.gateway.script["RequestSubmitPermit"] = [DRY_RUN]
    await bench.execute(stop_before_submit=True)
    (request,) = bench.gateway.requests("RequestSubmitPermit")
    assert isinstance(request, pb.RequestSubmitPermitRequest)
    assert request.terms.payable_yen > 0
    requests = (await bench.shop.control.counters())["requests"]
    assert requests["cart_remove"] >= 1, requests


async def test_a_worker_that_does_not_know_dry_runs_gets_no_permit_and_needs_a_human(bench: Bench) -> None:
    bench.gateway.script["RequestSubmitPermit"] = [DRY_RUN]
    end = await bench.execute()  # the lease without its field is what such a worker reads
    assert end.terminal_status == orders_pb2.TASK_STATUS_NEEDS_HUMAN
    assert (await bench.shop.control.counters())["submits_received"] == 0
