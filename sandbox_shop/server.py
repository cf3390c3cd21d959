"""Running the shop: on a socket of its own, inside a loop that somebody else owns."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace

import uvicorn
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from sandbox_shop import account, checkout, control, scraper_api, storefront
from sandbox_shop.shop import Shop, ShopSettings
from sandbox_shop.web import TRANSPORT_EXTENSION

BACKLOG = 128
SHUTDOWN_SECONDS = 2


def build_app(shop: Shop) -> Starlette:
    """Return the shop's pages, its item data and its control API as one application."""
    parts = (storefront, checkout, account, scraper_api, control)
    return Starlette(routes=[route for part in parts for route in part.routes(shop)])


async def run_sandbox_shop(
    host: str,
    port: int,
    *,
    reflection_delay_seconds: float | None = None,
    settings: ShopSettings | None = None,
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Serve a fresh shop until cancelled; port 0 takes a free one.

    `on_ready` is called once with the shop's URL when it accepts connections. `reflection_delay_seconds` overrides that
    of `settings`. Prints nothing and touches no signal handler. Raises OSError where the port is taken.
    """
    chosen = settings or ShopSettings()
    if reflection_delay_seconds is not None:
        chosen = replace(chosen, reflection_delay_seconds=reflection_delay_seconds)
    await serve_shop(Shop(chosen), host, port, on_ready)


async def serve_shop(shop: Shop, host: str, port: int, on_ready: Callable[[str], None] | None = None) -> None:
    """Serve this shop until cancelled, as `run_sandbox_shop` does."""
    listener = _listen(host, port)
    shown_host = f"[{host}]" if ":" in host else host
    url = f"http://{shown_host}:{listener.getsockname()[1]}"
    server = _Server(
        uvicorn.Config(
            build_app(shop),
            http=_Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        ),
        shop.closing,
        lambda: on_ready(url) if on_ready else None,
    )
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        # Shielded: a cancelled `serve` would leave its connections open.
        await asyncio.shield(serving)
    finally:
        shop.close()
        try:
            await serving
        finally:
            listener.close()


def _listen(host: str, port: int) -> socket.socket:
    # Made with its protocol named: asyncio switches Nagle's delay off only where it sees IPPROTO_TCP, and 40 ms a
    # request is what it costs otherwise.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


class _Server(uvicorn.Server):
    """Leaves signals to the process that runs it, tells when it is ready, and stops with the shop, without ticking."""

    def __init__(self, config: uvicorn.Config, closing: asyncio.Event, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._closing = closing
        self._on_ready = on_ready

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    async def main_loop(self) -> None:
        await self._closing.wait()


class _Protocol(H11Protocol):
    """Hands the connection's transport to the application, which may have to reset it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        app = self.app

        async def app_with_transport(scope: Scope, receive: Receive, send: Send) -> None:
            scope.setdefault("extensions", {})[TRANSPORT_EXTENSION] = transport
            await app(scope, receive, send)

        self.app = app_with_transport
