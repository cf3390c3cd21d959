"""What a lease costs with few and with many targets, with short and long queues: use cases on a database, no transport.

Half of the targets are busy and their orders are the oldest, so whoever walked the targets, or the queue, would show.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Final

from bench.result import Result
from bench.scenarios import Size
from common.target import Target
from gateway.domain.instant import Instant
from gateway.domain.leases import LeaseRequest, Via
from gateway.domain.models import LeaseScope
from gateway.orders.lease import take_next
from gateway.orders.ready import ready_targets
from gateway.settings import Settings
from gateway.store.sqlite.connection import open_writer
from gateway.store.sqlite.schema import migrate
from gateway.store.sqlite.transaction import SqliteTransaction

FEW, MANY = 10, 10_000
ROUNDS: Final = 200
WAITING: Final = 5_000
NOW: Final = Instant("2026-11-29T15:58:22.123456Z", 1)

_QUEUED = """
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :count)
INSERT INTO tasks (task_id, site, account, intent_json, status, queued_us, created_at, updated_at)
SELECT printf('queued-%09d', i), 'sandbox', printf('a%05d', i % :targets), '{}', 'queued', 0, :at, :at FROM n
"""
_BUSY = """
UPDATE tasks SET status = 'leased', slot = 'account:sandbox:' || account, lease_owner = 'w', lease_expires_at = :at,
    lease_deadline_us = 1000000000000, lease_count = 1
WHERE row IN (SELECT head_row FROM lanes ORDER BY account LIMIT :busy)
"""


def targets(size: Size, folder: Path) -> Iterator[Result]:
    """Compare the lease of one worker, and the look of a dispatcher with many that wait, at four sizes."""
    long = int(1_000_000 / max(size.scale, 1))
    worker, dispatcher = {}, {}
    for number in (FEW, MANY):
        for queued in (number, long):
            for analyzed in (False, True):
                with database(folder / f"{number}-{queued}-{analyzed}.db", number, queued, analyzed=analyzed) as tx:
                    worker[number, queued, analyzed] = lease_ms(tx, number)
                    dispatcher[number, queued, analyzed] = look_ms(tx, number)
    least = worker[FEW, FEW, False]
    for (number, queued, analyzed), took in worker.items():
        statistics = ", with statistics" if analyzed else ""
        name = f"lease, {number:,} targets, {queued:,} queued{statistics}"
        yield Result(name, f"{least:.3f} ms", f"{took:.3f} ms", took / least, 2.0, False, "times")
    look = dispatcher[MANY, long, True]
    yield Result(f"look of {WAITING:,} who wait, {MANY:,} targets", "", f"{look:.2f} ms", look, 50.0, False, "ms")


@contextmanager
def database(path: Path, number: int, queued: int, *, analyzed: bool) -> Iterator[SqliteTransaction]:
    """A database of so many targets, half of them busy, and so many queued orders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = open_writer(path)
    try:
        connection.execute("PRAGMA synchronous = OFF")
        migrate(connection)
        connection.execute("BEGIN")
        at = {"at": NOW.utc}
        connection.execute(_QUEUED, at | {"count": queued, "targets": number})
        connection.execute(_BUSY, at | {"busy": number // 2})
        connection.execute("COMMIT")
        if analyzed:
            connection.execute("ANALYZE")
        yield SqliteTransaction(connection)
    finally:
        connection.close()


def lease_ms(tx: SqliteTransaction, number: int) -> float:
    """Milliseconds (p50) in which a worker of one free target gets its order, without the commit."""
    policy = replace(Settings(_env_file=None, sites=("sandbox",)).policy(), scope=LeaseScope.ACCOUNT)
    request = LeaseRequest("w", "s" * 16, "j" * 16, ("sandbox",), Via.GRPC, "bench", (f"a{number - 1:05d}",))

    def take() -> None:
        if number > 1 and take_next(tx, NOW, policy, request, "t" * 43) is None:
            raise RuntimeError("a free target has an order, and nobody got it")

    return timed(tx, take)


def look_ms(tx: SqliteTransaction, number: int) -> float:
    """Milliseconds (p50) in which it is found for whom of many that wait, all at busy targets, there is anything."""
    policy = replace(Settings(_env_file=None, sites=("sandbox",)).policy(), scope=LeaseScope.ACCOUNT)
    wanted = {Target("sandbox", f"a{at:05d}") for at in range(min(WAITING, number // 2))}

    def look() -> None:
        if list(ready_targets(tx, NOW, policy, wanted)):
            raise RuntimeError("a busy target has nothing to give")

    return timed(tx, look)


def timed(tx: SqliteTransaction, work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Milliseconds (p50) that some work takes in a transaction that is taken back."""
    took = []
    connection: sqlite3.Connection = tx._connection  # noqa: SLF001 - measured beneath the writer
    for _ in range(rounds):
        connection.execute("BEGIN")
        begun = time.perf_counter()
        work()
        took.append((time.perf_counter() - begun) * 1_000)
        connection.execute("ROLLBACK")
    return median(took)


TARGET_SCENARIOS: Final[dict[str, Callable[[Size, Path], list[Result]]]] = {
    "targets": lambda size, folder: list(targets(size, folder))
}
