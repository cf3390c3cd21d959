"""The journal's file as transactions, one at a time.

Every transaction is committed with `synchronous=FULL`: when it returns, it is on disk, in the file itself
(docs/adr/0007-two-ways-to-flush.md).
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from worker.journal.connection import Connection, ConnectionFactory
from worker.journal.errors import unusable
from worker.journal.lock import JournalLock
from worker.journal.schema import check_pages, check_version

T = TypeVar("T")
_PRAGMAS = ("journal_mode = PERSIST", "synchronous = FULL", "foreign_keys = ON", "busy_timeout = 10000")


class Database:
    """One connection, used by one transaction at a time; and the journal's lock, where this process took it."""

    def __init__(self, connection: Connection, lock: JournalLock | None) -> None:
        self._connection = connection
        self._lock = lock
        self._turn = asyncio.Lock()
        self._running: set[asyncio.Task[Any]] = set()

    @classmethod
    async def open(cls, path: Path, connect: ConnectionFactory, lock: JournalLock | None) -> "Database":
        """Open the file; with the lock, look through it first and bring its schema up to date.

        Raises JournalError if the file cannot be opened, is damaged, not a journal, or of another schema; the lock is
        then the caller's.
        """
        try:
            connection = await connect(path)
        except sqlite3.Error as error:
            raise unusable(path, error) from error
        try:
            for pragma in _PRAGMAS:
                await connection.execute(f"PRAGMA {pragma}")
            if lock is not None:
                await check_pages(connection, path)
            await check_version(connection, path, migrate=lock is not None)
        except sqlite3.DatabaseError as error:
            await connection.close()
            raise unusable(path, error) from error
        except BaseException:
            await connection.close()
            raise
        return cls(connection, lock)

    def ensure_alone(self) -> None:
        """Raise JournalError if the lock is gone: ask before something begins; its rest is written anyhow."""
        if self._lock is not None:
            self._lock.ensure()

    async def write(self, work: Callable[[Connection], Coroutine[Any, Any, T]]) -> T:
        """Run `work` in one transaction and return when it is on disk.

        A caller that is cancelled meanwhile leaves the transaction running to its end, whole.
        """
        task = asyncio.ensure_future(self._write(work))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    async def execute(self, sql: str, parameters: Iterable[Any]) -> int:
        """Run one statement in a transaction of its own; return how many rows it changed."""

        async def work(connection: Connection) -> int:
            return (await connection.execute(sql, parameters)).rowcount

        return await self.write(work)

    async def _write(self, work: Callable[[Connection], Coroutine[Any, Any, T]]) -> T:
        async with self._transaction("BEGIN IMMEDIATE") as connection:
            return await work(connection)

    @asynccontextmanager
    async def _transaction(self, begin: str) -> AsyncIterator[Connection]:
        async with self._turn:
            await self._connection.execute(begin)
            try:
                yield self._connection
                await self._connection.execute("COMMIT")
            except BaseException:
                # A write that failed (a full disk, a limit of the file's size) may have taken it back already.
                with suppress(sqlite3.OperationalError):
                    await self._connection.execute("ROLLBACK")
                raise

    async def why_not_writable(self) -> str | None:
        """Commit a transaction that changes nothing, into the file itself; return why that failed, or None."""

        async def touch(connection: Connection) -> None:
            row = await (await connection.execute("PRAGMA user_version")).fetchone()
            await connection.execute(f"PRAGMA user_version = {0 if row is None else int(row[0])}")

        try:
            await self.write(touch)
        except sqlite3.Error as error:
            return f"the journal cannot be written ({error}, {getattr(error, 'sqlite_errorname', 'no code')})"
        return None

    async def rows(self, sql: str, parameters: Iterable[Any] = ()) -> list[sqlite3.Row]:
        """Return what one SELECT finds."""
        async with self._turn:
            cursor = await self._connection.execute(sql, parameters)
            return list(await cursor.fetchall())

    async def row(self, sql: str, parameters: Iterable[Any] = ()) -> sqlite3.Row | None:
        """Return the first row that one SELECT finds."""
        rows = await self.rows(sql, parameters)
        return rows[0] if rows else None

    async def close(self) -> None:
        """Wait for running transactions, end the connection and give the lock back."""
        await asyncio.gather(*self._running, return_exceptions=True)
        async with self._turn:
            await self._connection.close()
        if self._lock is not None:
            self._lock.release()
