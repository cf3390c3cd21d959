"""The only place that wires the gateway together, and its life from start to stop."""

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pydantic import SecretStr

from common.pem_files import PemFileError
from common.settings import PREFIX, SettingsError
from gateway.account_queries.start import resume_queries_after_start
from gateway.api.auth.admission import Admission
from gateway.api.auth.authenticator import EVERY_ROLE, Authenticator, Role
from gateway.api.call import MAX_PLAIN_BYTES
from gateway.api.grpc.server import GrpcServer, Limits
from gateway.api.health import HealthCheck
from gateway.api.http.assembly import http_app
from gateway.api.http.server import HttpServer
from gateway.api.rest.catalog import catalog_routes
from gateway.api.rest.health import health_routes
from gateway.api.rest.leases import lease_routes
from gateway.api.rest.metrics import metrics_routes
from gateway.api.rest.orders import order_routes
from gateway.api.rest.queries import query_lease_routes, query_routes
from gateway.api.services import Services
from gateway.api.services.account_queries import AccountQueryService
from gateway.api.services.catalog import CatalogService
from gateway.api.services.operations import OperationsService
from gateway.api.services.order_leases import OrderLeaseService
from gateway.api.services.orders import OrderService
from gateway.api.services.query_leases import QueryLeaseService
from gateway.api.tls import Certificates
from gateway.api.tls_files import TlsFiles
from gateway.catalog.ingest import Ingest
from gateway.catalog.rounds import Rounds
from gateway.clock import ServiceClock, SystemTime, load_clock, system_time
from gateway.dispatch.notifier import Notifier
from gateway.dispatch.order_leases import OrderDispatcher, OrderLeaseSource
from gateway.dispatch.query_leases import QueryDispatcher, QueryLeaseSource
from gateway.domain.account_queries import QueryPolicy
from gateway.domain.models import Policy
from gateway.metrics import CONTENT_TYPE, Metrics
from gateway.orders.start import Started, resume_after_start
from gateway.settings import MAX_PARAMS_BYTES, Settings
from gateway.store.port import Store
from gateway.store.sqlite.engine import SqliteStore, open_database
from gateway.store.sqlite.failures import DatabaseGoneError
from gateway.store.sqlite.online_backups import OnlineBackups
from gateway.store.sqlite.schema import DatabaseUnusableError
from gateway.sweeps.alert_webhook import AlertWebhookSweep
from gateway.sweeps.alerts import AlertSweep
from gateway.sweeps.callback_sender import CallbackSender
from gateway.sweeps.callbacks import CallbackSweep
from gateway.sweeps.catalog import CatalogSweep
from gateway.sweeps.expire import ExpireSweep
from gateway.sweeps.health import HealthSweep
from gateway.sweeps.presence import PresenceSweep
from gateway.sweeps.queries import QuerySweep, QueryWakeSweep
from gateway.sweeps.retention import RetentionSweep
from gateway.sweeps.sweep import Sweep, run_sweep
from gateway.sweeps.wake import WakeSweep
from gateway.tracing import Tracing, set_up_tracing

STOP_SECONDS: Final = 5.0
"""How long running calls may go on after the stop; waits end at once."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the gateway listens."""

    grpc: int
    http: int


