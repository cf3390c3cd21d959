"""In which stream a worker's process waits, where it may come to any of several gateways."""

from collections.abc import Hashable
from typing import Any, Protocol

from gateway.dispatch.waiter import Waiter
from gateway.domain.instant import Instant
from gateway.store.port import Transaction


class Streams(Protocol):
    """Remembers the latest stream of each process in the database."""

    def new_id(self) -> str:
        """Return what a stream is known by."""
        ...

    def opened(self, tx: Transaction, now: Instant, process: str, stream_id: str) -> None:
        """Note that a process waits in this stream from now on."""
        ...

    def is_latest(self, tx: Transaction, process: str, stream_id: str) -> bool:
        """Tell whether the process has not opened another one since."""
        ...


class PlaceOfWaiters:
    """Knows of each waiter whether its process has gone to another gateway since; `streams` None: there is no other."""

    def __init__(self, streams: Streams | None) -> None:
        self._streams = streams

    def new_id(self) -> str:
        """Return what a waiter's stream is known by."""
        return "" if self._streams is None else self._streams.new_id()

    def opened(self, tx: Transaction, now: Instant, process: Hashable | None, waiter: Waiter[Any, Any]) -> None:
        """Note that the process waits here from now on. `process` None: it may wait in several places."""
        if self._streams is not None and process is not None:
            self._streams.opened(tx, now, _key(process, waiter), waiter.stream_id)

    def is_elsewhere(self, tx: Transaction, process: Hashable | None, waiter: Waiter[Any, Any]) -> bool:
        """Tell whether the process has opened another stream since."""
        if self._streams is None or process is None:
            return False
        return not self._streams.is_latest(tx, _key(process, waiter), waiter.stream_id)


def _key(process: Hashable, waiter: Waiter[Any, Any]) -> str:
    """Name the process that waits, and for what, as the database keeps it."""
    return repr((process, sorted(map(str, waiter.request.targets))))
