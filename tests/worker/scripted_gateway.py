"""A small gateway for tests: the contract's servicer on a real socket, doing what the test tells it to."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import grpc
from google.protobuf.any_pb2 import Any as PackedAny
from google.rpc.status_pb2 import Status
from ordergateway.v1 import errors_pb2, orders_pb2
from ordergateway.v1 import order_leases_pb2 as pb
from ordergateway.v1.order_leases_pb2_grpc import OrderLeaseServiceServicer, add_OrderLeaseServiceServicer_to_server

from worker.gateway.wire import to_duration

TERMINAL_FOR = {
    orders_pb2.ORDER_STATE_PAID: orders_pb2.TASK_STATUS_SUCCEEDED,
    orders_pb2.ORDER_STATE_CANCELLED: orders_pb2.TASK_STATUS_FAILED,
}
Hook = Callable[[str, object], Awaitable[None]]


@dataclass
class Refusal(Exception):  # noqa: N818 -- thrown by a test's script
    """What the scripted gateway answers instead of its usual answer."""

    code: grpc.StatusCode
    reason: int = 0
    retry_after: float | None = None
    recorded_late: bool = False
    unreadable: bool = False

    def details(self) -> bytes:
        if self.unreadable:
            return b"\xff"
        detail = errors_pb2.ErrorDetail(
            reason=self.reason, message="refused by the script", recorded_late=self.recorded_late
        )
        if self.retry_after is not None:
            detail.retry_after.CopyFrom(to_duration(self.retry_after))
        packed = PackedAny()
        packed.Pack(detail)
        return Status(code=self.code.value[0], message="refused by the script", details=[packed]).SerializeToString()


async def lost(context: grpc.aio.ServicerContext) -> None:
    await context.abort(grpc.StatusCode.UNAVAILABLE, "the answer was lost")


@dataclass
class ScriptedGateway(OrderLeaseServiceServicer):
    """Leases what the test puts into `leases`, grants everything, and keeps what it was told.

    `script` maps a method's name to exceptions, one for each coming call (None: answer as usual). `moments`: when each
    method was called, by the loop's clock.
    """

    ttl: float = 60.0
    ack_within: float = 30.0
    permit_ttl: float = 30.0
    others: pb.OtherOrders | None = field(default_factory=pb.OtherOrders)
    leases: asyncio.Queue[pb.Lease] = field(default_factory=asyncio.Queue)
    reclaimable: dict[str, pb.Lease] = field(default_factory=dict)
    script: dict[str, list[Refusal | None]] = field(default_factory=dict)
    calls: list[tuple[str, object]] = field(default_factory=list)
    metadata: list[dict[str, str]] = field(default_factory=list)
    on_call: Hook | None = None
    ended: dict[str, pb.ReportOrderRequest] = field(default_factory=dict)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    open_streams: int = 0
    moments: dict[str, list[float]] = field(default_factory=dict)

    def lease(self, task_id: str, intent_json: str, *, lease_count: int = 1, **fields: object) -> pb.Lease:
        lease = pb.Lease(
            task_id=task_id,
            site=str(fields.pop("site", "sandbox")),
            intent_json=intent_json,
            lease_count=lease_count,
            lease_token=f"{task_id}-{lease_count}".ljust(43, "x"),
            lease_ttl=to_duration(self.ttl),
            acknowledge_within=to_duration(self.ack_within),
            **fields,  # type: ignore[arg-type]
        )
        if not lease.HasField("task_created_at"):
            lease.task_created_at.GetCurrentTime()
        return lease

    def offer(self, task_id: str, intent_json: str, **fields: object) -> pb.Lease:
        lease = self.lease(task_id, intent_json, **fields)  # type: ignore[arg-type]
        self.leases.put_nowait(lease)
        return lease

    def requests(self, method: str) -> list[object]:
        return [request for name, request in self.calls if name == method]

    def reports(self, task_id: str) -> list[pb.ReportOrderRequest]:
        return [
            request
            for request in self.requests("ReportOrder")
            if isinstance(request, pb.ReportOrderRequest) and request.task_id == task_id
        ]

    def states(self, task_id: str) -> list[str]:
        names = [orders_pb2.OrderState.Name(report.state) for report in self.reports(task_id)]
        return [name.removeprefix("ORDER_STATE_").lower() for name in names]

    async def end_of(self, task_id: str, seconds: float = 60) -> pb.ReportOrderRequest:
        async with asyncio.timeout(seconds), self.changed:
            await self.changed.wait_for(lambda: task_id in self.ended)
        return self.ended[task_id]

    async def told(self, task_id: str, state: str, seconds: float = 60) -> None:
        async with asyncio.timeout(seconds), self.changed:
            await self.changed.wait_for(lambda: state in self.states(task_id))

    async def called(self, method: str, times: int = 1, seconds: float = 60) -> None:
        async with asyncio.timeout(seconds), self.changed:
            await self.changed.wait_for(lambda: len(self.requests(method)) >= times)

    async def _called(self, method: str, request: object, context: grpc.aio.ServicerContext) -> None:
        self.calls.append((method, request))
        self.moments.setdefault(method, []).append(asyncio.get_running_loop().time())
        self.metadata.append({key: str(value) for key, value in context.invocation_metadata() or ()})
        async with self.changed:
            self.changed.notify_all()
        if self.on_call is not None:
            await self.on_call(method, request)
        coming = self.script.get(method)
        refusal = coming.pop(0) if coming else None
        if refusal is not None:
            if refusal.reason:
                context.set_trailing_metadata((("grpc-status-details-bin", refusal.details()),))
            await context.abort(refusal.code, "refused by the script")

    async def LeaseOrders(  # noqa: N802
        self, request: pb.LeaseOrdersRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[pb.LeaseOrdersResponse]:
        self.open_streams += 1
        try:
            await self._called("LeaseOrders", request, context)
            heartbeat = pb.LeaseOrdersResponse()
            heartbeat.heartbeat.sent_at.GetCurrentTime()
            yield heartbeat
            try:
                async with asyncio.timeout(request.wait.ToNanoseconds() / 1e9):
                    lease = await self.leases.get()
            except TimeoutError:
                return
            yield pb.LeaseOrdersResponse(lease=lease)
        finally:
            self.open_streams -= 1

    async def RenewLease(  # noqa: N802
        self, request: pb.RenewLeaseRequest, context: grpc.aio.ServicerContext
    ) -> pb.RenewLeaseResponse:
        await self._called("RenewLease", request, context)
        return pb.RenewLeaseResponse(
            task_id=request.task_id,
            lease_ttl=to_duration(self.ttl),
            lease_age=to_duration(len(self.calls)),
            other_orders=self.others if request.with_other_orders else None,
        )

    async def ReportOrder(  # noqa: N802
        self, request: pb.ReportOrderRequest, context: grpc.aio.ServicerContext
    ) -> pb.ReportOrderResponse:
        await self._called("ReportOrder", request, context)
        if request.terminal:
            self.ended[request.task_id] = request
            async with self.changed:
                self.changed.notify_all()
        return pb.ReportOrderResponse(task_id=request.task_id, recorded=True)

    async def RequestSubmitPermit(  # noqa: N802
        self, request: pb.RequestSubmitPermitRequest, context: grpc.aio.ServicerContext
    ) -> pb.RequestSubmitPermitResponse:
        await self._called("RequestSubmitPermit", request, context)
        return pb.RequestSubmitPermitResponse(task_id=request.task_id, valid_for=to_duration(self.permit_ttl))

    async def ReclaimOrder(  # noqa: N802
        self, request: pb.ReclaimOrderRequest, context: grpc.aio.ServicerContext
    ) -> pb.ReclaimOrderResponse:
        await self._called("ReclaimOrder", request, context)
        lease = self.reclaimable.get(request.task_id)
        if lease is None:
            refusal = Refusal(grpc.StatusCode.NOT_FOUND, errors_pb2.ERROR_REASON_TASK_NOT_FOUND)
            context.set_trailing_metadata((("grpc-status-details-bin", refusal.details()),))
            await context.abort(refusal.code, "no such task")
        return pb.ReclaimOrderResponse(lease=lease)


@asynccontextmanager
async def serving(gateway: ScriptedGateway) -> AsyncIterator[str]:
    """Serves on a free loopback port; yields `host:port`."""
    server = grpc.aio.server()
    add_OrderLeaseServiceServicer_to_server(gateway, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(0)
