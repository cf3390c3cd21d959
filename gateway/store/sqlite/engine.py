"""The SQLite store as a whole: opens, migrates, runs operations, closes."""

import logging
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from gateway.domain.instant import Clock, Instant
from gateway.store.gathering import OnCommit, ignore_commit
from gateway.store.grouped import GroupedStore
from gateway.store.port import DatabaseUnusableError, ReadTransaction, Transaction
from gateway.store.sqlite import connection as connections
from gateway.store.sqlite.damage import check_log, check_pages
from gateway.store.sqlite.failures import WHOLE_GROUP_FAILS, primary_code, unavailable, unusable
from gateway.store.sqlite.file_lock import FileLock
from gateway.store.sqlite.schema import migrate, migrations
from gateway.store.sqlite.transaction import SqliteTransaction
from gateway.store.sqlite.writer import GroupWriter

T = TypeVar("T")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Database:
    """The opened file: its locks, and the connection that writes, at the newest schema."""

    path: Path
    lock: FileLock
    writing: sqlite3.Connection

    def transaction(self) -> Transaction:
        """Return access for the time before the store runs."""
        return SqliteTransaction(self.writing)

    def close(self) -> None:
        """Give the file back; only for a database that no store has taken over."""
        self.writing.close()
        self.lock.close()


def open_database(path: Path) -> Database:
    """Open the file, making and migrating it as needed.

    Raises DatabaseUnusableError with its name and what to do, StoreUnavailableError where a later start may succeed.
    """
    try:
        lock = FileLock(path)
        try:
            check_log(path.resolve())
            writing = connections.open_writer(path)
            try:
                if migrate(writing) == len(migrations()):
                    _log.warning(
                        "a new, empty database was made: %s; if there is one already, stop the gateway and put "
                        "RAKUTEN_GATEWAY_DB_PATH right",
                        path.absolute(),
                    )
                check_pages(writing, path)
                connections.undo_in_memory(writing)
            except BaseException:
                writing.close()
                raise
        except BaseException:
            lock.close()
            raise
    except (DatabaseUnusableError, sqlite3.Error, OSError) as error:
        raise unusable(path, error) from error
    return Database(path, lock, writing)


class SqliteStore(GroupedStore):
    """Implements the port `Store` on one SQLite file, which it closes at its own end."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        publish: Callable[[set[str]], None],
        on_fatal: Callable[[BaseException], None],
        on_commit: OnCommit = ignore_commit,
    ) -> None:
        self._database = database
        self._clock = clock
        still_there = database.lock.lies_at_path
        super().__init__(GroupWriter(database.writing, clock, publish, on_fatal, on_commit, still_there=still_there))
        self._per_thread = threading.local()
        self._reading: list[sqlite3.Connection] = []

    async def close(self) -> None:
        """Finish what is queued and give everything back; the file then holds everything, without a log beside it."""
        # Only a connection that writes, closed as the last one, brings the log into the file.
        self._reader_threads.shutdown()
        for connection in self._reading:
            connection.close()
        await self._writer.close()
        self._database.lock.close()

    def _read(self, run: Callable[[ReadTransaction, Instant], T]) -> T:
        try:
            connection: sqlite3.Connection | None = getattr(self._per_thread, "connection", None)
            if connection is None:
                connection = connections.open_reader(self._database.path)
                self._per_thread.connection = connection
                self._reading.append(connection)
            connection.execute("BEGIN")
            try:
                return run(SqliteTransaction(connection), self._clock.now())
            finally:
                connection.execute("ROLLBACK")
        except sqlite3.DatabaseError as error:
            if primary_code(error) not in WHOLE_GROUP_FAILS:
                raise
            failure = unavailable(error, "be read")
            _log.error("%s", failure)
            raise failure from error
