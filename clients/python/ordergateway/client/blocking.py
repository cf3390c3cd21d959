"""The client that blocks. It may be shared by threads."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Self, TypeVar, Unpack, cast

import grpc
from google.protobuf.message import Message

from ordergateway.client.attempts import Attempts
from ordergateway.client.channels import Tls, blocking_channel, target
from ordergateway.client.clock import SystemTime, Time
from ordergateway.client.details import Failure
from ordergateway.client.orders import Changes, OrderFields, batches, counted_on, listing, order
from ordergateway.v1 import orders_pb2 as pb
from ordergateway.v1.orders_pb2_grpc import OrderServiceStub

T = TypeVar("T", bound=Message)

CALL_SECONDS: Final = 60.0
SILENCE_SECONDS: Final = 25.0
"""A watch that brings not even a heartbeat for so long is dead; one comes every 10 s."""


class Client:
    """Orders of one gateway, as an upstream sees them.

    Every method raises RefusedError, by its reason, where the gateway refuses; and DeadlineExceededError where no
    answer came within `timeout` seconds, all repetitions together. Until then lost answers are nobody's concern.
    UnansweredError comes earlier where something else than a gateway seems to be at the address.
    """

    def __init__(
        self,
        where: str | grpc.Channel,
        token: str | None = None,
        *,
        timeout: float = CALL_SECONDS,
        tls: Tls | None = None,
        plain_text: bool = False,
        repeat: bool = True,
        time: Time | None = None,
    ) -> None:
        """`where`: `grpc://host:port`, `grpcs://host:port` for TLS, or a channel of your own.

        `timeout`: seconds for a call that names none. `plain_text`: let the token travel unencrypted to another
        machine. `repeat` False: a call is made once, for who waits at a terminal; a watch that was answered goes on all
        the same.
        Raises ValueError for an address that is none.
        """
        if isinstance(where, str):
            where = blocking_channel(target(where, shows_token=bool(token), plain_text=plain_text), tls)
        self._channel = where
        self._orders = OrderServiceStub(where)
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        self._timeout = timeout
        self._repeat = repeat
        self._time = time or SystemTime()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the channel. Running calls end."""
        self._channel.close()

    def submit(
        self,
        task_id: str,
        site: str,
        intent: Mapping[str, Any] | str,
        *,
        timeout: float | None = None,
        **fields: Unpack[OrderFields],
    ) -> pb.SubmitOrderResponse:
        """File an order under your own task_id; see `order` for the values. The task is on disk when this returns.

        The same task_id again changes nothing and answers `created=False`: one task_id is one order, for ever.
        """
        if not task_id:
            raise ValueError("a task_id of your own is what makes it safe to repeat a submission")
        return self._call(self._orders.SubmitOrder, order(task_id, site, intent, **fields), timeout)

    def submit_many(
        self, orders: Iterable[pb.SubmitOrderRequest], *, timeout: float | None = None
    ) -> Iterator[pb.SubmitOrdersResult]:
        """File many orders, which `order` makes, and yield in their order what became of each: filed, or refused.

        They go in batches of what the gateway takes at once, each with its own `timeout`, as the results are asked for:
        nothing is sent before. A refusal stops no other order. After an exception the same orders may be sent again.
        """
        done = 0
        for batch in batches(orders):
            answer = self._call(self._orders.SubmitOrders, batch, timeout)
            yield from counted_on(answer.results, done)
            done += len(batch.orders)

    def get(self, task_id: str, *, timeout: float | None = None) -> pb.Task:
        """Return a task with its reports. Raises NotFoundError."""
        return self._call(self._orders.GetOrder, pb.GetOrderRequest(task_id=task_id), timeout).task

    def list(
        self, tasks: pb.TaskFilter | None = None, *, page_size: int = 0, timeout: float | None = None
    ) -> Iterator[pb.Task]:
        """Yield all tasks that a filter names, page by page as they are asked for, newest first unless it says so.

        `timeout`: seconds for each page.
        """
        request = listing(tasks, page_size)
        while True:
            answer = self._call(self._orders.ListOrders, request, timeout)
            yield from answer.tasks
            if answer.next_page_token in ("", request.page_token):
                return
            request.page_token = answer.next_page_token

    def cancel(
        self, task_id: str, reason: str, *, while_leased: bool = False, timeout: float | None = None
    ) -> pb.CancelOrderResponse:
        """Withdraw a task that no worker has taken.

        `while_leased`: request the end of one that a worker has in hand, too. `reason`: for the history. Raises
        NotFoundError, StatusConflictError, CancelTooLateError.
        """
        request = pb.CancelOrderRequest(task_id=task_id, reason=reason, while_leased=while_leased)
        return self._call(self._orders.CancelOrder, request, timeout)

    def watch(self, task_id: str, *, timeout: float | None = None) -> Iterator[pb.Task]:
        """Yield the task as it is, then again after each change, each once, until it has ended.

        A connection that is lost is opened again. `timeout`: seconds for all of it; None: as long as the order takes.
        """
        attempts = self._attempts(timeout)
        changes = Changes()
        while True:
            call = self._orders.WatchOrder(
                pb.WatchOrderRequest(task_id=task_id), metadata=self._metadata, timeout=attempts.left
            )
            try:
                for message in _until_silent(call):
                    attempts.answered()
                    if (task := changes.take(message)) is not None:
                        yield task
                if changes.have_ended:
                    return
                pause = attempts.pause_after_an_end()
            except grpc.RpcError as error:
                pause = attempts.pause_after(cast(Failure, error))
            finally:
                call.cancel()
            self._time.sleep(pause)

    def _call(self, method: Callable[..., T], request: Message, timeout: float | None) -> T:
        attempts = self._attempts(self._timeout if timeout is None else timeout)
        while True:
            try:
                return method(request, metadata=self._metadata, timeout=attempts.timeout)
            except grpc.RpcError as error:
                pause = attempts.pause_after(cast(Failure, error))
            self._time.sleep(pause)

    def _attempts(self, seconds: float | None) -> Attempts:
        return Attempts(self._time.now, self._time.random, seconds, repeat=self._repeat)


def _until_silent(call: Any) -> Iterator[pb.WatchOrderResponse]:
    """Yield a stream's messages; one that is silent for too long is cancelled, and so ends as any lost one."""
    while True:
        silent = threading.Timer(SILENCE_SECONDS, call.cancel)
        silent.daemon = True
        silent.start()
        try:
            message = next(call, None)
        finally:
            silent.cancel()
        if message is None:
            return
        yield message
