"""The one lock of each site's account: order steps, the monitor and account queries take turns on it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class AccountLocks:
    """One lock a site. Within one site nothing that uses the account overlaps."""

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}

    def of(self, site: str) -> asyncio.Lock:
        """The lock of that site's account."""
        return self._locks.setdefault(site, asyncio.Lock())


@asynccontextmanager
async def released(lock: asyncio.Lock) -> AsyncIterator[None]:
    """Gives the lock to others for the length of the block, and waits for its turn again at the end."""
    lock.release()
    try:
        yield
    finally:
        await lock.acquire()
