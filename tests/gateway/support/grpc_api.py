"""The gateway as a client sees it over gRPC. Another transport offers the same methods, so cases can run over both."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import grpc
from google.protobuf.duration_pb2 import Duration
from google.rpc import status_pb2
from ordergateway.v1 import errors_pb2, operations_pb2, order_leases_pb2, orders_pb2
from ordergateway.v1.operations_pb2_grpc import OperationsServiceStub
from ordergateway.v1.order_leases_pb2_grpc import OrderLeaseServiceStub
from ordergateway.v1.orders_pb2_grpc import OrderServiceStub

from gateway.domain.refusals import Reason
from gateway.domain.states import OrderState, TaskStatus

T = TypeVar("T")

JOURNAL = "journal-of-worker-1"


class RefusedCallError(Exception):
    """A call that the gateway refused: the transport's status and the ErrorDetail."""

    def __init__(self, status: str, detail: errors_pb2.ErrorDetail) -> None:
        super().__init__(f"{status}: {detail}")
        self.status = status
        self.detail = detail

    @property
    def reason(self) -> Reason:
        return Reason(errors_pb2.ErrorReason.Name(self.detail.reason).removeprefix("ERROR_REASON_").lower())

    @property
    def fields(self) -> dict[str, str]:
        """Refused fields and what was said of each."""
        return {violation.field: violation.description for violation in self.detail.violations}


