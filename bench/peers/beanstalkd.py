"""beanstalkd with its log, which it flushes with each write (-f0). It has no key against duplicates."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import urlsplit

from bench.load import INTENT
from bench.peers.port import CONNECTIONS

TIME_TO_RUN: Final = 120
"""Seconds after which a job that was not deleted is handed out again."""


class Connection:
    """The protocol's three commands, on one connection; a command waits for the answer to the one before."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def put(self, body: bytes) -> int:
        """Files a job; gives its number."""
        self._writer.write(b"put 0 0 %d %d\r\n%b\r\n" % (TIME_TO_RUN, len(body), body))
        return int((await self._answer(b"INSERTED"))[0])

    async def reserve(self) -> int:
        """Waits for the next job; gives its number."""
        self._writer.write(b"reserve\r\n")
        number, size = await self._answer(b"RESERVED")
        await self._reader.readexactly(int(size) + 2)
        return int(number)

    async def delete(self, number: int) -> None:
        """Says that a job is done."""
        self._writer.write(b"delete %d\r\n" % number)
        await self._answer(b"DELETED")

    def close(self) -> None:
        """Ends the connection."""
        self._writer.close()

    async def _answer(self, wanted: bytes) -> list[bytes]:
        word, *rest = (await self._reader.readline()).split()
        if word != wanted:
            raise AssertionError(f"unexpected answer: {word!r}")
        return rest


class Beanstalkd:
    """beanstalkd as a peer."""

    def __init__(self, connections: list[Connection]) -> None:
        self._worker, *upstreams = connections
        self._upstreams: asyncio.Queue[Connection] = asyncio.Queue()
        for upstream in upstreams:
            self._upstreams.put_nowait(upstream)

    async def submit(self) -> object:
        """Puts a job."""
        connection = await self._upstreams.get()
        try:
            return await connection.put(INTENT.encode())
        finally:
            self._upstreams.put_nowait(connection)

    @asynccontextmanager
    async def worker(self) -> AsyncIterator["asyncio.Queue[tuple[object, float]]"]:
        """A loop that reserves and deletes, one job at a time."""
        taken: asyncio.Queue[tuple[object, float]] = asyncio.Queue()

        async def work() -> None:
            while True:
                number = await self._worker.reserve()
                taken.put_nowait((number, time.perf_counter()))
                await self._worker.delete(number)

        working = asyncio.create_task(work())
        try:
            yield taken
        finally:
            working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await working

    async def take(self) -> tuple[object, int]:
        """Reserves a job."""
        number = await self._worker.reserve()
        return number, number

    async def finish(self, taken: int) -> None:
        """Deletes it."""
        await self._worker.delete(taken)


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Beanstalkd]:
    """beanstalkd at an address."""
    at = urlsplit(url)
    connections = [Connection(*await asyncio.open_connection(at.hostname, at.port)) for _ in range(CONNECTIONS)]
    try:
        yield Beanstalkd(connections)
    finally:
        for connection in connections:
            connection.close()
