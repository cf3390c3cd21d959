"""Orders from the lease to their end, over real gRPC and the real shop."""

import json

from ordergateway.v1 import orders_pb2

from tests.worker.conftest import Bench


async def test_an_order_is_bought_paid_and_reported_step_by_step(bench: Bench) -> None:
    end = await bench.execute()

    assert end.terminal_status == orders_pb2.TASK_STATUS_SUCCEEDED
    assert bench.gateway.states("po-1") == ["created", "in_cart", "in_cart", "in_cart", "ordered", "paid"]
    assert await bench.ordered() == 1
    assert json.loads((bench.folder / "evidence/po-1/05-payment.meta.json").read_text())["http_status"] == 200
