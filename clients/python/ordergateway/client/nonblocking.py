"""The client of asyncio: what `Client` is, awaited."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

import grpc
from google.protobuf.message import Message

from ordergateway.client.attempts import Attempts
from ordergateway.client.blocking import CALL_SECONDS, SILENCE_SECONDS
from ordergateway.client.channels import Tls, aio_channel, target
from ordergateway.client.clock import SystemTime, Time
from ordergateway.client.orders import Changes, OrderFields, batches, counted_on, listing, order
from ordergateway.v1 import orders_pb2 as pb
from ordergateway.v1.orders_pb2_grpc import OrderServiceStub

if TYPE_CHECKING:  # the async stub exists for the type checker alone
    from ordergateway.v1.orders_pb2_grpc import OrderServiceAsyncStub

T = TypeVar("T", bound=Message)


class AsyncClient:
    """Orders of one gateway, as an upstream sees them. The methods are those of `Client`, and raise the same."""

    def __init__(
        self,
        where: str | grpc.aio.Channel,
        token: str | None = None,
        *,
        timeout: float = CALL_SECONDS,
        tls: Tls | None = None,
        plain_text: bool = False,
        repeat: bool = True,
        time: Time | None = None,
    ) -> None:
        """See Client. To be made where a loop runs."""
        if isinstance(where, str):
            where = aio_channel(target(where, shows_token=bool(token), plain_text=plain_text), tls)
        self._channel = where
        self._orders: OrderServiceAsyncStub = OrderServiceStub(where)
        self._metadata = grpc.aio.Metadata(*((("authorization", f"Bearer {token}"),) if token else ()))
        self._timeout = timeout
        self._repeat = repeat
        self._time = time or SystemTime()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the channel. Running calls end."""
        await self._channel.close()

    async def submit(
        self,
        task_id: str,
        site: str,
        intent: Mapping[str, Any] | str,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - bounds all repetitions, and the gateway is told
        **fields: Unpack[OrderFields],
    ) -> pb.SubmitOrderResponse:
        """See Client.submit."""
        if not task_id:
            raise ValueError("a task_id of your own is what makes it safe to repeat a submission")
        return await self._call(self._orders.SubmitOrder, order(task_id, site, intent, **fields), timeout)

    async def submit_many(
        self,
        orders: Iterable[pb.SubmitOrderRequest],
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - as submit
    ) -> AsyncIterator[pb.SubmitOrdersResult]:
        """See Client.submit_many."""
        done = 0
        for batch in batches(orders):
            answer = await self._call(self._orders.SubmitOrders, batch, timeout)
            for result in counted_on(answer.results, done):
                yield result
            done += len(batch.orders)

    async def get(self, task_id: str, *, timeout: float | None = None) -> pb.Task:  # noqa: ASYNC109 - as submit
        """See Client.get."""
        return (await self._call(self._orders.GetOrder, pb.GetOrderRequest(task_id=task_id), timeout)).task

    async def list(
        self,
        tasks: pb.TaskFilter | None = None,
        *,
        page_size: int = 0,
        timeout: float | None = None,  # noqa: ASYNC109 - as submit
    ) -> AsyncIterator[pb.Task]:
        """See Client.list."""
        request = listing(tasks, page_size)
        while True:
            answer = await self._call(self._orders.ListOrders, request, timeout)
            for task in answer.tasks:
                yield task
            if answer.next_page_token in ("", request.page_token):
                return
            request.page_token = answer.next_page_token

    async def cancel(
        self,
        task_id: str,
        reason: str,
        *,
        while_leased: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 - as submit
    ) -> pb.CancelOrderResponse:
        """See Client.cancel."""
        request = pb.CancelOrderRequest(task_id=task_id, reason=reason, while_leased=while_leased)
        return await self._call(self._orders.CancelOrder, request, timeout)

    async def watch(
        self,
        task_id: str,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - as submit
    ) -> AsyncIterator[pb.Task]:
        """See Client.watch."""
        attempts = self._attempts(timeout)
        changes = Changes()
        while True:
            call = self._orders.WatchOrder(
                pb.WatchOrderRequest(task_id=task_id), metadata=self._metadata, timeout=attempts.left
            )
            try:
                async for message in _until_silent(call):
                    attempts.answered()
                    if (task := changes.take(message)) is not None:
                        yield task
                if changes.have_ended:
                    return
                pause = attempts.pause_after_an_end()
            except grpc.aio.AioRpcError as error:
                pause = attempts.pause_after(error)
            finally:
                call.cancel()
            await asyncio.sleep(pause)

    async def _call(self, method: Callable[..., Awaitable[T]], request: Message, seconds: float | None) -> T:
        attempts = self._attempts(self._timeout if seconds is None else seconds)
        while True:
            try:
                return await method(request, metadata=self._metadata, timeout=attempts.timeout)
            except grpc.aio.AioRpcError as error:
                pause = attempts.pause_after(error)
            await asyncio.sleep(pause)

    def _attempts(self, seconds: float | None) -> Attempts:
        return Attempts(self._time.now, self._time.random, seconds, repeat=self._repeat)


async def _until_silent(call: Any) -> AsyncIterator[pb.WatchOrderResponse]:
    """Yield a stream's messages; one that is silent for too long ends here."""
    messages = aiter(call)
    while True:
        try:
            async with asyncio.timeout(SILENCE_SECONDS):
                message = await anext(messages, None)
        except TimeoutError:
            return
        if message is None:
            return
        yield message
