"""The SQLite store as a whole: opens, migrates, runs operations, closes."""

import asyncio
import functools
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from gateway.domain.moment import Clock, Moment
from gateway.store.port import StoreUnavailableError, Transaction
from gateway.store.sqlite import connection as connections
from gateway.store.sqlite.schema import DatabaseUnusableError, migrate
from gateway.store.sqlite.transaction import SqliteTransaction
from gateway.store.sqlite.writer import GroupWriter

P = ParamSpec("P")
T = TypeVar("T")

READERS: Final = 2


class SqliteStore:
    """Implements the port `Store` on one SQLite file. Make it with `open_store`."""

    def __init__(
        self,
        path: Path,
        lock: Any,
        writing: sqlite3.Connection,
        clock: Clock,
        publish: Callable[[set[str]], None],
        on_fatal: Callable[[BaseException], None],
    ) -> None:
        self._path = path
        self._lock = lock
        self._clock = clock
        self._writer = GroupWriter(writing, clock, publish, on_fatal)
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="store-reader")
        self._per_thread = threading.local()
        self._reading: list[sqlite3.Connection] = []

    async def write(
        self, operation: Callable[Concatenate[Transaction, Moment, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run an operation in the next group and return its result once it is on disk."""
        result: T = await self._writer.submit(lambda tx, now: operation(tx, now, *args, **kwargs))
        return result

    async def read(
        self, operation: Callable[Concatenate[Transaction, Moment, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run an operation that only reads, on a snapshot of what is committed."""
        work = functools.partial(self._read, lambda tx, now: operation(tx, now, *args, **kwargs))
        result: T = await asyncio.get_running_loop().run_in_executor(self._readers, work)
        return result

    async def close(self) -> None:
        """Finish what is queued and give everything back."""
        await self._writer.close()
        self._readers.shutdown()
        for connection in self._reading:
            connection.close()
        self._lock.close()

    def _read(self, run: Callable[[Transaction, Moment], T]) -> T:
        try:
            connection: sqlite3.Connection | None = getattr(self._per_thread, "connection", None)
            if connection is None:
                connection = connections.open_reader(self._path)
                self._per_thread.connection = connection
                self._reading.append(connection)
            connection.execute("BEGIN")
            try:
                return run(SqliteTransaction(connection), self._clock.now())
            finally:
                connection.execute("ROLLBACK")
        except sqlite3.OperationalError as error:
            raise StoreUnavailableError(f"the database cannot be read now: {error}") from error


async def open_store(
    path: Path,
    clock_of: Callable[[sqlite3.Connection], Clock],
    publish: Callable[[set[str]], None],
    on_fatal: Callable[[BaseException], None],
) -> SqliteStore:
    """Open the database file, making and migrating it as needed.

    `clock_of` makes the clock from the open database, where it finds the anchor of the service clock. Raises
    DatabaseUnusableError with the file's name and what to do.
    """
    try:
        held = connections.lock(path)
        try:
            writing = connections.open_writer(path)
            try:
                migrate(writing)
                clock = clock_of(writing)
            except BaseException:
                writing.close()
                raise
        except BaseException:
            held.close()
            raise
    except (DatabaseUnusableError, sqlite3.Error) as error:
        raise DatabaseUnusableError(f"{path}: {error}") from error
    return SqliteStore(path, held, writing, clock, publish, on_fatal)
