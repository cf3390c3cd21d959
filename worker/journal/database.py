"""The journal's file: its connection, its schema, its transactions.

The connection comes from a factory: production runs SQLite on aiosqlite's thread; a simulation passes one with the same
interface that runs inline. Every transaction is committed with `synchronous=FULL`: when it returns, it is on disk, in
the file itself (docs/adr/0007-two-ways-to-flush.md).
"""

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import aiosqlite

from worker.journal.lock import JournalError

T = TypeVar("T")
SCHEMA = files("worker.journal") / "schema"
_PRAGMAS = ("journal_mode = PERSIST", "synchronous = FULL", "foreign_keys = ON", "busy_timeout = 10000")
_DAMAGED = (
    "it is damaged, or another kind of file. A journal is the authority on what was ordered: keep it, look at every "
    "open task on the site, and only then start with a new one (docs/runbook.md)"
)
_PRIMARY_CODE = 0xFF


class Cursor(Protocol):
    """The part of aiosqlite's cursor that the journal uses."""

    async def fetchone(self) -> sqlite3.Row | None:
        """The next row."""
        ...

    async def fetchall(self) -> Iterable[sqlite3.Row]:
        """The rows that are left."""
        ...

    @property
    def lastrowid(self) -> int | None:
        """The row that an INSERT made."""
        ...

    @property
    def rowcount(self) -> int:
        """How many rows the statement changed."""
        ...


class Connection(Protocol):
    """The part of aiosqlite's connection that the journal uses."""

    def execute(self, sql: str, parameters: Iterable[Any] | None = None) -> Awaitable[Cursor]:
        """Runs one statement."""
        ...

    def executescript(self, sql_script: str) -> Awaitable[Cursor]:
        """Runs statements."""
        ...

    async def close(self) -> None:
        """Ends the connection."""
        ...


ConnectionFactory = Callable[[Path], Awaitable[Connection]]


async def connect_on_thread(path: Path) -> Connection:
    """A connection whose statements run on a thread of their own, so that a flush does not hold up the loop."""
    connection = await aiosqlite.connect(path, isolation_level=None, timeout=10)
    connection.row_factory = sqlite3.Row
    return cast("Connection", connection)


def make_private_file(path: Path) -> None:
    """Sees to it that the journal exists and only its owner can read it (it holds lease tokens)."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    path.chmod(0o600)


class Database:
    """One connection, used by one transaction at a time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._turn = asyncio.Lock()
        self._running: set[asyncio.Task[Any]] = set()

    @classmethod
    async def open(cls, path: Path, connect: ConnectionFactory, *, migrate: bool) -> "Database":
        """Opens the file, looking through it and bringing its schema up to date if `migrate`.

        Raises JournalError if the file is damaged, not a journal, or of another schema.
        """
        connection = await connect(path)
        try:
            for pragma in _PRAGMAS:
                await connection.execute(f"PRAGMA {pragma}")
            if migrate:
                await _check_pages(connection, path)
            await _check_schema(connection, path, migrate=migrate)
        except sqlite3.DatabaseError as error:
            await connection.close()
            raise JournalError(f"{path} cannot be used as a journal: {_why(error)}") from error
        except BaseException:
            await connection.close()
            raise
        return cls(connection)

    async def write(self, work: Callable[[Connection], Coroutine[Any, Any, T]]) -> T:
        """Runs `work` in one transaction and returns when it is on disk.

        A caller that is cancelled meanwhile leaves the transaction running to its end, whole.
        """
        task = asyncio.ensure_future(self._write(work))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

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
        """Commits a transaction that changes nothing, through the log and into the file; None if that succeeds."""

        async def touch(connection: Connection) -> None:
            row = await (await connection.execute("PRAGMA user_version")).fetchone()
            await connection.execute(f"PRAGMA user_version = {0 if row is None else int(row[0])}")

        try:
            await self.write(touch)
        except sqlite3.Error as error:
            return f"the journal cannot be written ({error}, {getattr(error, 'sqlite_errorname', 'no code')})"
        return None

    async def rows(self, sql: str, parameters: Iterable[Any] = ()) -> list[sqlite3.Row]:
        """What one SELECT finds."""
        async with self._turn:
            cursor = await self._connection.execute(sql, parameters)
            return list(await cursor.fetchall())

    async def row(self, sql: str, parameters: Iterable[Any] = ()) -> sqlite3.Row | None:
        """The first row that one SELECT finds."""
        rows = await self.rows(sql, parameters)
        return rows[0] if rows else None

    async def close(self) -> None:
        """Waits for running transactions and ends the connection."""
        await asyncio.gather(*self._running, return_exceptions=True)
        async with self._turn:
            await self._connection.close()


async def _check_pages(connection: Connection, path: Path) -> None:
    """A click record on a page that cannot be read must not be taken for one that was never made."""
    row = await (await connection.execute("PRAGMA quick_check(1)")).fetchone()
    if row is None or row[0] != "ok":
        raise JournalError(f"{path} cannot be used as a journal: {_DAMAGED}")


def _why(error: sqlite3.DatabaseError) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE
    return _DAMAGED if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) else str(error)


async def _check_schema(connection: Connection, path: Path, *, migrate: bool) -> None:
    migrations = sorted((entry for entry in SCHEMA.iterdir() if entry.name.endswith(".sql")), key=lambda e: e.name)
    row = await (await connection.execute("PRAGMA user_version")).fetchone()
    version = int(row[0]) if row else 0
    if version > len(migrations):
        raise JournalError(f"{path} has schema {version} of a newer version; this one knows {len(migrations)}")
    if version < len(migrations) and not migrate:
        raise JournalError(f"{path} has schema {version}, this version needs {len(migrations)}: start the worker once")
    for number, migration in enumerate(migrations[version:], start=version + 1):
        try:
            await connection.executescript(
                f"BEGIN IMMEDIATE;\n{migration.read_text('utf-8')}\nPRAGMA user_version = {number};\nCOMMIT;"
            )
        except sqlite3.Error as error:
            raise JournalError(f"{path}: migration {migration.name} failed: {error}") from error
