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
