"""Workers that wait are there: an open stream is a sign of life (docs/specification.md#taking-an-order)."""

from collections.abc import Collection

from gateway.domain.instant import Instant
from gateway.store import workers
from gateway.store.port import Transaction


def still_there(tx: Transaction, now: Instant, worker_ids: Collection[str]) -> int:
    """Note that these workers have been heard of now; return how many."""
    for worker_id in worker_ids:
        workers.seen(tx, now, worker_id)
    return len(worker_ids)
