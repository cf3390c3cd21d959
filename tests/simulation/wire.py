"""gRPC without sockets: the worker's real client and the gateway's real guard with a simulated network between them."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import grpc
from google.protobuf.message import Message
from grpc.aio import AioRpcError, Metadata

from tests.simulation.loop import PROCESS, Process
from tests.simulation.network import Link

DETECTION = (0.05, 25.0)
"""Seconds after which a server learns that its client has gone."""


class Aborted(Exception):  # noqa: N818 -- what grpc calls it
    """A call ended with a status by the server."""

    def __init__(self, code: grpc.StatusCode, words: str, trailing: Sequence[tuple[str, Any]]) -> None:
        super().__init__(words)
        self.code, self.words, self.trailing = code, words, trailing


class ServerContext:
    """The part of grpc's context that the guard uses."""

    def __init__(self, metadata: Sequence[tuple[str, Any]], request: bytes) -> None:
        self._metadata = metadata
        self._requests = [request]
        self._callbacks: list[Callable[[Any], object]] = []

    def peer(self) -> str:
        return f"sim:{id(self)}"

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        self._callbacks.append(callback)

    def done(self) -> None:
        """As grpc when the call has ended."""
        for callback in self._callbacks:
            callback(self)

    def invocation_metadata(self) -> Sequence[tuple[str, Any]]:
        return self._metadata

    async def read(self) -> Any:
        return self._requests.pop() if self._requests else grpc.aio.EOF

    async def abort(self, code: grpc.StatusCode, details: str = "", trailing_metadata: Any = ()) -> None:
        raise Aborted(code, details, trailing_metadata)


def rpc_error(code: grpc.StatusCode, words: str, trailing: Sequence[tuple[str, Any]] = ()) -> AioRpcError:
    return AioRpcError(code, Metadata(), Metadata(*trailing), words)


def unavailable(words: str) -> AioRpcError:
    return rpc_error(grpc.StatusCode.UNAVAILABLE, words)


class Server:
    """The gateway's side of the wire: its process while it is up, and the handlers it serves."""

    def __init__(self) -> None:
        self.process: Process | None = None
        self.handlers: dict[str, Any] = {}

    @property
    def is_up(self) -> bool:
        return self.process is not None and self.process.alive and bool(self.handlers)

    def pick(self) -> "Server":
        """Where the next call goes."""
        return self


async def nothing_happens(_name: str) -> None:
    """At a point where no power fails."""


class CallWatch:
    """Sees a client's calls: what it sends, what it is answered (`sent`: when it had asked), and what of an answer of
    the gateway never reached it.
    """

    def requested(self, path: str, request: Any) -> None: ...
    def answered(self, path: str, request: Any, answer: Any, sent: float) -> None: ...
    def refused(self, path: str, request: Any) -> None: ...
    def lost(self, path: str) -> None: ...
    def streamed(self, path: str, message: Any) -> None: ...
    def served(self, stream: "StreamCall", data: bytes) -> None: ...


class Channel:
    """A channel of grpc.aio over a link, as far as stubs use it. At a `point` the caller's power may fail: when a
    request is on its way, and when an answer has come.
    """

    def __init__(
        self,
        link: Link,
        server: Server,
        chance: random.Random,
        watch: CallWatch | None = None,
        point: Callable[[str], Awaitable[None]] = nothing_happens,
    ) -> None:
        self._point = point
        self._link = link
        self._server = server
        self.served_by = server
        """Where the last call went."""
        self.stream: StreamCall | None = None
        """The last one that was opened."""
        self._chance = chance
        self.watch = watch or CallWatch()

    def unary_unary(self, path: str, request_serializer: Any, response_deserializer: Any, **_: Any) -> Any:
        async def call(request: Message, *, metadata: Any = None, timeout: float | None = None) -> Any:  # noqa: ASYNC109
            self.watch.requested(path, request)
            sent = self._link.loop.time()
            try:
                data = await self._unary(path, request_serializer(request), metadata, timeout)
            except AioRpcError as error:
                if error.trailing_metadata() and error.code() is not grpc.StatusCode.UNAVAILABLE:
                    self.watch.refused(path, request)
                raise
            answer = response_deserializer(data)
            self.watch.answered(path, request, answer, sent)
            return answer

        return call

    def _detection(self) -> float:
        return self._chance.uniform(*DETECTION) if self._chance.random() < 0.3 else 0.01

    def unary_stream(self, path: str, request_serializer: Any, response_deserializer: Any, **_: Any) -> Any:
        def call(request: Message, *, metadata: Any = None, timeout: float | None = None) -> "StreamCall":
            del timeout  # the client bounds each silence by itself
            self.watch.requested(path, request)

            def deserialize(data: bytes) -> Any:
                message = response_deserializer(data)
                self.watch.streamed(path, message)
                return message

            self.served_by = self._server.pick()
            self.stream = StreamCall(
                self._link,
                self.served_by,
                self._chance,
                path,
                request_serializer(request),
                metadata,
                deserialize,
                self._point,
                self.watch,
            )
            return self.stream

        return call

    async def _unary(self, path: str, data: bytes, metadata: Any, seconds: float | None) -> bytes:
        answer = self._link.loop.create_future()
        served: list[asyncio.Task[Any]] = []
        granted: list[bytes] = []

        server = self.served_by = self._server.pick()

        def serve(back: Callable[[Any], None]) -> None:
            if not server.is_up or server.process is None:
                back(unavailable("connection refused"))
                return
            dead = unavailable("the connection was closed")
            self._link.break_on_death(server.process, lambda: None if answer.done() else answer.set_exception(dead))
            served.append(server.process.spawn(_serve(server.handlers[path], data, metadata, granted, back)))
            if self._link.weather.reset and self._chance.random() < self._link.weather.reset / 4:
                self._link.later(self._chance.uniform(0.0, 1.0), reset)

        def reset() -> None:
            for task in served:
                task.cancel()
            if not answer.done():
                answer.set_exception(unavailable("the connection was reset"))

        client = PROCESS.get()
        if client is not None:  # its end closes its connections
            client.on_death.append(
                lambda: self._link.later(self._detection(), lambda: [task.cancel() for task in served] and None)
            )
        self._link.roundtrip(serve, answer, unavailable, path.rpartition("/")[2], twice=True)
        await self._point(f"gateway: {path} sent")
        try:
            async with asyncio.timeout(seconds):
                result: bytes = await answer
        except TimeoutError:
            raise rpc_error(grpc.StatusCode.DEADLINE_EXCEEDED, "deadline exceeded") from None
        finally:
            if granted and (not answer.done() or answer.cancelled() or answer.exception() is not None):
                self.watch.lost(path)
            if not answer.done() or answer.cancelled():
                self._link.later(self._chance.uniform(*DETECTION), lambda: [task.cancel() for task in served] and None)
        await self._point(f"gateway: {path} answered")
        return result


