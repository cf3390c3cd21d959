"""The one place where the worker's parts are wired together."""

import asyncio
import logging
import sqlite3
import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress

import httpx

from common.file_access import next_step
from common.settings import SettingsError
from worker.account_lock import AccountLocks
from worker.account_queries.execution import QueryPolicy, Reader
from worker.account_queries.loop import QueryLoop
from worker.account_queries.port import QueryClient
from worker.clock import Clock, Entropy, SystemClock, SystemEntropy
from worker.evidence.screenshots import Screenshots as BrowserScreenshots
from worker.evidence.store import DiskSpace, EvidenceStore
from worker.failpoints import Checkpoint, no_failpoint
from worker.gateway.client import GatewayClient, open_channel
from worker.gateway.outbox import Outbox
from worker.journal.journal import Journal
from worker.orders.loop import OrderLoop
from worker.orders.monitor import Monitor, MonitorPolicy
from worker.orders.run import NoScreenshots, OnEvent, Parts, Policy, Screenshots, ignore_event
from worker.settings import WorkerSettings
from worker.sites.port import sites_that_can_order, sites_that_can_read_orders
from worker.sites.registry import build_sites
from worker.sites.scraper import HttpScraper, NoScraper, Scraper
from worker.telemetry.metrics import MetricsFile
from worker.telemetry.tracing import Tracing, set_up_tracing

log = logging.getLogger(__name__)

# SIGTERM to the end of the process: 10 s, of which this much for the order in hand and the last reports.
STOP_SECONDS = 7.0
NO_SITE = (
    "no site can order here, so no order will be taken: the Rakuten adapter is not implemented; set "
    "RAKUTEN_SANDBOX_URL to try the worker, or add an adapter (CONTRIBUTING.md)"
)
SCREENSHOT_SECONDS = 10.0
SCRAPER_SECONDS = 30.0


async def run_worker(
    settings: WorkerSettings,
    *,
    stop: asyncio.Event,
    checkpoint: Checkpoint = no_failpoint,
    on_event: OnEvent = ignore_event,
    on_ready: Callable[[], None] = lambda: None,
    clock: Clock | None = None,
    entropy: Entropy | None = None,
    tracing: Tracing | None = None,
) -> None:
    """Runs the loops of orders and queries, the outbox and the monitor until `stop` is set, then ends within 10 s.

    Listens on no port. Raises SettingsError and JournalError before anything was begun.
    """
    clock, entropy = clock or SystemClock(), entropy or SystemEntropy()
    if settings.gateway is None:
        raise SettingsError("RAKUTEN_ORDER_GATEWAY_URL is empty: there is no gateway to work for")
    async with AsyncExitStack() as stack:
        disk = _prepare_disk(settings)
        journal = await Journal.open(settings.trading_db_path, clock=clock, new_id=entropy.token)
        stack.push_async_callback(journal.close)
        disk.remove_leftovers()
        try:
            sites = build_sites(
                sandbox_url=settings.sandbox_url or None, timeout_seconds=min(30.0, settings.step_timeout_seconds)
            )
        except ValueError as error:
            raise SettingsError(f"RAKUTEN_SANDBOX_URL: {error}") from error
        for site in sites:
            stack.push_async_callback(site.close)
        tracing = tracing or set_up_tracing()
        stack.callback(tracing.close)
        channel = open_channel(settings, tracing.interceptors())
        stack.push_async_callback(channel.close)
        session_id = entropy.token()
        token = settings.token.get_secret_value() if settings.token else None
        gateway = GatewayClient(
            channel,
            worker_id=settings.worker_id,
            session_id=session_id,
            journal_id=journal.journal_id,
            token=token,
        )
        outbox = Outbox(journal, gateway, clock, entropy, settings.worker_id)
        stack.push_async_callback(outbox.close)
        parts = Parts(
            journal=journal,
            evidence=EvidenceStore(settings.evidence_dir),
            disk=disk,
            outbox=outbox,
            gateway=gateway,
            clock=clock,
            screenshots=_open_screenshots(settings, stack),
            scraper=await _open_scraper(settings, stack),
            checkpoint=checkpoint,
            on_event=on_event,
            policy=Policy(
                order_max_total_yen=settings.order_max_total_yen,
                step_seconds=settings.step_timeout_seconds,
                verify_max_pages=settings.verify_max_pages,
                lost_answer_look_seconds=settings.lost_answer_look_seconds,
                lost_answer_interval_seconds=settings.lost_answer_interval_seconds,
            ),
        )
        accounts = AccountLocks()
        monitor = Monitor(
            parts,
            {site.name: site for site in sites},
            accounts,
            MonitorPolicy(settings.monitor_interval_seconds, settings.monitor_days, settings.payment_alert_seconds),
        )
        loop = OrderLoop(
            parts,
            sites,
            accounts,
            entropy,
            lease_wait=settings.lease_wait_seconds,
            stopping=stop,
            in_trace=lambda lease: tracing.order(lease.task_id, lease.site, lease.traceparent),
        )
        reader = Reader(
            {site.name: site for site in sites},
            accounts,
            QueryPolicy(
                timeout_seconds=settings.account_query_timeout_seconds,
                default_max_pages=settings.account_query_default_max_pages,
                max_result_bytes=settings.query_result_max_bytes,
            ),
        )
        queries = QueryLoop(
            QueryClient(channel, worker_id=settings.worker_id, session_id=session_id, token=token),
            reader,
            sites_that_can_read_orders(sites),
            clock,
            entropy,
            at_once=settings.account_query_concurrency,
            lease_wait=settings.lease_wait_seconds,
            stopping=stop,
        )
        log.info(
            "worker started",
            extra={
                "worker_id": settings.worker_id,
                "gateway": settings.gateway.address,
                "sites": ",".join(site.name for site in sites if site.can_order) or "none",
            },
        )
        if not sites_that_can_order(sites):
            log.warning(NO_SITE)
        if settings.metrics_textfile is not None:
            metrics = MetricsFile(settings.metrics_textfile, journal, disk, clock)
            stack.push_async_callback(metrics.close)
            metrics.start()
        await outbox.start()
        on_ready()
        await _run_until_stopped(loop, queries, monitor, stop)
        log.info("worker stopped", extra={"worker_id": settings.worker_id})