def refusal_in(error: grpc.aio.AioRpcError) -> RefusedCallError | None:
    """The refusal that a gRPC error carries; None if the transport itself failed."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            assert isinstance(value, bytes)
            status = status_pb2.Status.FromString(value)
            assert status.code == error.code().value[0]
            (packed,) = status.details
            detail = errors_pb2.ErrorDetail()
            assert packed.Unpack(detail)
            return RefusedCallError(error.code().name, detail)
    return None


async def told(call: Awaitable[T]) -> T:
    """The answer of a call. Raises RefusedCallError where the gateway refused it."""
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        raise refusal_in(error) or error from None


def duration(seconds: float) -> Duration:
    message = Duration()
    message.FromMicroseconds(round(seconds * 1_000_000))
    return message


def state_number(state: OrderState) -> orders_pb2.OrderState.ValueType:
    return orders_pb2.OrderState.Value(f"ORDER_STATE_{state.name}")


def status_of(task: orders_pb2.Task) -> TaskStatus:
    return TaskStatus(orders_pb2.TaskStatus.Name(task.status).removeprefix("TASK_STATUS_").lower())


class GrpcApi:
    """Calls of the contract with sensible defaults for a test."""

    def __init__(self, channel: grpc.aio.Channel, token: str | None = None) -> None:
        self.channel = channel
        self._metadata = () if token is None else (("authorization", f"Bearer {token}"),)
        self.orders: OrderServiceStub = OrderServiceStub(channel)
        self.leases: OrderLeaseServiceStub = OrderLeaseServiceStub(channel)
        self.operations: OperationsServiceStub = OperationsServiceStub(channel)

    # Upstream.

    async def submit(
        self, task_id: str = "po-1", intent_json: str = "{}", site: str = "rakuten", **fields: Any
    ) -> orders_pb2.SubmitOrderResponse:
        request = orders_pb2.SubmitOrderRequest(task_id=task_id, site=site, intent_json=intent_json, **fields)
        return await told(self.orders.SubmitOrder(request, metadata=self._metadata))

    async def task(self, task_id: str = "po-1") -> orders_pb2.Task:
        request = orders_pb2.GetOrderRequest(task_id=task_id)
        return (await told(self.orders.GetOrder(request, metadata=self._metadata))).task

    async def status(self, task_id: str = "po-1") -> TaskStatus:
        return status_of(await self.task(task_id))

    async def list(self, **fields: Any) -> orders_pb2.ListOrdersResponse:
        return await told(self.orders.ListOrders(orders_pb2.ListOrdersRequest(**fields), metadata=self._metadata))

    async def cancel(
        self, task_id: str = "po-1", reason: str = "not wanted", *, while_leased: bool = False
    ) -> orders_pb2.Task:
        request = orders_pb2.CancelOrderRequest(task_id=task_id, reason=reason, while_leased=while_leased)
        return (await told(self.orders.CancelOrder(request, metadata=self._metadata))).task

    def watch(self, task_id: str = "po-1") -> "grpc.aio.UnaryStreamCall[Any, orders_pb2.WatchOrderResponse]":
        return self.orders.WatchOrder(orders_pb2.WatchOrderRequest(task_id=task_id), metadata=self._metadata)

    # Worker.

    def stream(
        self,
        worker_id: str = "w1",
        wait: float | None = 0,
        *,
        session_id: str = "",
        journal_id: str = JOURNAL,
        sites: tuple[str, ...] = ("rakuten", "sandbox"),
        accounts: tuple[str, ...] = (),
        stream_number: int = 0,
    ) -> "grpc.aio.UnaryStreamCall[Any, order_leases_pb2.LeaseOrdersResponse]":
        """Open a lease stream."""
        request = order_leases_pb2.LeaseOrdersRequest(
            worker_id=worker_id,
            session_id=session_id or f"session-of-{worker_id:0<6}",
            journal_id=journal_id,
            sites=sites,
            accounts=accounts,
            stream_number=stream_number,
            wait=None if wait is None else duration(wait),
        )
        return self.leases.LeaseOrders(request, metadata=self._metadata)

    async def lease(self, worker_id: str = "w1", wait: float = 0, **fields: Any) -> order_leases_pb2.Lease | None:
        """Wait for a lease to the end of the stream; None if it ended with OK and none."""
        found = None

        async def read() -> None:
            nonlocal found
            async for message in self.stream(worker_id, wait, **fields):
                assert found is None, "the stream goes on after its lease"
                if message.WhichOneof("event") == "lease":
                    found = message.lease

        await told(read())
        return found

    async def renew(self, lease: order_leases_pb2.Lease, worker_id: str = "w1") -> order_leases_pb2.RenewLeaseResponse:
        request = order_leases_pb2.RenewLeaseRequest(
            task_id=lease.task_id, worker_id=worker_id, lease_token=lease.lease_token
        )
        return await told(self.leases.RenewLease(request, metadata=self._metadata))

    async def take(self, task_id: str = "po-1", worker_id: str = "w1", **fields: Any) -> order_leases_pb2.Lease:
        """File a task, lease it and acknowledge the lease."""
        await self.submit(task_id)
        lease = await self.lease(worker_id, **fields)
        assert lease is not None
        assert lease.task_id == task_id
        await self.renew(lease, worker_id)
        return lease

    async def report(
        self,
        lease: order_leases_pb2.Lease,
        state: OrderState = OrderState.CREATED,
        sequence: int = 1,
        worker_id: str = "w1",
        **fields: Any,
    ) -> order_leases_pb2.ReportOrderResponse:
        request = order_leases_pb2.ReportOrderRequest(
            task_id=lease.task_id,
            worker_id=worker_id,
            lease_token=lease.lease_token,
            state=state_number(state),
            sequence=sequence,
            **fields,
        )
        return await told(self.leases.ReportOrder(request, metadata=self._metadata))

    async def permit(
        self, lease: order_leases_pb2.Lease, worker_id: str = "w1", journal_id: str = JOURNAL, **fields: Any
    ) -> order_leases_pb2.RequestSubmitPermitResponse:
        request = order_leases_pb2.RequestSubmitPermitRequest(
            task_id=lease.task_id,
            worker_id=worker_id,
            lease_token=lease.lease_token,
            journal_id=journal_id,
            **fields,
        )
        return await told(self.leases.RequestSubmitPermit(request, metadata=self._metadata))

    async def reclaim(
        self,
        task_id: str = "po-1",
        worker_id: str = "w1",
        session_id: str = "",
        journal_id: str = JOURNAL,
        sites: tuple[str, ...] = (),
    ) -> order_leases_pb2.Lease:
        request = order_leases_pb2.ReclaimOrderRequest(
            task_id=task_id,
            worker_id=worker_id,
            session_id=session_id or f"session-of-{worker_id:0<6}",
            journal_id=journal_id,
            sites=sites,
        )
        return (await told(self.leases.ReclaimOrder(request, metadata=self._metadata))).lease

    # Anybody.

    async def health(self) -> operations_pb2.GetHealthResponse:
        return await told(self.operations.GetHealth(operations_pb2.GetHealthRequest(), metadata=self._metadata))

    async def backup(self) -> operations_pb2.CreateBackupResponse:
        return await told(self.operations.CreateBackup(operations_pb2.CreateBackupRequest(), metadata=self._metadata))

    async def raw(self, path: str, data: bytes) -> bytes:
        """Send bytes to a unary method, or to a stream and return its first answer."""
        if path.endswith(("/LeaseOrders", "/WatchOrder")):
            stream = self.channel.unary_stream(path)(data, metadata=self._metadata)

            async def first() -> bytes:
                async for message in stream:
                    stream.cancel()
                    return bytes(message)
                return b""

            return await told(first())
        return await told(self.channel.unary_unary(path)(data, metadata=self._metadata))


@asynccontextmanager
async def connected(port: int, token: str | None = None) -> AsyncIterator[GrpcApi]:
    """A client of the gateway on this port, with a connection of its own."""
    async with grpc.aio.insecure_channel(
        f"127.0.0.1:{port}", options=(("grpc.use_local_subchannel_pool", 1),)
    ) as channel:
        yield GrpcApi(channel, token)


async def heartbeat_of(stream: "grpc.aio.UnaryStreamCall[Any, order_leases_pb2.LeaseOrdersResponse]") -> None:
    """Wait for a stream's first heartbeat: the gateway has taken the call; that it waits in line may come later."""
    first = await asyncio.wait_for(stream.read(), 60)
    assert isinstance(first, order_leases_pb2.LeaseOrdersResponse)
    assert first.WhichOneof("event") == "heartbeat"
