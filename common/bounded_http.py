"""An HTTP transport on which a hostile server can neither flood nor stall the program that calls it.

What h11 reads of one answer is bounded before it is parsed: so many bytes until the head is whole, counting every
informational answer (1xx) and every header, so many in all after that, chunk sizes, their extensions and trailers
included. They come in small pieces, between which the event loop turns, whatever the server packs into one segment.
Who makes an exchange sets `BUDGET` before it, and bounds how long it may take (`asyncio.timeout`).
"""

import ssl
from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import httpcore
import httpx

PIECE = 4 * 1024
"""Bytes parsed at a time. Smallest parts, such as 1xx answers of 20 bytes, cost some 30 microseconds each."""

MAX_HEAD_BYTES = 128 * 1024
"""Until the head of an answer is whole; h11 itself takes no head above 100 KiB."""

BODY_ALLOWANCE = 256 * 1024
"""What the framing of a body may cost beside the body."""


@dataclass
class Budget:
    """Bytes that an exchange may still read. Raises httpx.RemoteProtocolError below zero."""

    left: int = MAX_HEAD_BYTES

    def spend(self, size: int) -> None:
        """Take bytes off."""
        self.left -= size
        if self.left < 0:
            raise httpx.RemoteProtocolError("the answer brings more bytes than its head and its body may have")

    def for_body(self, max_bytes: int) -> None:
        """The head is whole: from here on the body counts."""
        self.left = max_bytes + BODY_ALLOWANCE


BUDGET: ContextVar[Budget | None] = ContextVar("budget", default=None)
"""Of the exchange that the current task makes."""


class BoundedTransport(httpx.AsyncHTTPTransport):
    """HTTP/1.1 without retries, environment or proxies."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        super().__init__(verify=tls, http1=True, http2=False, retries=0, trust_env=False)
        # httpx takes no network backend; its pool is replaced by the same pool with one.
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls, http1=True, http2=False, retries=0, network_backend=_Backend()
        )


class _Stream(httpcore.AsyncNetworkStream):
    """A connection whose reads are small and counted."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 -- httpcore's own
        data = await self._stream.read(min(max_bytes, PIECE), timeout)
        if (budget := BUDGET.get()) is not None:
            budget.spend(len(data))
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 -- httpcore's own
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 -- httpcore's own
    ) -> httpcore.AsyncNetworkStream:
        return _Stream(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Backend(httpcore.AsyncNetworkBackend):
    """Opens such connections."""

    def __init__(self) -> None:
        self._backend = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 -- httpcore's own
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        return _Stream(await self._backend.connect_tcp(host, port, timeout, local_address, socket_options))

    async def sleep(self, seconds: float) -> None:
        await self._backend.sleep(seconds)
