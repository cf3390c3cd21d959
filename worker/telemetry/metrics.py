"""The worker's metrics as a text file, since the worker opens no port: node_exporter's textfile collector reads it.

docs/observability.md names each metric and what to make of it.
"""

import asyncio
import logging
import sqlite3
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from prometheus_client import CollectorRegistry, Gauge, Info, write_to_textfile

from worker.clock import Clock
from worker.evidence.store import DiskSpace
from worker.journal.journal import Journal
from worker.journal.stats import Stats

_log = logging.getLogger(__name__)

INTERVAL_SECONDS = 15.0


class WorkerMetrics:
    """The metrics, on a registry of their own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        Info("orderworker_build", "The version that runs.", registry=registry).info(
            {"version": version("order-gateway")}
        )
        self._orders = Gauge("orderworker_orders", "Orders in the journal by status.", ["status"], registry=registry)
        self._clicked = Gauge("orderworker_clicked_orders", "Orders whose click is on record.", registry=registry)
        self._waiting = Gauge(
            "orderworker_waiting_reports", "Reports that the gateway has not taken yet.", registry=registry
        )
        self._disk = Gauge(
            "orderworker_disk_ok",
            "1 if there is room for a new order and it can be written, else 0.",
            registry=registry,
        )
        self._journal = Gauge(
            "orderworker_journal_ok", "1 if the journal could just be written, else 0.", registry=registry
        )
        self._written = Gauge("orderworker_written_timestamp_seconds", "When this was written.", registry=registry)

    def show(self, stats: Stats, *, disk_ok: bool, journal_ok: bool, written_at: float) -> None:
        """Take what was counted; `written_at` in seconds of Unix time."""
        for status, count in stats.orders.items():
            self._orders.labels(status.value).set(count)
        self._clicked.set(stats.clicked)
        self._waiting.set(stats.waiting_reports)
        self._disk.set(disk_ok)
        self._journal.set(journal_ok)
        self._written.set(written_at)


class MetricsFile:
    """Writes the metrics every 15 s, the file as a whole, so that a reader never sees half of it."""

    def __init__(self, path: Path, journal: Journal, disk: DiskSpace, clock: Clock) -> None:
        self._path = path
        self._journal = journal
        self._disk = disk
        self._clock = clock
        self._metrics = WorkerMetrics()
        self._task: asyncio.Task[None] | None = None
        self._failed = False

    def start(self) -> None:
        """Begins to write."""
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Write a last time."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await self._write()

    async def _run(self) -> None:
        while True:
            await self._write()
            await self._clock.sleep(INTERVAL_SECONDS)

    async def _write(self) -> None:
        try:
            self._metrics.show(
                await self._journal.stats(),
                disk_ok=await asyncio.to_thread(self._disk.shortage) is None,
                journal_ok=await self._journal.why_not_writable() is None,
                written_at=self._clock.now().timestamp(),
            )
            await asyncio.to_thread(write_to_textfile, str(self._path), self._metrics.registry)
        except (OSError, sqlite3.Error) as error:
            if not self._failed:
                _log.warning("RAKUTEN_METRICS_TEXTFILE cannot be written: %s", error)
            self._failed = True
        else:
            self._failed = False
