"""A channel without a wire and a time without a clock (grpcio-testing), on which a test plays the gateway."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import grpc
import grpc_testing
from google.protobuf.any_pb2 import Any as Packed
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status
from ordergateway.client import Client
from ordergateway.v1 import errors_pb2, orders_pb2

T = TypeVar("T")
SERVICE = orders_pb2.DESCRIPTOR.services_by_name["OrderService"]
KEY = "grpc-status-details-bin"


def detail(reason: str, retry_after: float | None = None, **fields: Any) -> tuple[tuple[str, bytes], ...]:
    """The trailing metadata of a refusal."""
    if retry_after is not None:
        fields["retry_after"] = Duration(nanos=0, seconds=int(retry_after))
    told = errors_pb2.ErrorDetail(reason=f"ERROR_REASON_{reason}", message=f"refused: {reason}", **fields)
    packed = Packed()
    packed.Pack(told)
    return ((KEY, Status(code=9, details=[packed]).SerializeToString()),)


class FakeGateway:
    """The other end of a client's channel. `pauses`: how long the client has slept, in seconds."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._time = grpc_testing.strict_fake_time(1_000.0)
        self._channel = grpc_testing.channel([SERVICE], self._time)
        self._threads = threads
        self.pauses: list[float] = []
        self.client = Client(self._channel, "a-token", timeout=60, time=self)
        self.once = Client(self._channel, "a-token", timeout=60, time=self, repeat=False)

    def now(self) -> float:
        return self._time.time()

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self._time.sleep_for(seconds)

    def random(self) -> float:
        return 1.0

    def begin(self, work: Callable[[], T]) -> "Future[T]":
        """Let a caller make its call, in a thread of its own."""
        return self._threads.submit(work)

    def take(self, method: str) -> tuple[Any, Any]:
        """The next request of a unary method, and its call, which is to be ended."""
        metadata, request, call = self._channel.take_unary_unary(SERVICE.methods_by_name[method])
        assert ("authorization", "Bearer a-token") in tuple(metadata)
        return request, call

    def answer(self, method: str, message: Message) -> Any:
        request, call = self.take(method)
        call.terminate(message, (), grpc.StatusCode.OK, "")
        return request

    def fail(self, method: str, code: grpc.StatusCode, metadata: Any = ()) -> Any:
        request, call = self.take(method)
        call.terminate(None, metadata, code, "it failed")
        return request

    def take_watch(self) -> Any:
        _, _, call = self._channel.take_unary_stream(SERVICE.methods_by_name["WatchOrder"])
        return call


@contextmanager
def fake_gateway() -> Iterator[FakeGateway]:
    before = {*threading.enumerate()}
    with ThreadPoolExecutor(2) as threads:
        yield FakeGateway(threads)
    timers = [each for each in {*threading.enumerate()} - before if isinstance(each, threading.Timer)]
    assert all(each.finished.is_set() for each in timers), "a timer was left running"
