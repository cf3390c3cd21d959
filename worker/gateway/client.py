"""The gateway over gRPC: outbound channel, keepalive, TLS, token, deadlines, and refusals as typed exceptions."""

import asyncio
import itertools
from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import grpc
from google.protobuf.message import Message
from grpc.aio import AioRpcError, Channel, Metadata
from ordergateway.v1 import order_leases_pb2 as pb
from ordergateway.v1 import orders_pb2
from ordergateway.v1.order_leases_pb2_grpc import OrderLeaseServiceStub

from common.channel_credentials import channel_credentials
from common.target import ONLY_ACCOUNT
from worker.gateway.answers import MAX_MESSAGES_OF_A_STREAM, check_lease, check_renewal, check_same, message_of
from worker.gateway.connectivity import Reach
from worker.gateway.port import GatewayError, InvalidAnswer, Refused, Unreachable
from worker.gateway.refusals import to_gateway_error
from worker.gateway.wire import to_duration
from worker.settings import WorkerSettings

if TYPE_CHECKING:  # the async stub exists for the type checker alone
    from ordergateway.v1.order_leases_pb2_grpc import OrderLeaseServiceAsyncStub

MAX_MESSAGE_BYTES = 4 * 1024 * 1024
CALL_SECONDS = 10.0
# The gateway sends a heartbeat at once and then every 10 s; a stream silent for longer than this is dead.
SILENCE_SECONDS = 25.0

