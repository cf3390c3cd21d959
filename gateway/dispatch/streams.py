"""In which stream a worker waits, where it may come to any of several gateways."""

from collections.abc import Hashable
from typing import Any, Protocol

from gateway.dispatch.lease_source import Turn
from gateway.dispatch.waiter import Waiter
from gateway.domain.instant import Instant
from gateway.store.port import Transaction


class Elsewhere:
    """What an opening brings that was read late: the worker has begun to wait in another stream since it asked."""


class Streams(Protocol):
    """Remembers the latest stream of each worker in the database."""

    def new_id(self) -> str:
        """Return what a stream is known by."""
        ...

    def opened(self, tx: Transaction, now: Instant, process: str, stream_id: str, session: str, number: int) -> bool:
        """Note that a process waits in this stream from now on; False if it has opened a later one already.

        `number` counts the streams of a session; 0: not counted, this one is the latest.
        """
        ...

    def is_latest(self, tx: Transaction, process: str, stream_id: str) -> bool:
        """Tell whether the process has not opened another one since."""
        ...


class PlaceOfWaiters:
    """Knows of each waiter whether it has gone to another gateway since; `streams` None: there is no other."""

    def __init__(self, streams: Streams | None) -> None:
        self._streams = streams

    def new_id(self) -> str:
        """Return what a waiter's stream is known by."""
        return "" if self._streams is None else self._streams.new_id()

    def opened(
        self, tx: Transaction, now: Instant, name: Hashable | None, waiter: Waiter[Any, Any], turn: Turn
    ) -> bool:
        """Note that somebody waits here from now on, or return False: it has gone elsewhere since it asked.

        `name` None: it may wait in several places.
        """
        if self._streams is None or name is None:
            return True
        return self._streams.opened(tx, now, _key(name, waiter), waiter.stream_id, turn.session, turn.number)

    def is_elsewhere(self, tx: Transaction, name: Hashable | None, waiter: Waiter[Any, Any]) -> bool:
        """Tell whether it has opened another stream since."""
        if self._streams is None or name is None:
            return False
        return not self._streams.is_latest(tx, _key(name, waiter), waiter.stream_id)


def _key(name: Hashable, waiter: Waiter[Any, Any]) -> str:
    """Name who waits, and for what, as the database keeps it."""
    return repr((name, sorted(map(str, waiter.request.targets))))
