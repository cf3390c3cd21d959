"""A batch is on disk as a whole or not at all, and sent again after a lost answer it files nothing twice."""

import signal
from pathlib import Path

import grpc
import pytest
from ordergateway.v1 import orders_pb2
from ordergateway.v1.orders_pb2_grpc import OrderServiceStub

from demo.programs import free_port
from tests.faults.program import Program
from tests.faults.promises import rows

CALLS, ORDERS = 20, 500
AGAIN = {"timeout": 120, "wait_for_ready": True}


def request(call: int, orders: int) -> orders_pb2.SubmitOrdersRequest:
    return orders_pb2.SubmitOrdersRequest(
        orders=[
            orders_pb2.SubmitOrderRequest(task_id=f"po-{call}-{number}", site="sandbox", intent_json="{}")
            for number in range(orders)
        ]
    )


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "calls", [pytest.param(4, id="a few"), pytest.param(CALLS, id="ten thousand", marks=pytest.mark.extended)]
)
async def test_a_gateway_killed_about_a_commit_files_each_order_of_a_batch_once(tmp_path: Path, calls: int) -> None:
    database = tmp_path / "gateway.db"
    port = free_port()
    settings = {
        "RAKUTEN_SITES": "sandbox",
        "RAKUTEN_GATEWAY_DB_PATH": str(database),
        "RAKUTEN_GATEWAY_GRPC_PORT": str(port),
        "RAKUTEN_GATEWAY_PORT": "0",
    }
    gateway = Program("gateway", tmp_path, settings)
    await gateway.start()
    try:
        async with grpc.aio.insecure_channel(
            f"127.0.0.1:{port}", options=(("grpc.max_reconnect_backoff_ms", 200), ("grpc.enable_retries", 0))
        ) as channel:
            submit = OrderServiceStub(channel).SubmitOrders
            were_filed = set()
            for call in range(calls):
                wanted = request(call, ORDERS)
                await submit(request(call, 1), **AGAIN)
                await gateway.armed("after-commit" if call % 2 == 0 else "before-commit")
                with pytest.raises(grpc.aio.AioRpcError) as lost:
                    await submit(wanted, timeout=120)
                assert lost.value.code() is grpc.StatusCode.UNAVAILABLE
                assert await gateway.wait() == -signal.SIGKILL
                await gateway.end()
                filed = len(rows(database, "SELECT 1 FROM tasks")) - call * ORDERS
                assert filed in (1, ORDERS), "all of a batch or nothing of it"
                were_filed.add(filed)
                await gateway.start()
                results = (await submit(wanted, **AGAIN)).results
                assert [result.submitted.task_id for result in results] == [each.task_id for each in wanted.orders]
                assert [result.submitted.created for result in results] == [number >= filed for number in range(ORDERS)]
            assert were_filed == {1, ORDERS}
            again = [(await submit(request(call, ORDERS), **AGAIN)).results for call in range(calls)]
        assert not any(result.submitted.created for results in again for result in results)
        assert len(rows(database, "SELECT 1 FROM tasks")) == calls * ORDERS
        assert len(rows(database, "SELECT 1 FROM events WHERE kind = 'submit'")) == calls * ORDERS
    finally:
        await gateway.end()
