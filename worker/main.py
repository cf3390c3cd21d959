"""The running worker: what it is made of is wired together, runs, and ends within ten seconds."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress

from common.settings import SettingsError
from worker.clock import Clock, Entropy, SystemClock, SystemEntropy
from worker.composition import (
    Loops,
    build_loops,
    open_gateway,
    open_scraper,
    open_screenshots,
    open_sites,
    policy,
    prepare_disk,
)
from worker.evidence.store import EvidenceStore
from worker.failpoints import Failpoint, no_failpoint
from worker.gateway.outbox import Outbox
from worker.journal.journal import Journal
from worker.orders.parts import OnEvent, Parts, ignore_event
from worker.settings import WorkerSettings
from worker.sites.port import Site, sites_that_can_order
from worker.telemetry.metrics import MetricsFile
from worker.telemetry.tracing import Tracing, set_up_tracing

_log = logging.getLogger(__name__)

# SIGTERM to the end of the process: 10 s, of which this much for the order in hand and the last reports.
STOP_SECONDS = 7.0
NO_SITE = (
    "no site can order here, so no order will be taken: the Rakuten adapter is not implemented; set "
    "RAKUTEN_SANDBOX_URL to try the worker, or add an adapter (CONTRIBUTING.md)"
)


async def run_worker(
    settings: WorkerSettings,
    *,
    stop: asyncio.Event,
    failpoint: Failpoint = no_failpoint,
    on_event: OnEvent = ignore_event,
    on_ready: Callable[[], None] = lambda: None,
    clock: Clock | None = None,
    entropy: Entropy | None = None,
    tracing: Tracing | None = None,
) -> None:
    """Run the loops of orders and queries, the outbox and the monitor until `stop` is set, then end within 10 s.

    Listens on no port. Raises SettingsError and JournalError before anything was begun.
    """
    clock, entropy = clock or SystemClock(), entropy or SystemEntropy()
    if settings.gateway is None:
        raise SettingsError("RAKUTEN_ORDER_GATEWAY_URL is empty: there is no gateway to work for")
    async with AsyncExitStack() as stack:
        disk = prepare_disk(settings)
        journal = await Journal.open(settings.trading_db_path, clock=clock, new_id=entropy.token)
        stack.push_async_callback(journal.close)
        disk.remove_leftovers()
        sites = open_sites(settings, stack)
        tracing = tracing or set_up_tracing()
        stack.callback(tracing.close)
        gateway = open_gateway(settings, stack, tracing, journal.journal_id, entropy.token())
        outbox = Outbox(journal.reports, gateway.orders, clock, entropy, settings.worker_id)
        stack.push_async_callback(outbox.close)
        parts = Parts(
            journal=journal,
            evidence=EvidenceStore(settings.evidence_dir),
            disk=disk,
            outbox=outbox,
            gateway=gateway.orders,
            clock=clock,
            screenshots=open_screenshots(settings, stack),
            scraper=await open_scraper(settings, stack),
            failpoint=failpoint,
            on_event=on_event,
            policy=policy(settings),
        )
        loops = build_loops(settings, parts, sites, gateway.queries, entropy, tracing, stop)
        _announce(settings, sites)
        if settings.metrics_textfile is not None:
            metrics = MetricsFile(settings.metrics_textfile, journal, disk, clock)
            stack.push_async_callback(metrics.close)
            metrics.start()
        await outbox.start()
        on_ready()
        await _run_until_stopped(loops, stop)
        _log.info("worker stopped", extra={"worker_id": settings.worker_id})


def _announce(settings: WorkerSettings, sites: Sequence[Site]) -> None:
    can_order = sites_that_can_order(sites)
    _log.info(
        "worker started",
        extra={
            "worker_id": settings.worker_id,
            "gateway": settings.gateway.address if settings.gateway else "none",
            "sites": ",".join(can_order) or "none",
            "accounts": ",".join(account or "-" for account in settings.accounts),
        },
    )
    if not can_order:
        _log.warning(NO_SITE)


async def _run_until_stopped(loops: Loops, stop: asyncio.Event) -> None:
    working = asyncio.create_task(loops.orders.run())
    reading = asyncio.create_task(loops.queries.run())
    watching = asyncio.create_task(loops.monitor.run())
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({working, reading}, timeout=STOP_SECONDS)
        if not working.done():
            _log.error("the order in hand could not be left in time; the journal knows how far it is")
    finally:
        for task in (working, reading, watching, stopping):
            task.cancel()
            with suppress(asyncio.CancelledError, sqlite3.Error):
                await task