# A dead or frozen peer is noticed within 15 s. The set works only together:
# https://github.com/grpc/grpc/blob/master/doc/keepalive.md
KEEPALIVE_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.ping_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
)
CHANNEL_OPTIONS: tuple[tuple[str, int], ...] = (
    *KEEPALIVE_OPTIONS,
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    # The order loop has a backoff of its own; the channel's must not make it wait much longer.
    ("grpc.initial_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 5_000),
    # The contract says which call may be repeated, and when; the channel must not repeat on its own account.
    ("grpc.enable_retries", 0),
    # What HTTP_PROXY names is nobody whom the settings know, and need not be shown a token.
    ("grpc.enable_http_proxy", 0),
)
_Answer = TypeVar("_Answer", bound=Message)


class _End:
    """The end of a stream; None is a message that could not be read."""


_END = _End()


def open_channel(settings: WorkerSettings, interceptors: Sequence[grpc.aio.ClientInterceptor] = ()) -> Channel:
    """Return the outbound channel that the settings describe. Nothing is sent before the first call.

    Raises SettingsError if a TLS file cannot be used.
    """
    target = settings.gateway
    if target is None:
        raise ValueError("no gateway is set")
    if not target.tls:
        return grpc.aio.insecure_channel(target.address, options=CHANNEL_OPTIONS, interceptors=interceptors)
    credentials = channel_credentials(
        settings.gateway_ca, settings.worker_tls_cert, settings.worker_tls_key, own="WORKER"
    )
    return grpc.aio.secure_channel(target.address, credentials, options=CHANNEL_OPTIONS, interceptors=interceptors)


class GatewayClient:
    """OrderLeases over a channel."""

    def __init__(
        self,
        channel: Channel,
        *,
        worker_id: str,
        session_id: str,
        journal_id: str,
        token: str | None,
        accounts: tuple[str, ...] = (ONLY_ACCOUNT,),
    ) -> None:
        """`accounts`: with which this worker orders, on each site; a lease of another one is no answer."""
        self._stub: OrderLeaseServiceAsyncStub = OrderLeaseServiceStub(channel)
        self._worker_id = worker_id
        self._session_id = session_id
        self._stream_numbers = itertools.count(1)
        self._journal_id = journal_id
        self._accounts = accounts
        self._metadata = Metadata(("authorization", f"Bearer {token}")) if token else Metadata()
        self._reach = Reach()

    async def lease(self, sites: Sequence[str], wait: float) -> pb.Lease | None:
        """See OrderLeases."""
        request = pb.LeaseOrdersRequest(
            worker_id=self._worker_id,
            session_id=self._session_id,
            journal_id=self._journal_id,
            sites=sites,
            wait=to_duration(wait),
            accounts=self._accounts,
            stream_number=next(self._stream_numbers),
        )
        stream = self._stub.LeaseOrders(request, metadata=self._metadata, timeout=wait + SILENCE_SECONDS)
        try:
            message = await first_lease("LeaseOrders", stream, self._reach.answered)
            return None if message is None else check_lease("LeaseOrders", message.lease, self._accounts, sites=sites)
        except AioRpcError as error:
            raise self._failed(error) from error
        except TimeoutError:
            self._reach.lost()
            raise Unreachable(f"the lease stream was silent for {SILENCE_SECONDS:.0f} s") from None
        finally:
            stream.cancel()

    async def renew(
        self, task_id: str, lease_token: str, *, seconds: float, with_other_orders: bool = False
    ) -> pb.RenewLeaseResponse:
        """See OrderLeases."""
        request = pb.RenewLeaseRequest(
            task_id=task_id,
            worker_id=self._worker_id,
            lease_token=lease_token,
            with_other_orders=with_other_orders,
        )
        answer = await self._call(
            "RenewLease", lambda: self._stub.RenewLease(request, metadata=self._metadata, timeout=seconds)
        )
        return check_renewal("RenewLease", answer, task_id)

    async def report(self, request: pb.ReportOrderRequest) -> pb.ReportOrderResponse:
        """See OrderLeases."""
        answer = await self._call(
            "ReportOrder", lambda: self._stub.ReportOrder(request, metadata=self._metadata, timeout=CALL_SECONDS)
        )
        check_same("ReportOrder", "task_id", answer.task_id, request.task_id)
        return answer

    async def request_permit(
        self,
        task_id: str,
        lease_token: str,
        *,
        attests_no_click_record: bool,
        verification: pb.Verification | None,
        terms: orders_pb2.Terms | None,
    ) -> pb.RequestSubmitPermitResponse:
        """See OrderLeases."""
        request = pb.RequestSubmitPermitRequest(
            task_id=task_id,
            worker_id=self._worker_id,
            lease_token=lease_token,
            journal_id=self._journal_id,
            attests_no_click_record=attests_no_click_record,
            verification=verification,
            terms=terms,
        )
        answer = await self._call(
            "RequestSubmitPermit",
            lambda: self._stub.RequestSubmitPermit(request, metadata=self._metadata, timeout=CALL_SECONDS),
        )
        check_same("RequestSubmitPermit", "task_id", answer.task_id, task_id)
        return answer

    async def reclaim(self, task_id: str, sites: Sequence[str], *, requested_by: str, reason: str) -> pb.Lease:
        """See OrderLeases."""
        request = pb.ReclaimOrderRequest(
            task_id=task_id,
            worker_id=self._worker_id,
            session_id=self._session_id,
            journal_id=self._journal_id,
            requested_by=requested_by,
            reason=reason,
            accounts=self._accounts,
            sites=sites,
        )
        answer = await self._call(
            "ReclaimOrder", lambda: self._stub.ReclaimOrder(request, metadata=self._metadata, timeout=CALL_SECONDS)
        )
        return check_lease("ReclaimOrder", answer.lease, self._accounts, task_id=task_id)

    async def probe(self) -> None:
        """See OrderLeases.

        It is a renewal of no task. The contract has no call that only asks whether a token is taken, and gRPC's health
        service is open to all, so it could not tell. The gateway judges the token first, then refuses the empty task_id
        before it looks at any task.
        """
        try:
            await self.renew("", "", seconds=CALL_SECONDS)
        except Refused as refusal:
            if refusal.is_credentials:
                raise

    async def _call(self, method: str, call: Callable[[], Awaitable[_Answer]]) -> _Answer:
        try:
            answer = message_of(method, await call())
        except AioRpcError as error:
            raise self._failed(error) from error
        self._reach.answered()
        return answer

    def _failed(self, error: AioRpcError) -> GatewayError:
        failure = to_gateway_error(error)
        if isinstance(failure, Refused) and not failure.is_credentials:
            self._reach.answered()
        else:
            self._reach.lost()
        return failure


async def first_lease(
    method: str, stream: AsyncIterable[_Answer], on_message: Callable[[], None] = lambda: None
) -> _Answer | None:
    """Return the first message of a stream that brings a lease; None if it ends without one.

    Raises TimeoutError if it is silent for longer than SILENCE_SECONDS, InvalidAnswer, AioRpcError.
    """
    messages = aiter(stream)
    for _ in range(MAX_MESSAGES_OF_A_STREAM):
        async with asyncio.timeout(SILENCE_SECONDS):
            message = await anext(messages, _END)
        if isinstance(message, _End):
            return None
        on_message()
        if message_of(method, message).HasField("lease"):
            return message
    raise InvalidAnswer(method, f"the stream has brought more than {MAX_MESSAGES_OF_A_STREAM} messages")