async def _serve(handler: Any, data: bytes, metadata: Any, granted: list[bytes], back: Callable[[Any], None]) -> None:
    context = ServerContext(tuple(metadata or ()), data)
    try:
        answer = await handler.stream_unary(None, context)
        granted.append(data)
        back(handler.response_serializer(answer))
    except Aborted as aborted:
        back(rpc_error(aborted.code, aborted.words, aborted.trailing))
    finally:
        context.done()


class StreamCall:
    """A server stream: messages in order; a lost one breaks it."""

    def __init__(
        self,
        link: Link,
        server: Server,
        chance: random.Random,
        path: str,
        data: bytes,
        metadata: Any,
        deserialize: Callable[[bytes], Any],
        point: Callable[[str], Awaitable[None]],
        watch: CallWatch,
    ) -> None:
        self._link = link
        self.served_by = server
        self.is_over = False
        """For its client."""
        self._watch = watch
        self._point = point
        self._chance = chance
        self._deserialize = deserialize
        self._arrived: asyncio.Queue[Any] = asyncio.Queue()
        self._next_at = 0.0
        self._broken = False
        self._serving: asyncio.Task[Any] | None = None

        def arrive() -> None:
            if self._broken:
                return
            if not server.is_up or server.process is None:
                self._break("connection refused")
                return
            link.break_on_death(server.process, lambda: self._break("the connection was closed"))
            self._serving = server.process.spawn(self._serve(server.handlers[path], data, metadata))
            if link.weather.reset and chance.random() < link.weather.reset:
                link.later(chance.uniform(0.0, 1.0), lambda: self._break("the connection was reset"))

        client = PROCESS.get()
        if client is not None:
            client.on_death.append(lambda: self._break("its client has lost its power"))
        link.carry("request", arrive, lambda: self._break("the request was lost"))

    async def _serve(self, handler: Any, data: bytes, metadata: Any) -> None:
        context = ServerContext(tuple(metadata or ()), data)
        try:
            async for message in handler.stream_stream(None, context):
                told = handler.response_serializer(message)
                self._watch.served(self, told)
                self._send(told)
            self._send(None)
        except Aborted as aborted:
            self._send(rpc_error(aborted.code, aborted.words, aborted.trailing))
        finally:
            context.done()

    def _send(self, message: Any) -> None:
        self._next_at = max(self._link.loop.time(), self._next_at) + 0.0001

        def lost() -> None:
            self._break("the stream was broken")

        def arrive() -> None:
            if not self._broken:
                self._arrived.put_nowait(message)

        self._next_at = max(self._next_at, self._link.loop.time() + self._link.delay())
        self._link.carry("answer", arrive, lost, after=self._next_at)

    def _break(self, words: str) -> None:
        if not self._broken:
            self._broken = self.is_over = True
            self._arrived.put_nowait(unavailable(words))
            self._tell_server()

    def _tell_server(self) -> None:
        self._link.later(
            self._chance.uniform(*DETECTION) if self._chance.random() < 0.3 else 0.01,
            lambda: self._serving and self._serving.cancel() and None,
        )

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._messages()

    async def _messages(self) -> AsyncIterator[Any]:
        while True:
            message = await self._arrived.get()
            await self._point("gateway: a message of a stream")
            if message is None:
                self.is_over = True
                return
            if isinstance(message, Exception):
                raise message
            yield self._deserialize(message)

    def cancel(self) -> None:
        if not self._broken:
            self._broken = self.is_over = True
            self._tell_server()
