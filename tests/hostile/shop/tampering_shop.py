"""The sandbox shop on a real socket, and between it and the worker somebody who changes what the shop answers.

A tamper is a function from the shop's answer to what is sent instead: an Answer, or the bytes of the whole answer, a
piece at a time. It is armed for a method and a path, and stays armed.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace

import httpx

from sandbox_shop.control_client import ShopControl
from sandbox_shop.shop import ShopSettings
from tests.worker.running_shop import RunningShop, running_shop

MAX_REQUEST = 1024 * 1024


@dataclass(frozen=True)
class Answer:
    """What the shop answers to one request."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def edit(self, old: str, new: str) -> "Answer":
        """The page with a part of it replaced, which must be there."""
        html = self.body.decode()
        assert old in html, f"the page no longer holds {old!r}"
        return replace(self, body=html.replace(old, new).encode())

    def with_header(self, name: str, value: str) -> "Answer":
        """One header in place of all others of its name."""
        kept = tuple(header for header in self.headers if header[0].lower() != name.lower())
        return replace(self, headers=(*kept, (name, value)))

    def raw(self) -> bytes:
        """As it goes over the wire; the connection ends with it."""
        lines = [f"HTTP/1.1 {self.status} Tampered", *(f"{name}: {value}" for name, value in self.headers)]
        framed = any(name.lower() in ("content-length", "transfer-encoding") for name, _ in self.headers)
        lines += [] if framed else [f"content-length: {len(self.body)}"]
        return "\r\n".join([*lines, "connection: close", "", ""]).encode() + self.body


Tamper = Callable[[Answer], Answer | AsyncIterator[bytes]]


@dataclass
class TamperingShop:
    """`url` is where the worker goes; `behind` is the honest shop; `seen` holds method and path of every request."""

    url: str
    behind: RunningShop
    tampers: dict[tuple[str, str], Tamper] = field(default_factory=dict)
    seen: list[tuple[str, str]] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def control(self) -> ShopControl:
        """The honest shop's."""
        return self.behind.control

    def item_url(self, code: str) -> str:
        return self.url + self.behind.shop.products[code].path

    def arm(self, method: str, path: str, tamper: Tamper) -> None:
        self.tampers[method, path] = tamper

    async def asked(self, method: str, path: str, times: int = 1, seconds: float = 20) -> None:
        """Returns once that many such requests have come in."""
        async with asyncio.timeout(seconds), self.changed:
            await self.changed.wait_for(lambda: self.seen.count((method, path)) >= times)


@asynccontextmanager
async def tampering_shop(settings: ShopSettings | None = None) -> AsyncIterator[TamperingShop]:
    """Serves until the block ends."""
    async with (
        running_shop(settings) as behind,
        httpx.AsyncClient(base_url=behind.url, trust_env=False, timeout=60) as honest,
    ):
        tasks: set[asyncio.Task[None]] = set()

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            try:
                with suppress(ConnectionError, asyncio.IncompleteReadError):
                    await _serve(shop, honest, reader, writer)
            finally:
                writer.close()

        server = await asyncio.start_server(accept, "127.0.0.1", 0, limit=MAX_REQUEST)
        shop = TamperingShop(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", behind)
        try:
            yield shop
        finally:
            server.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _serve(
    shop: TamperingShop, honest: httpx.AsyncClient, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """One request of one connection: nothing here is kept alive."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    headers.pop("connection", None)
    response = await honest.request(method, target, headers=headers, content=body)
    kept = tuple((name, value) for name, value in response.headers.multi_items() if name.lower() in _KEPT)
    answer: Answer | AsyncIterator[bytes] = Answer(response.status_code, kept, response.content)
    path = target.partition("?")[0]
    if (tamper := shop.tampers.get((method, path))) is not None:
        assert isinstance(answer, Answer)
        answer = tamper(answer)
    shop.seen.append((method, path))
    async with shop.changed:
        shop.changed.notify_all()
    if isinstance(answer, Answer):
        writer.write(answer.raw())
        await writer.drain()
        return
    async for piece in answer:
        writer.write(piece)
        await writer.drain()


_KEPT = ("content-type", "location", "set-cookie")
