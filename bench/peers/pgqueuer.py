"""PgQueuer, through asyncpg, with its durable tables.

What it has for one order at a time is the concurrency limit of an entrypoint; its key against duplicates holds while an
order is queued or taken.
"""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final

import asyncpg
from pgqueuer.db import AsyncpgPoolDriver
from pgqueuer.ports.repository import EntrypointExecutionParameter
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries

from bench.load import INTENT
from bench.peers.port import CONNECTIONS

ENTRYPOINT: Final = "order"
ONE_AT_A_TIME: Final = 1
HEARTBEAT: Final = timedelta(seconds=30)
"""Its default: after so long without one, an order is handed out again."""


class PgQueuer:
    """PgQueuer as a peer."""

    def __init__(self, queries: Any) -> None:
        self._queries = queries
        self._worker_id = uuid.uuid4()

    async def submit(self) -> object:
        """Enqueues a job."""
        (job_id,) = await self._queries.enqueue(ENTRYPOINT, INTENT.encode(), dedupe_key=uuid.uuid4().hex)
        return job_id

    @asynccontextmanager
    async def worker(self) -> AsyncIterator["asyncio.Queue[tuple[object, float]]"]:
        """Its queue manager."""
        taken: asyncio.Queue[tuple[object, float]] = asyncio.Queue()
        manager = QueueManager(self._queries)

        async def order(job: Any) -> None:
            taken.put_nowait((job.id, time.perf_counter()))

        manager.entrypoint(ENTRYPOINT, concurrency_limit=ONE_AT_A_TIME, accepts_context=False)(order)
        running = asyncio.create_task(manager.run())
        try:
            yield taken
        finally:
            manager.shutdown.set()
            await running

    async def take(self) -> tuple[object, Any]:
        """Dequeues a job, by the statement that its queue manager uses."""
        limits = {ENTRYPOINT: EntrypointExecutionParameter(ONE_AT_A_TIME)}
        (job,) = await self._queries.dequeue(1, limits, self._worker_id, None, HEARTBEAT)
        return job.id, job

    async def finish(self, taken: Any) -> None:
        """Moves a job to the log, by the statement that its queue manager uses; that one gathers such for 0.1 s."""
        await self._queries.log_jobs([(taken, "successful", None)])


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[PgQueuer]:
    """PgQueuer in a database; its tables are made where there are none."""
    async with asyncpg.create_pool(url, min_size=CONNECTIONS, max_size=CONNECTIONS) as pool:
        queries = Queries(AsyncpgPoolDriver(pool))
        if not await queries.has_table(queries.qbe.settings.queue_table):
            await queries.install()
        yield PgQueuer(queries)
