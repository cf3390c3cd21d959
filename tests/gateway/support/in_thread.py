"""A whole gateway in a thread of its own, for tests that are not asynchronous."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.gateway.support.in_process import running_gateway


@contextmanager
def gateway_in_thread(folder: Path, **settings: Any) -> Iterator[int]:
    """Run a gateway; gives its HTTP port."""
    ready: list[int] = []
    started, stop = threading.Event(), threading.Event()

    async def serve() -> None:
        async with running_gateway(folder, **settings) as gateway:
            ready.append(gateway.http_port)
            started.set()
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert started.wait(30)
        yield ready[0]
    finally:
        stop.set()
        thread.join(30)
