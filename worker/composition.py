"""What the worker is made of, built from its settings."""

import asyncio
import ssl
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

import httpx

from common.file_access import next_step
from common.settings import SettingsError
from worker.account_lock import AccountLocks
from worker.account_queries.client import QueryClient
from worker.account_queries.execution import QueryPolicy, Reader
from worker.account_queries.loop import QueryLoop
from worker.clock import Entropy
from worker.evidence.screenshots import Screenshots as BrowserScreenshots
from worker.evidence.store import DiskSpace
from worker.gateway.client import GatewayClient, open_channel
from worker.orders.loop import OrderLoop
from worker.orders.monitor import Monitor, MonitorPolicy
from worker.orders.parts import NoScreenshots, Parts, Policy, Screenshots
from worker.settings import WorkerSettings
from worker.sites.port import Site, by_target, sites_that_can_read_orders
from worker.sites.registry import build_sites
from worker.sites.scraper import HttpScraper, NoScraper, Scraper
from worker.telemetry.tracing import Tracing

SCREENSHOT_SECONDS = 10.0
SCRAPER_SECONDS = 30.0
MOST_SITE_SECONDS = 30.0
"""Most that connecting to a site, or one silence of it, may last."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """The gateway's two services for workers, over one channel and in one session."""

    orders: GatewayClient
    queries: QueryClient


@dataclass(frozen=True, slots=True)
class Loops:
    """What runs until the worker is stopped."""

    orders: OrderLoop
    queries: QueryLoop
    monitor: Monitor


def open_sites(settings: WorkerSettings, stack: AsyncExitStack) -> list[Site]:
    """Build the adapters; they are closed with the stack."""
    sites = build_sites(
        settings, settings.accounts, timeout_seconds=min(MOST_SITE_SECONDS, settings.step_timeout_seconds)
    )
    for site in sites:
        stack.push_async_callback(site.close)
    return sites


def open_gateway(
    settings: WorkerSettings, stack: AsyncExitStack, tracing: Tracing, journal_id: str, session_id: str
) -> Gateway:
    """Open the channel, closed with the stack, and make both clients on it. Raises SettingsError."""
    channel = open_channel(settings, tracing.interceptors())
    stack.push_async_callback(channel.close)
    token = settings.token.get_secret_value() if settings.token else None
    worker_id = settings.worker_id
    return Gateway(
        GatewayClient(
            channel,
            worker_id=worker_id,
            session_id=session_id,
            journal_id=journal_id,
            token=token,
            accounts=settings.accounts,
        ),
        QueryClient(channel, worker_id=worker_id, session_id=session_id, token=token, accounts=settings.accounts),
    )


def policy(settings: WorkerSettings) -> Policy:
    """Return the settings that rule an order."""
    return Policy(
        order_max_total_yen=settings.order_max_total_yen,
        step_seconds=settings.step_timeout_seconds,
        verify_max_pages=settings.verify_max_pages,
        lost_answer_look_seconds=settings.lost_answer_look_seconds,
        lost_answer_interval_seconds=settings.lost_answer_interval_seconds,
    )


def build_loops(
    settings: WorkerSettings,
    parts: Parts,
    sites: Sequence[Site],
    queries: QueryClient,
    entropy: Entropy,
    tracing: Tracing,
    stop: asyncio.Event,
) -> Loops:
    """Build the loops, which take turns with each account."""
    accounts = AccountLocks()
    adapters = by_target(sites)
    reader = Reader(
        adapters,
        accounts,
        QueryPolicy(
            timeout_seconds=settings.account_query_timeout_seconds,
            default_max_pages=settings.account_query_default_max_pages,
            max_result_bytes=settings.query_result_max_bytes,
        ),
    )
    return Loops(
        orders=OrderLoop(
            parts,
            sites,
            accounts,
            entropy,
            lease_wait=settings.lease_wait_seconds,
            stopping=stop,
            in_trace=lambda lease: tracing.order(lease.task_id, lease.site, lease.traceparent),
        ),
        queries=QueryLoop(
            queries,
            reader,
            sites_that_can_read_orders(sites),
            parts.clock,
            entropy,
            at_once=settings.account_query_concurrency,
            lease_wait=settings.lease_wait_seconds,
            stopping=stop,
        ),
        monitor=Monitor(
            parts,
            adapters,
            accounts,
            MonitorPolicy(settings.monitor_interval_seconds, settings.monitor_days, settings.payment_alert_seconds),
        ),
    )


def prepare_disk(settings: WorkerSettings) -> DiskSpace:
    """Make the folders of the evidence and the journal where they are missing. Raises SettingsError."""
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


def open_screenshots(settings: WorkerSettings, stack: AsyncExitStack) -> Screenshots:
    """Return what draws pages, ended with the stack; where that is switched off, what says so."""
    if not settings.screenshots:
        return NoScreenshots()
    browser = BrowserScreenshots(timeout_seconds=SCREENSHOT_SECONDS)
    stack.push_async_callback(browser.close)
    return browser


async def open_scraper(settings: WorkerSettings, stack: AsyncExitStack) -> Scraper:
    """Return the client of the scraper, closed with the stack; without an address, one that knows of no variants."""
    if not settings.scraper_base_url:
        return NoScraper()
    # Proxies and .netrc of the environment are left alone: the settings say to whom the token goes, and to nobody else.
    client = httpx.AsyncClient(
        timeout=SCRAPER_SECONDS, follow_redirects=False, trust_env=False, verify=ssl.create_default_context()
    )
    await stack.enter_async_context(client)
    bearer = settings.scraper_bearer
    return HttpScraper(client, settings.scraper_base_url, bearer.get_secret_value() if bearer else None)
