"""The one lock of each account: order steps, the monitor and account queries take turns on it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from common.target import Target


class AccountLocks:
    """One lock a target, which is an account of a site: nothing that uses it overlaps."""

    def __init__(self) -> None:
        self._locks: dict[Target, asyncio.Lock] = {}

    def of(self, target: Target) -> asyncio.Lock:
        """Return the lock of that account."""
        return self._locks.setdefault(target, asyncio.Lock())


class AccountTurn:
    """An order's turn on the account: held over its steps, given up while it only waits."""

    def __init__(self, lock: asyncio.Lock) -> None:
        self._lock = lock
        self._held = False

    async def take(self) -> None:
        """Wait for the turn."""
        await self._lock.acquire()
        self._held = True

    def give_back(self) -> None:
        """End the turn; does nothing where there is none, for example after a cancelled `take`."""
        if self._held:
            self._held = False
            self._lock.release()

    @asynccontextmanager
    async def given_up(self) -> AsyncIterator[None]:
        """Let others have the account for the length of the block, and wait for the turn again at its end."""
        self.give_back()
        try:
            yield
        finally:
            await self.take()
