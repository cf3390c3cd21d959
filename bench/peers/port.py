"""What each queue must do for the load, by the means that it gives its users."""

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Protocol

CONNECTIONS: Final = 34
"""To the database, where callers use it directly: one for each of 32 callers, and for what the worker needs."""


class Peer(Protocol):
    """A queue of orders, of which one is in execution at a time."""

    async def submit(self) -> object:
        """Files an order under a new key against duplicates, durably; gives what the order is known by."""
        ...

    def worker(self) -> AbstractAsyncContextManager["asyncio.Queue[tuple[object, float]]"]:
        """Its own worker, which waits for orders and does nothing with them.

        Gives each order that is handed over, by what it is known by, with the moment (`time.perf_counter`).
        """
        ...

    async def take(self) -> tuple[object, Any]:
        """Takes the oldest order: what it is known by, and what `finish` needs."""
        ...

    async def finish(self, taken: Any) -> None:
        """Says that an order is done, durably."""
        ...
