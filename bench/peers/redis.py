"""Redis streams with a consumer group, the log flushed with each write (appendfsync always).

An entry is taken out when it is done, as a job is. A key against duplicates would be a key beside the stream.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from redis.asyncio import BlockingConnectionPool, Redis
from redis.exceptions import ResponseError

from bench.load import INTENT
from bench.peers.port import CONNECTIONS

STREAM: Final = "orders"
GROUP: Final = "workers"
WORKER: Final = "worker"


class RedisStreams:
    """A stream as a peer."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def submit(self) -> object:
        """Adds an entry."""
        return await self._client.xadd(STREAM, {"intent": INTENT})

    @asynccontextmanager
    async def worker(self) -> AsyncIterator["asyncio.Queue[tuple[object, float]]"]:
        """A loop that reads and acknowledges, one entry at a time."""
        taken: asyncio.Queue[tuple[object, float]] = asyncio.Queue()

        async def work() -> None:
            while True:
                number, _ = await self.take()
                taken.put_nowait((number, time.perf_counter()))
                await self.finish(number)

        working = asyncio.create_task(work())
        try:
            yield taken
        finally:
            working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await working

    async def take(self) -> tuple[object, Any]:
        """Reads the next entry."""
        while True:
            answer = await self._client.xreadgroup(GROUP, WORKER, {STREAM: ">"}, count=1, block=60_000)
            if answer:
                ((_, ((number, _fields),)),) = answer
                return number, number

    async def finish(self, taken: Any) -> None:
        """Acknowledges an entry and takes it out, in one transaction."""
        async with self._client.pipeline(transaction=True) as pipeline:
            await pipeline.xack(STREAM, GROUP, taken).xdel(STREAM, taken).execute()


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[RedisStreams]:
    """The stream at an address; it is made where there is none."""
    pool = BlockingConnectionPool.from_url(url, max_connections=CONNECTIONS, timeout=60, socket_timeout=None)
    async with Redis(connection_pool=pool) as client:
        with contextlib.suppress(ResponseError):  # it is there
            await client.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
        yield RedisStreams(client)
    await pool.aclose()
