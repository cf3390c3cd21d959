"""The HTTP server: uvicorn in the gateway's process and event loop. Signals stay with the command line."""

import asyncio
import contextlib
import logging
import math
import socket
import ssl
from collections.abc import Iterator
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from gateway.api.http.listener import Listener, bound_socket
from gateway.api.http.protocol import BoundedH11

_CUT_OFF_SECONDS: Final = 2
"""How long handlers may take to notice that their connections were cut off at the stop."""

_KEEP_ALIVE_SECONDS: Final = 75
"""Longer than proxies keep their idle connections, so that a request never meets a connection that is just closing."""


class HttpServer:
    """Serves an ASGI application. `port` is known after `start`."""

    def __init__(self, app: ASGIApp, stop_seconds: float, max_connections: int) -> None:
        logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
        self._stop_seconds = stop_seconds
        self._config = uvicorn.Config(
            app,
            http=BoundedH11,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=math.ceil(stop_seconds) + _CUT_OFF_SECONDS,
        )
        self._server = _Server(self._config, max_connections)
        self._serving: asyncio.Task[None] | None = None
        self.port = 0

    def start(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        """Listen and serve. Raises OSError if the address cannot be bound."""
        listening = bound_socket(host, port)
        self.port = listening.getsockname()[1]
        self._config.load()
        self._config.ssl = tls
        self._serving = asyncio.create_task(self._server.serve([listening]))

    async def stop(self) -> None:
        """Take no new requests, give running ones their time, and cut off what is left."""
        if self._serving is None:
            return
        self._server.should_exit = True
        done, _ = await asyncio.wait({self._serving}, timeout=self._stop_seconds)
        if not done:
            # Whoever is left sends nothing or reads nothing; to a handler it looks as if its client had gone.
            for connection in list(self._server.server_state.connections):
                connection.transport.abort()
        await self._serving


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, max_connections: int) -> None:
        super().__init__(config)
        self._max_connections = max_connections

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take connections in our own way."""
        [listening] = sockets or []

        def serve() -> BoundedH11:
            return BoundedH11(self.config, self.server_state, {})

        listener = Listener(listening, self.config.ssl, self._max_connections, serve)
        # uvicorn closes it and waits for that, as it does with a server of asyncio's.
        self.servers = [listener]  # type: ignore[list-item]
        self.started = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield
