"""The gRPC server: options, TLS, services, health and reflection."""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import grpc
from grpc_health.v1.health import SERVICE_NAME as HEALTH
from grpc_reflection.v1alpha import reflection

from gateway.api.auth.admission import Admission
from gateway.api.call import methods_of
from gateway.api.grpc.connections import cut_off
from gateway.api.grpc.handlers import REFLECTION_METHOD, GrpcHandlers
from gateway.api.grpc.health import Health
from gateway.api.grpc.incoming import MAX_MESSAGE_BYTES, UNREAD_WINDOW_BYTES
from gateway.api.grpc.renewal import HANDSHAKE_SECONDS, GrpcCertificate
from gateway.api.services import Services

_log = logging.getLogger(__name__)

_MAX_RECEIVED_BYTES: Final = 8 * 1024 * 1024
"""The largest request received: what is beyond the limit is refused by the gateway, which says so in an ErrorDetail.

A larger one is refused by grpc itself, without one. As many of this size are held as are read at once.
"""

_MAX_ANSWER_BYTES: Final = 128 * 1024 * 1024

_MAX_UNSERVED: Final = 10_000
"""Calls that grpc holds until the gateway looks at them, each with up to 16 KiB of metadata; it fails further ones."""

_IDLE_SECONDS: Final = 600.0
"""After how long without a call a connection is closed; a client opens another when it needs one."""

# A dead peer is noticed within 30 s, and a client may ping every 10 s without being sent away.
_OPTIONS: Final = (
    ("grpc.max_send_message_length", _MAX_ANSWER_BYTES),
    ("grpc.keepalive_time_ms", 15_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.ping_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.max_metadata_size", 16 * 1024),
    ("grpc.server_handshake_timeout_ms", round(HANDSHAKE_SECONDS * 1000)),
    ("grpc.max_connection_idle_ms", round(_IDLE_SECONDS * 1000)),
    ("grpc.server.max_pending_requests", _MAX_UNSERVED - 1),
    ("grpc.server.max_pending_requests_hard_limit", _MAX_UNSERVED),
    # A request that nobody reads yet stays with the client: grpc would let it send more and more by its own estimate.
    ("grpc.http2.lookahead_bytes", UNREAD_WINDOW_BYTES),
    ("grpc.http2.bdp_probe", 0),
    # Another process on the same port would split the workers between two gateways.
    ("grpc.so_reuseport", 0),
)


@dataclass(frozen=True, slots=True)
class Limits:
    """How many connections the port takes, how many calls may be open on one, and how large a request may be."""

    connections: int
    calls_a_connection: int
    message_bytes: int = MAX_MESSAGE_BYTES

    def options(self) -> tuple[tuple[str, int], ...]:
        """Return them as grpc's options."""
        return (
            ("grpc.max_allowed_incoming_connections", self.connections),
            ("grpc.max_concurrent_streams", self.calls_a_connection),
            ("grpc.max_receive_message_length", _MAX_RECEIVED_BYTES),
        )


DEFAULT_LIMITS: Final = Limits(connections=10_000, calls_a_connection=1_000)


class GrpcServer:
    """A grpc.aio server with everything registered. `port` is known after `start`."""

    def __init__(
        self,
        services: Services,
        admission: Admission,
        interceptors: Sequence[grpc.aio.ServerInterceptor] = (),
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._guard = GrpcHandlers(admission, limits.message_bytes)
        self._server = grpc.aio.server(options=(*_OPTIONS, *limits.options()), interceptors=interceptors)
        self._health = Health()
        self._tls: GrpcCertificate | None = None
        self._watching: asyncio.Task[None] | None = None
        self.port = 0
        self._names: list[str] = []
        for descriptor, service in services.offered():
            handlers = {method.name: self._guard.handler(method) for method in methods_of(service, descriptor)}
            self._server.add_generic_rpc_handlers(
                [grpc.method_handlers_generic_handler(descriptor.full_name, handlers)]
            )
            self._names.append(descriptor.full_name)
        shown = [*self._names, HEALTH, reflection.SERVICE_NAME]
        handler = self._guard.reflection_handler(reflection.aio.ReflectionServicer(shown))
        self._server.add_generic_rpc_handlers(
            [
                grpc.method_handlers_generic_handler(reflection.SERVICE_NAME, {REFLECTION_METHOD: handler}),
                grpc.method_handlers_generic_handler(HEALTH, self._guard.health_handlers(self._health)),
            ]
        )

    async def start(self, host: str, port: int, tls: GrpcCertificate | None) -> None:
        """Bind and serve. Raises RuntimeError if the address cannot be bound."""
        self._tls = tls
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        if tls is None:
            self.port = self._server.add_insecure_port(address)
        else:
            self.port = self._server.add_secure_port(address, tls.credentials())
            tls.serves(host, self.port)
        await self._server.start()
        self._watching = asyncio.create_task(self._cut_off_the_late())
        self._health.serve(frozenset(("", *self._names)))

    async def _cut_off_the_late(self) -> None:
        while True:
            await asyncio.sleep(1)
            self._health.end_the_late()
            if late := self._guard.late():
                await asyncio.to_thread(cut_off, late, self.port)

    async def stop(self, grace: float) -> None:
        """Say that we are leaving, refuse new calls, give running ones `grace` seconds, and wait for their end.

        Streams end first, those who wait having been woken, and only then every connection is told of its end. That is
        a GOAWAY with a PING behind it, and grpc closes the connection when the client has answered: so it has read what
        its streams were told. The other way round grpc closes it with the last stream, and a client that happens to
        write to a closed connection throws away what it has not read yet.
        """
        self._health.leave()
        clock = asyncio.get_running_loop().time
        begun = clock()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace / 2):
                await self._guard.streams_ended()
        await self._server.stop(grace - (clock() - begun))
        if self._watching is not None:
            self._watching.cancel()
        if self._tls is not None:
            self._tls.close()
        try:
            async with asyncio.timeout(grace):
                await self._guard.idle()
        except TimeoutError:
            _log.warning("a call has not ended; the gateway does not wait for it any longer")
