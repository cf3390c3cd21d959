"""The server of the page: on 127.0.0.1, under a key, until it is told to stop; in a process apart from the worker."""

import asyncio
import contextlib
import secrets
import socket
from collections.abc import Callable, Iterator
from typing import Final

import uvicorn

from worker.evidence_page.connection import PromptH11
from worker.evidence_page.guard import Guard
from worker.evidence_page.pages import EvidencePages

HOST: Final = "127.0.0.1"
_KEY_BYTES: Final = 32
_CONNECTIONS: Final = 32
_STOP_SECONDS: Final = 2


class _Server(uvicorn.Server):
    """Leaves signals to the command that runs it, and tells when it is ready."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(pages: EvidencePages, port: int, stop: asyncio.Event, on_ready: Callable[[str], None]) -> None:
    """Serve until `stop` is set; port 0 takes a free one. `on_ready` is given the address, key and all.

    Raises OSError where the port is taken.
    """
    key = secrets.token_urlsafe(_KEY_BYTES)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        taken = listener.getsockname()[1]
        server = _Server(
            uvicorn.Config(
                Guard(pages.app(key), key, (f"{HOST}:{taken}", f"localhost:{taken}")),
                http=PromptH11,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                date_header=False,
                limit_concurrency=_CONNECTIONS,
                timeout_graceful_shutdown=_STOP_SECONDS,
            ),
            lambda: on_ready(f"http://{HOST}:{taken}/{key}/"),
        )
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        server.should_exit = True
        await serving
