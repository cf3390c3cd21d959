"""What several gateways on one database share besides the orders: a leader, streams.

Each is an operation in a group like any other, so it passes under the writer's lock and is judged by the service clock.
"""

import secrets
from typing import Final

from gateway.domain.instant import MICROSECONDS, Instant
from gateway.store.port import Transaction, Value

TERM_SECONDS: Final = 15
"""How long a leader leads from its last word; so long nobody sweeps when it dies without one."""

_KEPT_SECONDS: Final = 86_400
_PRUNED_AT_ONCE: Final = 20_000


def take_term(tx: Transaction, now: Instant, gateway_id: str) -> bool:
    """Lead the sweeps from now on, or go on doing so; False while somebody else does."""
    ends_us = now.elapsed_us + TERM_SECONDS * MICROSECONDS
    return tx.change("leader_take", gateway_id=gateway_id, elapsed_us=now.elapsed_us, ends_us=ends_us) > 0


def leave(tx: Transaction, now: Instant, gateway_id: str) -> None:
    """Lead no longer, and sign off."""
    tx.change_any("leader_resign", gateway_id=gateway_id, elapsed_us=now.elapsed_us)
    tx.change_any("gateway_stops", gateway_id=gateway_id)


class SharedStreams:
    """In which stream each worker's process waits, over all gateways."""

    def new_id(self) -> str:
        """Return what a stream is known by."""
        return secrets.token_hex(8)

    def opened(self, tx: Transaction, now: Instant, process: str, stream_id: str, session: str, number: int) -> bool:
        """Note that a process waits in this stream from now on; False if it has opened a later one already."""
        values: dict[str, Value] = {"process": process, "stream_id": stream_id, "session": session, "number": number}
        return tx.change("stream_opened", **values, elapsed_us=now.elapsed_us) > 0

    def is_latest(self, tx: Transaction, process: str, stream_id: str) -> bool:
        """Tell whether the process has not opened another one since."""
        row = tx.one("stream_of_process", process=process)
        return row is None or row["stream_id"] == stream_id


def prune(tx: Transaction, now: Instant) -> None:
    """Drop what nobody asks for any more: groups and streams older than a day."""
    before_us = now.elapsed_us - _KEPT_SECONDS * MICROSECONDS
    tx.change_any("groups_prune", before_us=before_us, count=_PRUNED_AT_ONCE)
    tx.change_any("streams_prune", before_us=before_us)
