"""What a gRPC call answers, bounded: an answer that its client does not take stays in memory, twice, until it does.

A client that opens no window but answers pings could otherwise let any number of answers lie, for ever.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeAlias

import grpc
from google.protobuf.message import Message

from gateway.api.grpc.connections import cut_off
from gateway.api.grpc.incoming import Context, Places, too_many
from gateway.domain.refusals import Refusal, RefusedError

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

UNREAD_SECONDS: Final = 30.0
"""How long a client may leave an answer; then its connection is cut off, as over HTTP."""

PATIENCE_SECONDS: Final = 5.0
"""The same while others wait for the room that the answer takes."""

MAX_BYTES: Final = 48 * 1024 * 1024
"""How many bytes of answers may lie untaken in all."""

MAX_BYTES_OF_ONE: Final = MAX_BYTES // 2
"""How many of them may be of one token."""

MAX_WAITING: Final = 32
"""How many answers may wait for room; further ones are refused, as those that wait are held too."""

WAIT_SECONDS: Final = 10.0
"""How long an answer may wait for room."""

_SMALLEST: Final = 4 * 1024
"""What an answer counts at least, for what a call takes itself."""

caller: ContextVar[str] = ContextVar("caller", default="")
"""The name of who makes the call being served."""

_log = logging.getLogger(__name__)


class Outgoing:
    """Makes handlers whose answers are bounded. `port` tells where the gateway listens, `abort` tells a refusal."""

    def __init__(self, port: Callable[[], int], abort: Callable[[Context, Refusal], Any]) -> None:
        self._port = port
        self._abort = abort
        self._unread: dict[_Unread, None] = {}
        self._bytes: Counter[str] = Counter()
        self._freed = asyncio.Event()
        self._waiting = Places(MAX_WAITING, "waiting to be answered")

    def bounded(self, handler: "Handler") -> "Handler":
        """Return a handler that answers what `handler` answers, one message or many."""
        serve = self._many(handler.stream_stream) if handler.stream_unary is None else self._one(handler.stream_unary)
        return grpc.stream_stream_rpc_method_handler(serve, None, None)

    def _one(self, answer: Any) -> Any:
        async def serve(requests: object, context: Context) -> AsyncIterator[bytes]:
            data = _encoded(await answer(requests, context))
            try:
                async with self._room(context, len(data)):
                    yield data
            except RefusedError as error:
                await self._abort(context, error.refusal)

        return serve

    def _many(self, answer: Any) -> Any:
        async def serve(requests: object, context: Context) -> AsyncIterator[bytes]:
            try:
                async with aclosing(answer(requests, context)) as messages:
                    async for message in messages:
                        data = _encoded(message)
                        del message
                        async with self._room(context, len(data)):
                            yield data
            except RefusedError as error:
                await self._abort(context, error.refusal)

        return serve

    @asynccontextmanager
    async def _room(self, context: Context, size: int) -> AsyncIterator[None]:
        """Count an answer until the client has taken it. Raises RefusedError TOO_MANY."""
        owner, size = caller.get(), max(size, _SMALLEST)
        if not self._fits(owner, size):
            await self._wait(owner, size)
        unread = _Unread(owner, lambda: self._cut_off(context.peer()))
        self._unread[unread] = None
        self._bytes[owner] += size
        try:
            yield
        finally:
            unread.taken()
            del self._unread[unread]
            self._bytes[owner] -= size
            self._freed.set()

    def _fits(self, owner: str, size: int) -> bool:
        its_own = self._bytes[owner]
        return its_own == 0 or (its_own + size <= MAX_BYTES_OF_ONE and self._bytes.total() + size <= MAX_BYTES)

    async def _wait(self, owner: str, size: int) -> None:
        with self._waiting.place():
            try:
                async with asyncio.timeout(WAIT_SECONDS):
                    while not self._fits(owner, size):
                        self._hurry_the_oldest(owner if self._bytes[owner] + size > MAX_BYTES_OF_ONE else None)
                        self._freed.clear()
                        await self._freed.wait()
            except TimeoutError:
                raise too_many("too many answers are not taken by those who asked for them; come back later") from None

    def _hurry_the_oldest(self, owner: str | None) -> None:
        for unread in self._unread:
            if not unread.hurried and owner in (None, unread.owner):
                unread.hurry()
                return

    def _cut_off(self, peer: str) -> None:
        _log.warning("a client does not take its answers; its connection is cut off")
        asyncio.get_running_loop().run_in_executor(None, cut_off, peer, self._port())


class _Unread:
    """An answer on its way, and when its connection is cut off."""

    def __init__(self, owner: str, cut: Callable[[], None]) -> None:
        self.owner = owner
        self.hurried = False
        self._cut = cut
        self._loop = asyncio.get_running_loop()
        self._begun = self._loop.time()
        self._due = self._loop.call_later(UNREAD_SECONDS, cut)

    def hurry(self) -> None:
        """Let it be for a short time only."""
        self.hurried = True
        self._due.cancel()
        self._due = self._loop.call_at(self._begun + PATIENCE_SECONDS, self._cut)

    def taken(self) -> None:
        """Let its connection be."""
        self._due.cancel()


def _encoded(message: Message | bytes) -> bytes:
    return message if isinstance(message, bytes) else message.SerializeToString()
