"""In which stream a worker's process waits, where it may come to any of several gateways."""

from typing import Protocol

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
