"""The workers heard of: a row a worker, with the last time it called."""

from dataclasses import dataclass

from gateway.domain.instant import Instant
from gateway.store.port import ReadTransaction, Row, Transaction


@dataclass(frozen=True, slots=True)
class WorkerRecord:
    """A worker as stored; `last_seen_us` is microseconds of the service clock."""

    worker_id: str
    last_seen_at: str
    last_seen_us: int


def seen(tx: Transaction, now: Instant, worker_id: str) -> None:
    """Note that a worker has been heard of now."""
    tx.change_one("worker_seen", worker_id=worker_id, at=now.utc, elapsed_us=now.elapsed_us)


def arrived(tx: Transaction, now: Instant, worker_id: str, identity: str) -> None:
    """Note that a worker has been heard of now, and whose token brought its name if nobody's has so far."""
    tx.change_one("worker_arrived", worker_id=worker_id, identity=identity, at=now.utc, elapsed_us=now.elapsed_us)


def is_known(tx: ReadTransaction, worker_id: str) -> bool:
    """Tell whether a worker has been heard of and not been forgotten."""
    return tx.one("worker_get", worker_id=worker_id) is not None


def introduced_by(tx: ReadTransaction, identity: str) -> int:
    """Return how many names a token's identity has brought that were not forgotten."""
    row = tx.one("workers_introduced_by", identity=identity)
    return 0 if row is None else int(row["count"])


def forget(tx: Transaction, worker_id: str) -> bool:
    """Forget a worker; False if nobody knew it."""
    return tx.change("worker_forget", worker_id=worker_id) > 0


def everyone(tx: ReadTransaction) -> list[WorkerRecord]:
    """Return all workers, by name."""
    return [_worker(row) for row in tx.all("workers_all")]


def most_recent(tx: ReadTransaction, count: int) -> list[WorkerRecord]:
    """Return up to `count` workers, the one heard of last first."""
    return [_worker(row) for row in tx.all("workers_most_recent", count=count)]


def _worker(row: Row) -> WorkerRecord:
    return WorkerRecord(row["worker_id"], row["last_seen_at"], row["last_seen_us"])
