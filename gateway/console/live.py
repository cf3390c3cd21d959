"""Telling open pages that something has changed, so that they fetch themselves again (docs/console.md#live).

One look at the database, twice a second while any page is open, serves all of them, at every gateway that shares it.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from typing import Final

from gateway.dispatch.notifier import Notifier
from gateway.domain.instant import Instant
from gateway.domain.refusals import Reason, Refusal, RefusedError
from gateway.store import counts, history
from gateway.store.port import LOCAL_TOPIC, ReadTransaction, Store, StoreUnavailableError

MAX_PAGES: Final = 500
"""Pages that may be open at once."""

MAX_PAGES_OF_ONE: Final = 100
"""Pages of one identity that may be open at once."""

_TOPIC: Final = f"{LOCAL_TOPIC}console"
_LOOK_SECONDS: Final = 0.5
_HEARTBEAT_SECONDS: Final = 10.0

_BEGINNING: Final = b"retry: 1000\n\n"
_CHANGE: Final = b"event: change\ndata:\n\n"
_HEARTBEAT: Final = b": here\n\n"


class Changes:
    """Watches the database while anybody wants to know."""

    def __init__(self, store: Store, notifier: Notifier) -> None:
        self._store = store
        self._notifier = notifier
        self._watching: asyncio.Task[None] | None = None
        self._open: Counter[str] = Counter()

    @contextmanager
    def place(self, name: str) -> Iterator[None]:
        """Hold a place among the open pages, for the identity of this name. Raises RefusedError TOO_MANY."""
        if self._open.total() >= MAX_PAGES:
            raise RefusedError(Refusal(Reason.TOO_MANY, f"{MAX_PAGES} pages are open, which is the limit"))
        if self._open[name] >= MAX_PAGES_OF_ONE:
            why = f"{MAX_PAGES_OF_ONE} pages of {name} are open, which is the limit for one token"
            raise RefusedError(Refusal(Reason.TOO_MANY, why))
        self._open[name] += 1
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            self._open[name] -= 1
            if not self._open[name]:
                del self._open[name]
            if not self._open:
                self._watching.cancel()
                self._watching = None

    async def stream(self, goes_on: Callable[[], bool]) -> AsyncGenerator[bytes]:
        """Yield server-sent events until the gateway stops, or `goes_on` says no. To be used in a `place`."""
        with self._notifier.subscribe(_TOPIC) as changes:
            yield _BEGINNING
            while not self._notifier.closing and goes_on():
                yield _CHANGE if await changes.wait(_HEARTBEAT_SECONDS) else _HEARTBEAT

    async def _watch(self) -> None:
        last: object = None
        while True:
            try:
                found: object = await self._store.read(_state)
            except StoreUnavailableError as error:
                found = str(error)
            if last is not None and found != last:
                self._notifier.publish([_TOPIC])
            last = found
            await asyncio.sleep(_LOOK_SECONDS)


def _state(tx: ReadTransaction, _now: Instant) -> tuple[int, dict[str, int]]:
    """Return what is another one after each change that somebody may wait for."""
    return history.last_sequence(tx), counts.standing_alerts_by_kind(tx)
