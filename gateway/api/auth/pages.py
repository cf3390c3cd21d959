"""How many lists may be made at once, over all transports: a page takes some ten MiB until it is written."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Final

from gateway.domain.refusals import Reason, Refusal, RefusedError

MAX_PAGES: Final = 8
"""How many lists may be made or written at once."""

MAX_PAGES_OF_ONE: Final = 4
"""How many of them may be of one token."""

WAIT_SECONDS: Final = 10.0
"""How long a call may wait for its turn."""

MAX_WAITING: Final = 256
"""How many calls may wait for their turn; they hold nothing yet."""


class Pages:
    """Gives calls their turns to make a page."""

    def __init__(self) -> None:
        self._all = asyncio.Semaphore(MAX_PAGES)
        self._of_one: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(MAX_PAGES_OF_ONE))
        self._waiting = 0

    @asynccontextmanager
    async def place(self, owner: str) -> AsyncIterator[None]:
        """Wait for a turn, and hold it. Raises RefusedError TOO_MANY."""
        async with AsyncExitStack() as held:
            if self._waiting >= MAX_WAITING:
                raise _too_many()
            self._waiting += 1
            try:
                async with asyncio.timeout(WAIT_SECONDS):
                    for turns in (self._of_one[owner], self._all):
                        await turns.acquire()
                        held.callback(turns.release)
            except TimeoutError:
                raise _too_many() from None
            finally:
                self._waiting -= 1
            yield


def _too_many() -> RefusedError:
    why = "more lists are asked for than can be made at once; come back later"
    return RefusedError(Refusal(Reason.TOO_MANY, why, retry_after=timedelta(seconds=1)))
