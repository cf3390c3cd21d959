"""The gateway's two ports: gRPC, and HTTP with REST and Connect."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from fastapi import APIRouter

from common.pem_files import PemFileError
from common.settings import PREFIX, SettingsError
from common.shown_settings import shown_settings
from gateway.api.call import MAX_PLAIN_BYTES, methods_of
from gateway.api.grpc.server import GrpcServer, Limits
from gateway.api.http.assembly import BodyLimits, http_app
from gateway.api.http.server import HttpServer
from gateway.api.rest.batches import batch_routes
from gateway.api.rest.catalog import catalog_routes
from gateway.api.rest.health import health_routes
from gateway.api.rest.info import info_routes
from gateway.api.rest.leases import lease_routes
from gateway.api.rest.metrics import metrics_routes
from gateway.api.rest.orders import order_routes
from gateway.api.rest.queries import query_lease_routes, query_routes
from gateway.api.rest.statements import statement_routes
from gateway.api.tls import Certificates
from gateway.api.tls_files import TlsFiles
from gateway.composition import Gateway
from gateway.console.app import console_app
from gateway.console.live import Changes
from gateway.console.sessions import Sessions
from gateway.console.visit import Parts
from gateway.metrics import CONTENT_TYPE, Metrics
from gateway.settings import MAX_PARAMS_BYTES, Settings
from gateway.tracing import Tracing

STOP_SECONDS: Final = 5.0
"""How long running calls may go on after the stop; waits end at once."""

_ESCAPED: Final = 6


class Servers:
    """Both servers of one gateway. Raises nothing before `listen`."""

    def __init__(self, gateway: Gateway, metrics: Metrics, tracing: Tracing, certificates: Certificates | None) -> None:
        settings = gateway.settings
        self.grpc = GrpcServer(gateway.services, gateway.admission, tracing.interceptors(), _limits(settings))
        application = http_app(
            gateway.services,
            list(_routers(gateway, metrics)),
            console_app(_console_parts(gateway)),
            gateway.admission,
            _body_limits(settings),
            settings.sites[0],
        )
        self.http = HttpServer(tracing.traced(application), STOP_SECONDS, settings.max_connections)
        self._settings = settings
        self._certificates = certificates

    async def listen(self) -> None:
        """Serve on both ports. Raises SettingsError where one cannot be listened on."""
        host, tls = self._settings.gateway_host, self._certificates
        grpc_port, http_port = self._settings.gateway_grpc_port, self._settings.gateway_port
        try:
            await self.grpc.start(host, grpc_port, None if tls is None else tls.grpc)
        except RuntimeError as error:
            raise SettingsError(_taken("GATEWAY_GRPC_PORT", host, grpc_port)) from error
        try:
            self.http.start(host, http_port, None if tls is None else tls.http)
        except OSError as error:
            await self.grpc.stop(0)
            raise SettingsError(_taken("GATEWAY_PORT", host, http_port)) from error

    async def stop(self) -> None:
        """Take no further call, give running ones STOP_SECONDS, and wait for their end."""
        await asyncio.gather(self.grpc.stop(STOP_SECONDS), self.http.stop())


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


def _limits(settings: Settings) -> Limits:
    largest = max(settings.max_intent_bytes, settings.query_result_max_bytes, MAX_PARAMS_BYTES)
    return Limits(settings.max_connections, settings.grpc_calls_per_connection, largest + MAX_PLAIN_BYTES)


def _body_limits(settings: Settings) -> BodyLimits:
    """Over Connect a request holds one JSON text, inside a JSON string where each byte may take six (`\\u0041`).

    Texts of more would be read in one go, in which the event loop stands still.
    """
    written = _ESCAPED * max(settings.max_intent_bytes, MAX_PARAMS_BYTES) + MAX_PLAIN_BYTES
    return BodyLimits(rest=settings.max_body_bytes, connect=min(settings.max_body_bytes, written))


def _routers(gateway: Gateway, metrics: Metrics) -> Iterator[APIRouter]:
    store, admission, ids = gateway.store, gateway.admission, gateway.ids
    policy, query_policy = gateway.settings.policy(), gateway.settings.query_policy()
    yield lease_routes(store, gateway.dispatcher, admission, policy, ids.token)
    yield order_routes(store, policy, ids.task)
    yield batch_routes(store, policy, ids.task)
    yield query_lease_routes(store, gateway.query_dispatcher, admission, query_policy, gateway.on_result)
    yield query_routes(store, query_policy, ids.query)
    yield catalog_routes(store, gateway.settings.catalog_policy(), gateway.rounds)
    yield health_routes(gateway.health)
    yield info_routes()
    yield statement_routes(store, policy)
    yield metrics_routes(lambda: metrics.page(store, gateway.health.look, lambda: admission.waiters), CONTENT_TYPE)


def _console_parts(gateway: Gateway) -> Parts:
    settings, admission = gateway.settings, gateway.admission
    lasts = timedelta(seconds=settings.console_session_seconds)
    offered = gateway.services.offered()
    return Parts(
        store=gateway.store,
        admission=admission,
        sessions=Sessions(admission, gateway.clock.wall_utc, gateway.ids.token, lasts),
        methods={method.path: method for described, service in offered for method in methods_of(service, described)},
        policy=settings.policy(),
        catalog_policy=settings.catalog_policy(),
        changes=Changes(gateway.store, gateway.notifier),
        look=gateway.health.look,
        settings=tuple(shown_settings(settings)),
        wall_utc=gateway.clock.wall_utc,
    )


def _taken(name: str, host: str, port: int) -> str:
    return f"{PREFIX}{name}: {host}:{port} cannot be listened on (in use?)"