class FatalStoreError(Exception):
    """A commit failed with an unknown outcome, so the process must end and be started again."""


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
    policy, query_policy, catalog_policy = settings.policy(), settings.query_policy(), settings.catalog_policy()
    notifier, metrics, tracing = Notifier(), Metrics(), tracing or set_up_tracing()
    fatal: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
    database = open_database(settings.gateway_db_path)
    clock = load_clock(database.transaction(), machine or system_time())
    async with AsyncExitStack() as undo:
        store = SqliteStore(database, clock, notifier.publish, fatal.set_result, metrics.committed)
        undo.push_async_callback(store.close)
        undo.callback(tracing.close)
        started = await _take_up(store, clock, policy, query_policy)
        await metrics.begin(store)
        rounds = Rounds(catalog_policy, query_policy, _new_query_id)
        on_result = Ingest(catalog_policy, rounds)
        query_dispatcher = QueryDispatcher(store, notifier, QueryLeaseSource(query_policy))
        backups = OnlineBackups(settings.gateway_db_path, settings.backup_dir, clock.wall_utc)
        dispatcher = OrderDispatcher(store, notifier, OrderLeaseSource(policy, _new_token))
        callbacks = CallbackSweep(store, _callback_sender(settings), on_try=metrics.callback_tried)
        undo.push_async_callback(callbacks.close)
        check = _health_check(store, policy, clock, settings)
        sweeps: list[Sweep] = [
            ExpireSweep(store, settings.sweep_interval_seconds, clock.save),
            *_operation_sweeps(store, policy, settings),
            HealthSweep(check.look, settings.sweep_interval_seconds),
            callbacks,
            PresenceSweep(store, lambda: {request.worker_id for request in dispatcher.waiting()}),
            WakeSweep(store, notifier),
            QuerySweep(store, query_policy, settings.sweep_interval_seconds),
            QueryWakeSweep(store, notifier),
            CatalogSweep(store, rounds, settings.sweep_interval_seconds),
            *([certificates] if certificates else []),
        ]
        admission = Admission(
            _authenticator(settings),
            max_waiters=settings.max_waiters,
            calls_per_second=settings.rate_limit_per_second,
            current_trace=tracing.current,
        )
        services = Services(
            orders=OrderService(store, notifier, policy, _new_task_id),
            order_leases=OrderLeaseService(store, dispatcher, policy, _new_token),
            account_queries=AccountQueryService(store, notifier, query_policy, _new_query_id),
            query_leases=QueryLeaseService(store, query_dispatcher, query_policy, on_result),
            catalog=CatalogService(store, catalog_policy, rounds),
            operations=OperationsService(store, policy, backups.create, check),
        )
        routers = [
            lease_routes(store, dispatcher, admission, policy, _new_token),
            order_routes(store, policy, _new_task_id),
            query_lease_routes(store, query_dispatcher, admission, query_policy, on_result),
            query_routes(store, query_policy, _new_query_id),
            catalog_routes(store, catalog_policy, rounds),
            health_routes(check),
            metrics_routes(lambda: metrics.page(store, check.look, lambda: admission.waiters), CONTENT_TYPE),
        ]
        server = GrpcServer(services, admission, tracing.interceptors(), _limits(settings))
        application = http_app(services, routers, admission, settings.max_body_bytes, settings.sites[0])
        http = HttpServer(tracing.traced(application), STOP_SECONDS, settings.max_connections)
        await _listen(settings, server, http, certificates)
        background = [
            asyncio.create_task(work) for work in (dispatcher.run(), query_dispatcher.run(), *map(run_sweep, sweeps))
        ]
        try:
            for warning in settings.unusual():
                _log.warning("%s", warning)
            if started.stale:
                _log.warning("%d tasks turned stale at start; a person must look at them", started.stale)
            _log.info(
                "gateway ready host=%s grpc=%d http=%d tls=%s",
                settings.gateway_host, server.port, http.port, "on" if certificates else "off",
            )  # fmt: skip
            on_ready(Ports(server.port, http.port))
            await _first(stop, fatal)
        finally:
            # Waits end at once and nothing is leased on the way out; then running calls get their time.
            notifier.close()
            await asyncio.gather(backups.close(), server.stop(STOP_SECONDS), http.stop())
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)
            if not fatal.done():
                await dispatcher.drain()
                await query_dispatcher.drain()
                await store.write(clock.save)
        if fatal.done():
            raise _why_ended(settings, fatal.result()) from fatal.result()
        _log.info("gateway stopped")


