"""The floor: a grpc.aio server with the same services and messages that does nothing but answer.

`python -m bench.floor PORT` serves until it is told to end. What the gateway adds to these figures is its own cost.
"""

import asyncio
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

import grpc
import uvloop
from grpc_health.v1 import health, health_pb2_grpc
from ordergateway.v1 import order_leases_pb2 as leases
from ordergateway.v1 import orders_pb2 as orders


class Handover:
    """The last submission, passed on to whoever waits: all that a bare push needs."""

    def __init__(self) -> None:
        self.last: deque[str] = deque(maxlen=1)
        self.waiter: asyncio.Future[str] | None = None

    def put(self, task_id: str) -> None:
        """Gives a submission to the one who waits, else keeps it."""
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(task_id)
        else:
            self.last.append(task_id)

    async def take(self) -> str:
        """The last submission, or the next one."""
        if self.last:
            return self.last.pop()
        self.waiter = asyncio.get_running_loop().create_future()
        return await self.waiter


class Floor:
    """The four methods that the benchmarks call, with nothing behind them."""

    def __init__(self) -> None:
        self._handover = Handover()

    async def submit(self, request: orders.SubmitOrderRequest, _context: object) -> orders.SubmitOrderResponse:
        """The echo."""
        self._handover.put(request.task_id)
        return orders.SubmitOrderResponse(
            task_id=request.task_id, status=orders.TASK_STATUS_QUEUED, created=True, intent_matches=True
        )

    async def lease(
        self, _request: leases.LeaseOrdersRequest, _context: object
    ) -> AsyncIterator[leases.LeaseOrdersResponse]:
        """The push of the last submission."""
        yield leases.LeaseOrdersResponse(heartbeat=orders.Heartbeat())
        task_id = await self._handover.take()
        yield leases.LeaseOrdersResponse(lease=leases.Lease(task_id=task_id, lease_token="x" * 43, lease_count=1))

    async def renew(self, request: leases.RenewLeaseRequest, _context: object) -> leases.RenewLeaseResponse:
        """An echo."""
        return leases.RenewLeaseResponse(task_id=request.task_id, lease_count=1)

    async def report(self, request: leases.ReportOrderRequest, _context: object) -> leases.ReportOrderResponse:
        """An echo."""
        return leases.ReportOrderResponse(task_id=request.task_id, recorded=True)

    def handlers(self) -> list[grpc.GenericRpcHandler]:
        """The methods under the names of the contract."""

        def unary(method: Any, request: Any) -> Any:
            return grpc.unary_unary_rpc_method_handler(method, request.FromString, lambda m: m.SerializeToString())

        push = grpc.unary_stream_rpc_method_handler(
            self.lease, leases.LeaseOrdersRequest.FromString, leases.LeaseOrdersResponse.SerializeToString
        )
        return [
            grpc.method_handlers_generic_handler(
                "ordergateway.v1.OrderService", {"SubmitOrder": unary(self.submit, orders.SubmitOrderRequest)}
            ),
            grpc.method_handlers_generic_handler(
                "ordergateway.v1.OrderLeaseService",
                {
                    "LeaseOrders": push,
                    "RenewLease": unary(self.renew, leases.RenewLeaseRequest),
                    "ReportOrder": unary(self.report, leases.ReportOrderRequest),
                },
            ),
        ]


async def serve(port: int) -> None:
    """Serves on a loopback port until SIGTERM."""
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(Floor().handlers())
    health_pb2_grpc.add_HealthServicer_to_server(health.aio.HealthServicer(), server)
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    await server.stop(0)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # the gateway's own loop
        runner.run(serve(int(sys.argv[1])))
