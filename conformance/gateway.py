"""The gateway of the kit: the worker's service on a real socket, honest but for what a situation prescribes.

In one thing it is more generous than a real one: it grants a permit under a lease that is lost, so that a worker that
goes on is seen at the shop.
"""

import asyncio
import random
import secrets
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, Final, cast

import grpc
from google.protobuf.any_pb2 import Any as Packed
from google.protobuf.duration_pb2 import Duration
from google.rpc.status_pb2 import Status
from ordergateway.v1 import errors_pb2, orders_pb2
from ordergateway.v1 import order_leases_pb2 as pb
from ordergateway.v1.order_leases_pb2_grpc import OrderLeaseServiceServicer, add_OrderLeaseServiceServicer_to_server

from conformance.story import Call, Outcome, Story

LEASE_INVALID: Final = errors_pb2.ERROR_REASON_LEASE_INVALID
HEARTBEAT_SECONDS: Final = 10.0
_PORTS: Final = range(20_000, 30_000)
"""Below those that a system gives to connections, which could take it while the gateway is away."""

_LOST_AS: Final = cycle(
    (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNKNOWN, grpc.StatusCode.CANCELLED, grpc.StatusCode.ABORTED)
)
"""A lost connection is told in many ways (errors.proto)."""

Context = Any  # grpc.aio.ServicerContext, whose types name both messages of a method
_CODES: Final = defaultdict[int, grpc.StatusCode](
    lambda: grpc.StatusCode.FAILED_PRECONDITION,
    {
        errors_pb2.ERROR_REASON_DISPATCH_PAUSED: grpc.StatusCode.ABORTED,
        errors_pb2.ERROR_REASON_PERMIT_NOT_SETTLED: grpc.StatusCode.ABORTED,
        errors_pb2.ERROR_REASON_UNAUTHENTICATED: grpc.StatusCode.UNAUTHENTICATED,
        errors_pb2.ERROR_REASON_TASK_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    },
)


@dataclass(frozen=True, slots=True)
class Bend:
    """What is made of one call. `held`: seconds before its answer. `lost`: it is carried out and not answered.

    `reason`: it is refused so. `first`: done before anything else.
    """

    held: float = 0.0
    lost: bool = False
    reason: int = 0
    first: Callable[[Any], Awaitable[None]] | None = None


LOST: Final = Bend(lost=True)
HONEST: Final = Bend()


@dataclass(slots=True)
class Order:
    """A task of the kit: what is leased, and what is made of the coming calls about it, by method."""

    lease: pb.Lease
    bends: dict[str, Iterator[Bend]] = field(default_factory=dict)
    permit_seconds: float = 30.0
    story: Story = field(default_factory=Story)
    broken_streams: int = 0
    waits: bool = True
    renewed_at: float | None = None
    refused: bool = False
    permitted_at: float | None = None
    streams_before: int = 0

    def requeue(self) -> None:
        """Have it leased anew, as after a person's requeue."""
        self.lease.lease_token = ""
        self.lease.lease_count += 1
        told = self.story.calls("ReportOrder", Outcome.ANSWERED)
        self.lease.known_state = told[-1].request.state if told else orders_pb2.ORDER_STATE_UNSPECIFIED
        self.renewed_at = self.permitted_at = None
        self.waits = True

    def is_lost(self, now: float) -> bool:
        """True once its lease is refused or has run out."""
        return self.refused or (self.renewed_at is not None and now > self.renewed_at + seconds(self.lease.lease_ttl))

    def next_bend(self, method: str) -> Bend:
        """Return what is made of the next call of a method."""
        return next(self.bends.get(method, iter(())), HONEST)