async def _take_up(store: Store, clock: ServiceClock, policy: Policy, query_policy: QueryPolicy) -> Started:
    """Take up what a former process left."""
    wall_utc = clock.wall_utc()
    started = await store.write(resume_after_start, policy, clock_continues=clock.continues, wall_utc=wall_utc)
    await store.write(resume_queries_after_start, query_policy, clock_continues=clock.continues, wall_utc=wall_utc)
    await store.write(clock.save)
    return started


def _why_ended(settings: Settings, error: BaseException) -> Exception:
    """Return what to raise after a commit of unknown outcome: without its file a start would make an empty database."""
    if isinstance(error, DatabaseGoneError):
        return DatabaseUnusableError(
            f"{settings.gateway_db_path.absolute()}: {error}; put it back together with its -wal, or restore a backup, "
            "before you start the gateway: a start without it makes an empty database"
        )
    return FatalStoreError(f"a commit failed with an unknown outcome: {error}")


async def _first(stop: asyncio.Event, fatal: asyncio.Future[BaseException]) -> None:
    stopping = asyncio.create_task(stop.wait())
    either: set[asyncio.Future[Any]] = {stopping, fatal}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()


def _operation_sweeps(store: Store, policy: Policy, settings: Settings) -> Iterator[Sweep]:
    interval, url = settings.sweep_interval_seconds, settings.alert_webhook_url
    yield AlertSweep(store, policy, interval, has_webhook=url is not None)
    if url is not None:
        yield AlertWebhookSweep(store, url.get_secret_value(), interval)
    if settings.retention_days:
        yield RetentionSweep(store, timedelta(days=settings.retention_days))


def _health_check(store: Store, policy: Policy, clock: ServiceClock, settings: Settings) -> HealthCheck:
    seconds = settings.backup_alert_seconds
    return HealthCheck(
        store,
        policy,
        clock.save,
        has_webhook=settings.alert_webhook_url is not None,
        backup_alert=timedelta(seconds=seconds) if seconds else None,
    )


def _callback_sender(settings: Settings) -> CallbackSender:
    secrets_ = [secret.get_secret_value() for secret in settings.callback_secret]
    return CallbackSender(secrets_, settings.callback_allowed_hosts)


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


def _limits(settings: Settings) -> Limits:
    largest = max(settings.max_intent_bytes, settings.query_result_max_bytes, MAX_PARAMS_BYTES)
    return Limits(settings.max_connections, settings.grpc_calls_per_connection, largest + MAX_PLAIN_BYTES)


def certificates_of(settings: Settings) -> Certificates | None:
    """Read the TLS files; None where none are set. Raises SettingsError."""
    if settings.gateway_tls_cert is None or settings.gateway_tls_key is None:
        return None
    try:
        return Certificates(
            TlsFiles(settings.gateway_tls_cert, settings.gateway_tls_key, settings.gateway_tls_client_ca)
        )
    except PemFileError as error:
        raise SettingsError(f"{PREFIX}GATEWAY_TLS_CERT, _KEY, _CLIENT_CA: {error}") from error


async def _listen(settings: Settings, server: GrpcServer, http: HttpServer, tls: Certificates | None) -> None:
    host = settings.gateway_host

    def taken(name: str, port: int) -> str:
        return f"{PREFIX}{name}: {host}:{port} cannot be listened on (in use?)"

    try:
        await server.start(host, settings.gateway_grpc_port, None if tls is None else tls.grpc)
    except RuntimeError as error:
        raise SettingsError(taken("GATEWAY_GRPC_PORT", settings.gateway_grpc_port)) from error
    try:
        http.start(host, settings.gateway_port, None if tls is None else tls.http)
    except OSError as error:
        await server.stop(0)
        raise SettingsError(taken("GATEWAY_PORT", settings.gateway_port)) from error


def _new_token() -> str:
    return secrets.token_urlsafe(32)


def _new_task_id() -> str:
    return f"t-{datetime.now(UTC):%Y%m%d}-{secrets.token_hex(8)}"


def _new_query_id() -> str:
    return f"aq-{datetime.now(UTC):%Y%m%d}-{secrets.token_hex(8)}"
