"""The connection to the journal's file, and the file itself.

It comes from a factory: production runs SQLite on aiosqlite's thread; a simulation passes one with the same interface
that runs inline.
"""

import asyncio
import os
import sqlite3
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, Protocol, cast

import aiosqlite


class Cursor(Protocol):
    """The part of aiosqlite's cursor that the journal uses."""

    async def fetchone(self) -> sqlite3.Row | None:
        """Return the next row."""
        ...

    async def fetchall(self) -> Iterable[sqlite3.Row]:
        """Return the rows that are left."""
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
        """Run one statement."""
        ...

    def executescript(self, sql_script: str) -> Awaitable[Cursor]:
        """Run statements."""
        ...

    async def close(self) -> None:
        """End the connection."""
        ...


ConnectionFactory = Callable[[Path], Awaitable[Connection]]


async def connect_on_thread(path: Path) -> Connection:
    """Open a connection whose statements run on a thread of their own, so that a flush does not hold up the loop.

    Raises sqlite3.Error.
    """
    # Opened before aiosqlite's thread begins: where that fails in it, the thread answers once more, to a loop that may
    # be closed, and a traceback follows the one line that tells what to do.
    opened = await asyncio.to_thread(sqlite3.connect, path, isolation_level=None, timeout=10, check_same_thread=False)
    connection = await aiosqlite.Connection(lambda: opened, iter_chunk_size=64)
    connection.row_factory = sqlite3.Row
    return cast("Connection", connection)


def make_private_file(path: Path) -> None:
    """Make the journal's file if there is none, readable by its owner alone: it holds lease tokens.

    Its folder is made, but none above it: where that is missing too, the path is more likely to be wrong.
    """
    path.parent.mkdir(exist_ok=True, mode=0o700)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    path.chmod(0o600)
