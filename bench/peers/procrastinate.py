"""Procrastinate, through its connector for psycopg.

What it has for one order at a time is a lock; its key against duplicates, the queueing lock, holds while an order is
queued.
"""

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from procrastinate import App, PsycopgConnector
from procrastinate.jobs import Status

from bench.load import INTENT
from bench.peers.port import CONNECTIONS

QUEUE: Final = "orders"


class Procrastinate:
    """Procrastinate as a peer."""

    def __init__(self, app: Any, worker_id: int) -> None:
        self._app = app
        self._worker_id = worker_id
        self._taken: asyncio.Queue[tuple[object, float]] = asyncio.Queue()
        self._order = app.task(name="order", queue=QUEUE, pass_context=True)(self._work)

    async def _work(self, context: Any, intent: str) -> None:
        self._taken.put_nowait((context.job.id, time.perf_counter()))

    async def submit(self) -> object:
        """Defers a job."""
        deferring = self._order.configure(lock="account", queueing_lock=uuid.uuid4().hex)
        job_id: int = await deferring.defer_async(intent=INTENT)
        return job_id

    @asynccontextmanager
    async def worker(self) -> AsyncIterator["asyncio.Queue[tuple[object, float]]"]:
        """Its worker."""
        running = asyncio.create_task(self._app.run_worker_async(queues=[QUEUE], install_signal_handlers=False))
        try:
            yield self._taken
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running

    async def take(self) -> tuple[object, Any]:
        """Fetches a job, by the statement that its worker uses."""
        job = await self._app.job_manager.fetch_job([QUEUE], self._worker_id)
        if job is None:
            raise AssertionError("there is an order, and none was fetched")
        return job.id, job

    async def finish(self, taken: Any) -> None:
        """Marks a job as done, by the statement that its worker uses."""
        await self._app.job_manager.finish_job(taken, Status.SUCCEEDED, delete_job=False)


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Procrastinate]:
    """Procrastinate in a database; its tables are made where there are none."""
    app = App(connector=PsycopgConnector(conninfo=url, min_size=CONNECTIONS, max_size=CONNECTIONS))
    async with app.open_async():
        if not await app.check_connection_async():
            await app.schema_manager.apply_schema_async()
        yield Procrastinate(app, await app.job_manager.register_worker())
