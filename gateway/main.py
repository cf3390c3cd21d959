"""The life of the gateway, from start to stop. How its parts are wired is in composition.py."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from gateway.clock import SystemTime
from gateway.composition import Gateway, build_gateway
from gateway.database import open_for
from gateway.dispatch.notifier import Notifier
from gateway.metrics import Metrics
from gateway.servers import Servers, certificates_of
from gateway.settings import Settings
from gateway.sweeps.sweep import run_sweep
from gateway.tracing import Tracing, set_up_tracing

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the gateway listens."""

    grpc: int
    http: int


async def run_gateway(
    settings: Settings,
    stop: asyncio.Event,
    on_ready: Callable[[Ports], None],
    machine: SystemTime | None = None,
    tracing: Tracing | None = None,
) -> None:
    """Serve until `stop` is set; `on_ready` gets the ports. `machine` replaces the machine's clocks and
    `tracing` what OTEL_* variables ask for, in tests.

    Raises SettingsError (unreadable TLS files, address in use), DatabaseUnusableError, FatalStoreError, and
    StoreUnavailableError where the database takes no writes at start.
    """
    certificates = certificates_of(settings)
    notifier, metrics, tracing = Notifier(), Metrics(), tracing or set_up_tracing()
    fatal: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
    database = open_for(settings, machine, notifier, fatal.set_result, metrics.committed, metrics.connection_lost)
    async with AsyncExitStack() as undo:
        undo.push_async_callback(database.store.close)
        undo.callback(tracing.close)
        gateway = build_gateway(
            database.store,
            database.clock,
            settings,
            notifier,
            sharing=database.sharing,
            on_callback_try=metrics.callback_tried,
            current_trace=tracing.current,
        )
        undo.push_async_callback(gateway.callbacks.close)
        await database.join()
        started = await gateway.resume()
        await metrics.begin(database.store, database.oldest_transaction)
        servers = Servers(gateway, metrics, tracing, certificates)
        await servers.listen()
        sweeps = [] if certificates is None else [run_sweep(certificates)]
        shared = [work() for work in database.work]
        background = [asyncio.create_task(work) for work in (*gateway.work(), *sweeps, *shared)]
        try:
            _log_start(gateway, servers, started.stale)
            on_ready(Ports(servers.grpc.port, servers.http.port))
            await _first(stop, fatal)
        finally:
            await _wind_down(gateway, servers, background, fatal)
            if not fatal.done():
                await database.leave()
        if fatal.done():
            raise database.why_ended(fatal.result()) from fatal.result()
        _log.info("gateway stopped")


def _log_start(gateway: Gateway, servers: Servers, stale: int) -> None:
    settings = gateway.settings
    for warning in settings.unusual():
        _log.warning("%s", warning)
    if stale:
        _log.warning("%d tasks turned stale at start; a person must look at them", stale)
    _log.info(
        "gateway ready host=%s grpc=%d http=%d tls=%s",
        settings.gateway_host,
        servers.grpc.port,
        servers.http.port,
        "off" if settings.gateway_tls_cert is None else "on",
    )


async def _first(stop: asyncio.Event, fatal: asyncio.Future[BaseException]) -> None:
    stopping = asyncio.create_task(stop.wait())
    either: set[asyncio.Future[Any]] = {stopping, fatal}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()


async def _wind_down(
    gateway: Gateway,
    servers: Servers,
    background: list[asyncio.Task[None]],
    fatal: asyncio.Future[BaseException],
) -> None:
    """Let waits end at once, with nothing leased on the way out, and give running calls their time."""
    gateway.notifier.close()
    await asyncio.gather(gateway.backups.close(), servers.stop())
    for task in background:
        task.cancel()
    await asyncio.gather(*background, return_exceptions=True)
    if not fatal.done():
        await gateway.drain()
