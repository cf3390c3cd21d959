"""The workers heard of: a row a worker, with the last time it called."""

from dataclasses import dataclass
from typing import Final

from gateway.domain.instant import Instant
from gateway.domain.leases import LeaseRequest
from gateway.store.port import ReadTransaction, Row, Transaction

_SEPARATOR: Final = ","
"""Stands between names, none of which can hold it."""


@dataclass(frozen=True, slots=True)
class WorkerRecord:
    """A worker as stored; `last_seen_us` is microseconds of the service clock.

    `sites` and `accounts`: what it named when it last asked for an order; no site: that is not kept, or
    not any more. `gateway`: at which one it was last seen waiting; empty: at none.
    """

    worker_id: str
    last_seen_at: str
    last_seen_us: int
    sites: tuple[str, ...]
    accounts: tuple[str, ...]
    gateway: str


def seen(tx: Transaction, now: Instant, worker_id: str) -> None:
    """Note that a worker has been heard of now."""
    tx.change_one("worker_seen", worker_id=worker_id, at=now.utc, elapsed_us=now.elapsed_us)


def waits(tx: Transaction, now: Instant, worker_id: str, gateway: str) -> None:
    """Note that a worker waits for an order at this gateway now."""
    tx.change_one("worker_waits", worker_id=worker_id, at=now.utc, elapsed_us=now.elapsed_us, gateway=gateway)


def arrived(tx: Transaction, now: Instant, request: LeaseRequest) -> None:
    """Note that a worker asks for an order now, what it serves, and whose token first brought its name."""
    tx.change_one(
        "worker_arrived",
        worker_id=request.worker_id,
        identity=request.identity,
        sites=_SEPARATOR.join(request.sites),
        accounts=_SEPARATOR.join(request.accounts),
        at=now.utc,
        elapsed_us=now.elapsed_us,
    )


def find(tx: ReadTransaction, worker_id: str) -> WorkerRecord | None:
    """Return a worker that has been heard of and not been forgotten, or None."""
    row = tx.one("worker_get", worker_id=worker_id)
    return None if row is None else _worker(row)


def introduced_by(tx: ReadTransaction, identity: str) -> int:
    """Return how many names a token's identity has brought that were not forgotten."""
    row = tx.one("workers_introduced_by", identity=identity)
    return 0 if row is None else int(row["count"])


def forget(tx: Transaction, worker_id: str) -> bool:
    """Forget a worker; False if nobody knew it."""
    return tx.change("worker_forget", worker_id=worker_id) > 0


def forget_what_is_served(tx: Transaction, before_us: int) -> None:
    """Forget what those serve that were last heard of before: each names it anew when it asks for an order again."""
    tx.change_any("workers_forget_served", before_us=before_us)


def everyone(tx: ReadTransaction) -> list[WorkerRecord]:
    """Return all workers, by name."""
    return [_worker(row) for row in tx.all("workers_all")]


def most_recent(tx: ReadTransaction, count: int) -> list[WorkerRecord]:
    """Return up to `count` workers, the one heard of last first."""
    return [_worker(row) for row in tx.all("workers_most_recent", count=count)]


def _worker(row: Row) -> WorkerRecord:
    sites = tuple(row["sites"].split(_SEPARATOR)) if row["sites"] else ()
    accounts = tuple(row["accounts"].split(_SEPARATOR)) if sites else ()
    return WorkerRecord(row["worker_id"], row["last_seen_at"], row["last_seen_us"], sites, accounts, row["gateway"])