class Gateway(OrderLeaseServiceServicer):
    """Hands out what `offer` was given, one order at a time, and writes the stories."""

    def __init__(self, token: str) -> None:
        self._token = f"Bearer {token}"
        self._orders: dict[str, Order] = {}
        self._changed = asyncio.Condition()
        self._server: grpc.aio.Server | None = None
        self.port = 0
        self.streams: list[pb.LeaseOrdersRequest] = []
        self.refused_tokens = 0
        self.current: Order | None = None

    # The life of the server

    async def start(self) -> None:
        """Serve on a loopback port, the second time on the same one. Raises OSError if none is free."""
        for port in [self.port] if self.port else random.sample(_PORTS, 20):
            self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
            add_OrderLeaseServiceServicer_to_server(self, self._server)
            try:
                self.port = self._server.add_insecure_port(f"127.0.0.1:{port}")
            except RuntimeError:
                continue
            await self._server.start()
            return
        raise OSError(f"no port of {_PORTS.start} to {_PORTS.stop - 1} is free")

    async def stop(self) -> None:
        """Break all connections off."""
        if self._server is not None:
            await self._server.stop(0)

    # What a situation does

    async def offer(self, order: Order) -> None:
        """Have an order leased to the worker that asks next."""
        async with self._changed:
            self._orders[order.lease.task_id] = order
            order.waits = True
            self._changed.notify_all()

    async def until(self, reached: Callable[[], bool], seconds: float) -> bool:
        """Wait until something is so; False if it is not within so many seconds."""
        try:
            async with asyncio.timeout(seconds), self._changed:
                await self._changed.wait_for(reached)
        except TimeoutError:
            return False
        return True

    async def tell(self) -> None:
        """Wake those who wait."""
        async with self._changed:
            self._changed.notify_all()

    # The service

    async def LeaseOrders(  # noqa: N802 - the contract's name
        self, request: pb.LeaseOrdersRequest, context: Context
    ) -> AsyncIterator[pb.LeaseOrdersResponse]:
        """Wait for an order, with heartbeats, for as long as the request says."""
        await self._authenticate(context)
        self.streams.append(request)
        await self.tell()
        wait = request.wait.ToTimedelta().total_seconds() if request.HasField("wait") else 30.0
        until = _now() + min(wait, 60.0)
        while True:
            heartbeat = pb.LeaseOrdersResponse()
            heartbeat.heartbeat.sent_at.GetCurrentTime()
            yield heartbeat
            left = until - _now()
            if await self.until(lambda: self._waiting() is not None, max(0.0, min(HEARTBEAT_SECONDS, left))):
                order = self._waiting()
                if order is not None:
                    yield self._hand_out(order, request)
                    await self.tell()
                    if order.broken_streams:
                        order.broken_streams -= 1
                        order.waits = order.renewed_at is None
                        await context.abort(grpc.StatusCode.UNAVAILABLE, "the connection broke")
                    return
            if _now() >= until:
                return

    def _waiting(self) -> Order | None:
        return next((order for order in self._orders.values() if order.waits), None)

    def _hand_out(self, order: Order, request: pb.LeaseOrdersRequest) -> pb.LeaseOrdersResponse:
        order.waits = False
        order.streams_before = len(self.streams)
        order.lease.lease_token = order.lease.lease_token or secrets.token_urlsafe(32)
        if not order.lease.account and request.accounts:
            order.lease.account = request.accounts[0]
        copy = pb.Lease()
        copy.CopyFrom(order.lease)
        order.story.leases.append(copy)
        order.story.handed_at.append(_now())
        self.current = order
        return pb.LeaseOrdersResponse(lease=copy)

    async def RenewLease(  # noqa: N802 - as above
        self, request: pb.RenewLeaseRequest, context: Context
    ) -> Any:
        """Acknowledge or extend."""

        def renewed(order: Order) -> pb.RenewLeaseResponse:
            order.renewed_at, order.waits = _now(), False
            age = Duration(seconds=int(_now() - order.story.handed_at[-1]) + 1)
            others = pb.OtherOrders() if request.with_other_orders else None
            ttl = order.lease.lease_ttl
            return pb.RenewLeaseResponse(task_id=request.task_id, lease_ttl=ttl, lease_age=age, other_orders=others)

        return await self._serve("RenewLease", request, context, renewed)

    async def ReportOrder(  # noqa: N802 - as above
        self, request: pb.ReportOrderRequest, context: Context
    ) -> Any:
        """Take a report."""
        return await self._serve(
            "ReportOrder", request, context, lambda _: pb.ReportOrderResponse(task_id=request.task_id, recorded=True)
        )

    async def RequestSubmitPermit(  # noqa: N802 - as above
        self, request: pb.RequestSubmitPermitRequest, context: Context
    ) -> Any:
        """Grant a permit; to a recovered order only with its verification."""

        def granted(order: Order) -> pb.RequestSubmitPermitResponse | int:
            verdict = request.verification
            proven = verdict.verdict == pb.Verification.VERDICT_NOT_ORDERED and verdict.window_fully_covered
            if order.renewed_at is None:
                return errors_pb2.ERROR_REASON_LEASE_NOT_ACKNOWLEDGED
            if order.lease.lease_count > 1 and not proven:
                return errors_pb2.ERROR_REASON_PERMIT_NOT_VERIFIED
            order.permitted_at = order.permitted_at or _now()
            left = max(0.0, order.permitted_at + order.permit_seconds - _now())
            answer = pb.RequestSubmitPermitResponse(task_id=request.task_id, valid_for=duration(left))
            answer.permitted_at.GetCurrentTime()
            return answer

        return await self._serve("RequestSubmitPermit", request, context, granted)

    async def ReclaimOrder(self, request: pb.ReclaimOrderRequest, context: Context) -> Any:  # noqa: N802 - as above
        """Refuse: no situation has a person who reclaims."""
        await self._authenticate(context)
        await self._refuse(context, errors_pb2.ERROR_REASON_TASK_NOT_FOUND)

    async def _serve(self, method: str, request: Any, context: Context, carry_out: Callable[[Order], Any]) -> Any:
        await self._authenticate(context)
        order = self._orders.get(request.task_id)
        if order is None:
            await self._refuse(context, errors_pb2.ERROR_REASON_TASK_NOT_FOUND)
            return None
        call = Call(_now(), method, request)
        order.story.events.append(call)
        bend = order.next_bend(method)
        if bend.first is not None:
            await bend.first(request)
        late = method == "ReportOrder" and order.is_lost(_now())
        reason = bend.reason or (LEASE_INVALID if late or not _is_known(order, request.lease_token) else 0)
        if method == "RenewLease" and reason == LEASE_INVALID:
            order.refused = True
        answer = None if reason else carry_out(order)
        if isinstance(answer, int):
            reason = answer
        await asyncio.sleep(bend.held)
        call.ended_at = _now()
        if bend.lost:
            await self.tell()
            await context.abort(next(_LOST_AS), "the answer was lost")
        call.outcome = Outcome.REFUSED if reason else Outcome.ANSWERED
        call.reason, call.recorded_late, call.answer = reason, late, answer
        await self.tell()
        if reason:
            await self._refuse(context, reason, recorded_late=late)
        return answer

    async def _authenticate(self, context: Context) -> None:
        if dict(context.invocation_metadata() or ()).get("authorization") != self._token:
            self.refused_tokens += 1
            await self._refuse(context, errors_pb2.ERROR_REASON_UNAUTHENTICATED)

    async def _refuse(self, context: Context, reason: int, *, recorded_late: bool = False) -> None:
        words = f"refused by the conformance kit, reason {reason}"
        detail = errors_pb2.ErrorDetail(message=words, recorded_late=recorded_late)
        detail.reason = cast(errors_pb2.ErrorReason.ValueType, reason)  # also one that no version of the contract has
        if reason == errors_pb2.ERROR_REASON_PERMIT_NOT_SETTLED:
            detail.retry_after.CopyFrom(duration(1))
        packed = Packed()
        packed.Pack(detail)
        code = _CODES[reason]
        status = Status(code=code.value[0], message=words, details=[packed])
        context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
        await context.abort(code, words)


def duration(seconds: float) -> Duration:
    """Return seconds as the contract takes them."""
    made = Duration()
    made.FromNanoseconds(int(seconds * 1e9))
    return made


def seconds(span: Duration) -> float:
    """Return the contract's time in seconds."""
    return span.ToNanoseconds() / 1e9


def _is_known(order: Order, token: str) -> bool:
    return any(lease.lease_token == token for lease in order.story.leases)


def _now() -> float:
    return asyncio.get_running_loop().time()
