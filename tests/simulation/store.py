"""The gateway's database in a simulation: the real group writer on a real SQLite file, its disk slow, full or failing.

Power can fail before BEGIN, after the operations, before COMMIT, and after COMMIT before the answers. Concurrent writes
may overtake each other on their way to the writer: the port promises no order.
"""

import asyncio
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from gateway.domain.instant import Clock, Instant
from gateway.store.gathering import Job
from gateway.store.port import PrepareHook, StoreUnavailableError, Transaction
from gateway.store.sqlite.connection import open_reader
from gateway.store.sqlite.engine import Database
from gateway.store.sqlite.transaction import SqliteTransaction
from gateway.store.sqlite.writer import GroupWriter
from tests.simulation.loop import Process


class Disk:
    """The state of a machine's disk."""

    def __init__(self, chance: random.Random, count: Callable[[str], None]) -> None:
        self.count = count
        self.full = False
        self.was_full = False
        self.slow = 0.0
        self.fail_commit = 0.0
        self.late_background_tasks = 0.0
        """By how many seconds at most what nobody waits for is done late."""
        self._chance = chance

    def fill(self) -> None:
        """Nothing more can be written."""
        self.count("full disks")
        self.full = self.was_full = True

    def latency(self) -> float:
        """Seconds that a flush takes."""
        if self.slow and self._chance.random() < self.slow:
            return self._chance.uniform(0.1, 4.0)
        return 0.0005

    def commit_fails(self) -> bool | None:
        """None: it does not; else whether the data got to the disk all the same."""
        if self.fail_commit and self._chance.random() < self.fail_commit:
            self.count("commits of unknown outcome")
            return self._chance.random() < 0.5
        return None


def full_disk() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    return error


def failed_commit() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    return error


class StoreWatch(Protocol):
    """Sees what the writer does."""

    def committed(self, database: sqlite3.Connection, ran_at: float) -> None: ...
    def served_nobody(self, operation: str) -> None: ...
    def went_on(self) -> None: ...
    def restored(self, path: Path) -> None: ...


class SimGroupWriter(GroupWriter):
    """The production writer; only its thread is replaced by virtual time."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        clock: Clock,
        publish: Callable[[set[str]], None],
        on_fatal: Callable[[BaseException], None],
        *,
        process: Process,
        disk: Disk,
        watch: StoreWatch,
    ) -> None:
        super().__init__(connection, clock, publish, on_fatal)
        self._process = process
        self._disk = disk
        self._watch = watch
        self._outcome_unknown = False
        self._ran_at = 0.0
        self._changes = connection.total_changes

    def _gather_next(self) -> None:
        self._process.call(super()._gather_next)

    def _begin(self) -> None:
        if not self._process.burns("store: before BEGIN"):
            if self._outcome_unknown:
                self._watch.went_on()
            self._ran_at = self._loop.time()
            super()._begin()

    def _needs_no_thread(self, group: list[Job]) -> bool:
        return False  # how long a commit takes is a matter of virtual time

    def _in_thread(
        self, work: Callable[[], sqlite3.Error | None], then: Callable[[sqlite3.Error | None], None]
    ) -> None:
        if not self._process.burns("store: after the operations"):
            self._loop.call_later(self._disk.latency(), self._flush, work, then)

    def _flush(self, work: Callable[[], sqlite3.Error | None], then: Callable[[sqlite3.Error | None], None]) -> None:
        if self._process.burns("store: before COMMIT"):
            return
        if self._disk.full and self._connection.total_changes != self._changes:
            then(full_disk())
            return
        reached = self._disk.commit_fails()
        if reached is False:
            self._connection.execute("ROLLBACK")
        error = work() if reached is not False else None
        if reached is not False and error is None:
            self._watch.committed(self._connection, self._ran_at)
        self._changes = self._connection.total_changes
        if reached is not None:
            error, self._outcome_unknown = failed_commit(), True
        if not self._process.burns("store: after COMMIT"):
            then(error)


class SimStore:
    """Implements the port `Store`."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        writer: SimGroupWriter,
        disk: Disk,
        chance: random.Random,
        watch: StoreWatch,
    ) -> None:
        self._database = database
        self._clock = clock
        self._writer = writer
        self._reading = open_reader(database.path)
        self._disk = disk
        self._chance = chance
        self._watch = watch

    async def write(self, operation: Any, /, *args: Any, **kwargs: Any) -> Any:
        if self._disk.slow and self._chance.random() < self._disk.slow:
            await asyncio.sleep(self._chance.uniform(0.0, 5.0))
        if self._disk.late_background_tasks and getattr(operation, "__name__", "") == "release":
            await asyncio.sleep(self._chance.uniform(0.5, self._disk.late_background_tasks))
        asked: list[asyncio.Future[Any]] = []

        def run(tx: Transaction, now: Instant) -> Any:
            if asked[0].cancelled():
                self._watch.served_nobody(getattr(operation, "__name__", "an operation"))
            return operation(tx, now, *args, **kwargs)

        asked.append(self._writer.submit(run))
        return await asked[0]

    async def write_many(self, operation: Any, /, *args: Any, **kwargs: Any) -> Any:
        return await self.write(operation, *args, **kwargs)

    def add_pre_commit_hook(self, topic: str, prepare: PrepareHook) -> None:
        self._writer.add_pre_commit_hook(topic, prepare)

    async def read(self, operation: Any, /, *args: Any, **kwargs: Any) -> Any:
        try:
            self._reading.execute("BEGIN")
            try:
                return operation(SqliteTransaction(self._reading), self._clock.now(), *args, **kwargs)
            finally:
                self._reading.execute("ROLLBACK")
        except sqlite3.OperationalError as error:
            raise StoreUnavailableError(str(error)) from error

    def cut_off(self) -> None:
        """The process is gone: what was not committed is gone with it."""
        if self._database.writing.in_transaction:
            self._database.writing.rollback()
        self._database.lock.close()
        self._writer._loop.at_the_end += [
            self._writer._thread.shutdown, self._reading.close, self._database.writing.close
        ]  # fmt: skip