async def _run_until_stopped(loop: OrderLoop, queries: QueryLoop, monitor: Monitor, stop: asyncio.Event) -> None:
    working = asyncio.create_task(loop.run())
    reading = asyncio.create_task(queries.run())
    watching = asyncio.create_task(monitor.run())
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({working, reading}, timeout=STOP_SECONDS)
        if not working.done():
            log.error("the order in hand could not be left in time; the journal knows how far it is")
    finally:
        for task in (working, reading, watching, stopping):
            task.cancel()
            with suppress(asyncio.CancelledError, sqlite3.Error):
                await task


def _prepare_disk(settings: WorkerSettings) -> DiskSpace:
    for name, folder in (
        ("EVIDENCE_DIR", settings.evidence_dir),
        ("TRADING_DB_PATH", settings.trading_db_path.parent),
    ):
        try:
            # Folders above the journal's are not made: where they are missing, its path is more likely to be wrong.
            folder.mkdir(parents=name == "EVIDENCE_DIR", exist_ok=True, mode=0o700)
        except OSError as error:
            words = f"{folder}: {error.strerror}{next_step(folder / 'a file')}"
            raise SettingsError(f"RAKUTEN_{name}: {words}") from error
    folders = (settings.evidence_dir, settings.trading_db_path.parent)
    return DiskSpace(folders, min_free_mib=settings.min_free_disk_mib, grows=settings.trading_db_path)


def _open_screenshots(settings: WorkerSettings, stack: AsyncExitStack) -> Screenshots:
    if not settings.screenshots:
        return NoScreenshots()
    browser = BrowserScreenshots(timeout_seconds=SCREENSHOT_SECONDS)
    stack.push_async_callback(browser.close)
    return browser


async def _open_scraper(settings: WorkerSettings, stack: AsyncExitStack) -> Scraper:
    if not settings.scraper_base_url:
        return NoScraper()
    # Proxies and .netrc of the environment are left alone: the settings say to whom the token goes, and to nobody else.
    client = httpx.AsyncClient(
        timeout=SCRAPER_SECONDS, follow_redirects=False, trust_env=False, verify=ssl.create_default_context()
    )
    await stack.enter_async_context(client)
    bearer = settings.scraper_bearer
    return HttpScraper(client, settings.scraper_base_url, bearer.get_secret_value() if bearer else None)
