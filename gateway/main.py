"""The only place that wires the gateway together, and its life from start to stop."""

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pydantic import SecretStr

from gateway.api.admission import Admission
from gateway.api.auth import EVERY_ROLE, Authenticator, Role
from gateway.api.grpc.server import GrpcServer, TlsFiles
from gateway.api.services import Services
from gateway.api.services.account_queries import AccountQueryService
from gateway.api.services.operations import OperationsService
from gateway.api.services.order_leases import OrderLeaseService
from gateway.api.services.orders import OrderService
from gateway.api.services.query_leases import QueryLeaseService
from gateway.clock import SystemTime, load_clock, system_time
from gateway.domain.models import Policy
from gateway.orders.start import resume_after_start
from gateway.queries.start import resume_queries_after_start
from gateway.settings import PREFIX, Settings, SettingsError
from gateway.store.port import Store
from gateway.store.sqlite.engine import SqliteStore, open_database
from gateway.sweeps.alert_webhook import AlertWebhookSweep
from gateway.sweeps.alerts import AlertSweep
from gateway.sweeps.expire import ExpireSweep
from gateway.sweeps.queries import QuerySweep, QueryWakeSweep
from gateway.sweeps.sweep import Sweep, run_sweep
from gateway.sweeps.wake import WakeSweep
from gateway.waiting.hub import Hub
from gateway.waiting.lease_desk import LeaseDesk, OrderShelf
from gateway.waiting.query_desk import QueryDesk, QueryShelf

STOP_SECONDS: Final = 5.0
"""How long running calls may go on after the stop; waits end at once."""

_log = logging.getLogger(__name__)


class FatalStoreError(Exception):
    """A commit failed with an unknown outcome, so the process must end and be started again."""


async def run_gateway(
    settings: Settings, stop: asyncio.Event, on_ready: Callable[[int], None], machine: SystemTime | None = None
) -> None:
    """Serve until `stop` is set; `on_ready` gets the gRPC port. `machine` replaces the machine's clocks in tests.

    Raises SettingsError (unreadable TLS files, address in use), DatabaseUnusableError, FatalStoreError.
    """
    tls = _read_tls(settings)
    policy = settings.policy()
    query_policy = settings.query_policy()
    hub = Hub()
    fatal: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
    database = open_database(settings.gateway_db_path)
    clock = load_clock(database.transaction(), machine or system_time())
    async with AsyncExitStack() as undo:
        store = SqliteStore(database, clock, hub.publish, fatal.set_result)
        undo.push_async_callback(store.close)
        started = await store.write(
            resume_after_start, policy, clock_continues=clock.continues, wall_utc=clock.wall_utc()
        )
        await store.write(
            resume_queries_after_start,
            query_policy,
            clock_continues=clock.continues,
            wall_utc=clock.wall_utc(),
        )
        query_desk = QueryDesk(store, hub, QueryShelf(query_policy))
        desk = LeaseDesk(store, hub, OrderShelf(policy, _new_token))
        sweeps: list[Sweep] = [
            ExpireSweep(store, settings.sweep_interval_seconds, clock.save),
            *_alert_sweeps(store, policy, settings),
            WakeSweep(store, hub),
            QuerySweep(store, query_policy, settings.sweep_interval_seconds),
            QueryWakeSweep(store, hub),
        ]
        server = GrpcServer(
            Services(
                orders=OrderService(store, hub, policy, _new_task_id),
                order_leases=OrderLeaseService(store, desk, policy, _new_token),
                account_queries=AccountQueryService(store, hub, query_policy, _new_query_id),
                query_leases=QueryLeaseService(
                    store, query_desk, query_policy, lambda _tx, _now, _query, _result: None
                ),
                operations=OperationsService(store, policy),
            ),
            Admission(_authenticator(settings)),
        )
        try:
            await server.start(settings.gateway_host, settings.gateway_grpc_port, tls)
        except RuntimeError as error:
            where = f"{settings.gateway_host}:{settings.gateway_grpc_port}"
            raise SettingsError(f"{PREFIX}GATEWAY_GRPC_PORT: {where} cannot be listened on (in use?)") from error
        background = [asyncio.create_task(work) for work in (desk.run(), query_desk.run(), *map(run_sweep, sweeps))]
        try:
            for warning in settings.unusual():
                _log.warning("%s", warning)
            if started.stale:
                _log.warning("%d tasks turned stale at start; a person must look at them", started.stale)
            _log.info("gateway ready grpc=%s:%d tls=%s", settings.gateway_host, server.port, "on" if tls else "off")
            on_ready(server.port)
            await _first(stop, fatal)
        finally:
            # Waits end at once and nothing is leased on the way out; then running calls get their time.
            hub.close()
            await server.stop(STOP_SECONDS)
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)
            if not fatal.done():
                await desk.settle()
                await query_desk.settle()
                await store.write(clock.save)
        if fatal.done():
            raise FatalStoreError(f"a commit failed with an unknown outcome: {fatal.result()}") from fatal.result()
        _log.info("gateway stopped")


async def _first(stop: asyncio.Event, fatal: asyncio.Future[BaseException]) -> None:
    stopping = asyncio.create_task(stop.wait())
    either: set[asyncio.Future[Any]] = {stopping, fatal}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()


def _alert_sweeps(store: Store, policy: Policy, settings: Settings) -> Iterator[Sweep]:
    interval, url = settings.sweep_interval_seconds, settings.alert_webhook_url
    yield AlertSweep(store, policy, interval, has_webhook=url is not None)
    if url is not None:
        yield AlertWebhookSweep(store, url.get_secret_value(), interval)


def _authenticator(settings: Settings) -> Authenticator:
    def plain(secrets_: tuple[SecretStr, ...]) -> list[str]:
        return [secret.get_secret_value() for secret in secrets_]

    return Authenticator(
        {
            "api": (EVERY_ROLE, plain(settings.api_token)),
            "upstream": (frozenset({Role.UPSTREAM}), plain(settings.upstream_token)),
            "worker": (frozenset({Role.WORKER}), plain(settings.worker_token)),
            "operator": (frozenset({Role.OPERATOR}), plain(settings.operator_token)),
        }
    )


def _read_tls(settings: Settings) -> TlsFiles | None:
    def read(name: str, path: Path) -> bytes:
        try:
            return path.read_bytes()
        except OSError as error:
            raise SettingsError(f"{PREFIX}{name}: {path} cannot be read ({error.strerror})") from error

    if settings.gateway_tls_cert is None or settings.gateway_tls_key is None:
        return None
    ca = settings.gateway_tls_client_ca
    return TlsFiles(
        certificate=read("GATEWAY_TLS_CERT", settings.gateway_tls_cert),
        key=read("GATEWAY_TLS_KEY", settings.gateway_tls_key),
        client_ca=None if ca is None else read("GATEWAY_TLS_CLIENT_CA", ca),
    )


def _new_token() -> str:
    return secrets.token_urlsafe(32)


def _new_task_id() -> str:
    return f"t-{datetime.now(UTC):%Y%m%d}-{secrets.token_hex(8)}"


def _new_query_id() -> str:
    return f"aq-{datetime.now(UTC):%Y%m%d}-{secrets.token_hex(8)}"
