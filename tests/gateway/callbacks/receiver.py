"""A receiver of callbacks on a real socket, in the test's own loop, which behaves as a test wants."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Received:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


@dataclass
class Receiver:
    """What came in, and what to do about it.

    `answer`: a status; None closes the connection without a word, after everything was read. While `hangs` is set,
    nothing is answered at all. `endless`: the answer's body never ends. `informs`: it is preceded by informational
    answers (1xx) without an end. `came` is set by each request,
    `cut_off` when the client has gone before the end.
    """

    answer: int | None = 204
    location: str = ""
    hangs: bool = False
    endless: bool = False
    informs: bool = False
    received: list[Received] = field(default_factory=list)
    came: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0
    cut_off: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/orders?key=open-sesame"

    @property
    def ids(self) -> list[str]:
        return [request.id for request in self.received]

    async def comes(self, count: int) -> None:
        """Wait until so many requests have come in."""
        async with asyncio.timeout(60):
            while len(self.received) < count:
                await self.came.wait()
                self.came.clear()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            lines = head.split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:] if line)}
            body = await reader.readexactly(int(headers["content-length"]))
            self.received.append(Received(lines[0].split()[1], headers, body))
            self.came.set()
            while self.informs:
                writer.write(b"HTTP/1.1 103 Early\r\n\r\n" * 3_000)
                await writer.drain()
            if self.hangs:
                await reader.read()
            elif self.answer is not None:
                location = f"location: {self.location}\r\n" if self.location else ""
                length = "transfer-encoding: chunked" if self.endless else "content-length: 0"
                writer.write(f"HTTP/1.1 {self.answer} So\r\n{location}{length}\r\n\r\n".encode())
                while self.endless:
                    writer.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
                    await writer.drain()
                await writer.drain()
        if self.endless or self.informs:
            self.cut_off.set()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


@asynccontextmanager
async def receiving(receiver: Receiver, *, tls: ssl.SSLContext | None = None, port: int = 0) -> AsyncIterator[Receiver]:
    """Serve a receiver; on the way out every connection is closed."""
    running: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        task.add_done_callback(_forget(running))
        with suppress(asyncio.CancelledError):
            await receiver.serve(reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        for task in list(running):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await server.wait_closed()


def _forget(running: set[asyncio.Task[Any]]) -> Callable[[asyncio.Task[Any]], None]:
    return running.discard


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something that gives no signal holds."""
    async with asyncio.timeout(60):
        while not await holds():  # noqa: ASYNC110 - what is waited for is another process's, or a database's
            await asyncio.sleep(0.01)
