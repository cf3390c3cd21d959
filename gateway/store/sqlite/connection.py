"""Opening the database file: durable settings, and clear words where it fails."""

import os
import sqlite3
from pathlib import Path
from typing import Final

from gateway.store.port import DatabaseUnusableError
from gateway.store.sqlite.schema import check_ours

LOG_BYTES: Final = 8 * 1024 * 1024
"""What the write-ahead log may keep on the disk: about twice what gathers in it between two checkpoints."""

_BUSY_SECONDS: Final = 2.0
"""How long opening and reading wait for another program that holds the file."""


def open_writer(path: Path, *, allow_moved: bool = False) -> sqlite3.Connection:
    """Open the connection that writes. The file is made with mode 0600.

    Raises DatabaseUnusableError (another program's file, one that was moved to a server, no WAL), OSError,
    sqlite3.Error.
    """
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    connection = _open(f"file:{quoted(path)}?mode=rw")
    try:
        _prepare(connection, allow_moved=allow_moved)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, *, allow_moved: bool) -> None:
    # Before anything is changed: another program's file stays as it is.
    check_ours(connection, allow_moved=allow_moved)
    if connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
        raise DatabaseUnusableError("its folder does not support SQLite's WAL mode (a network share?)")
    # An acknowledgement promises that the data is on disk, so every commit is flushed.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    # Once everything in the log is in the file, the log is cut to this; else it keeps the size of its longest day.
    connection.execute(f"PRAGMA journal_size_limit = {LOG_BYTES}")
    # The writer waits for a locked file by itself, in a thread: SQLite would wait in the event loop.
    connection.execute("PRAGMA busy_timeout = 0")


def undo_in_memory(connection: sqlite3.Connection) -> None:
    """Keep in memory what a statement would need to be taken back, some pages, and write it to no temporary file.

    For a database that is ready: a migration that makes an index sorts more than memory should hold.
    """
    connection.execute("PRAGMA temp_store = MEMORY")


def open_reader(path: Path) -> sqlite3.Connection:
    """Open a connection that only reads."""
    connection = _open(f"file:{quoted(path)}?mode=ro")
    connection.execute("PRAGMA query_only = ON")
    return connection


def _open(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        uri,
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=_BUSY_SECONDS,
        cached_statements=256,
    )
    connection.row_factory = sqlite3.Row
    return connection


def quoted(path: Path) -> str:
    """Return a path as it stands in a `file:` URI of SQLite."""
    return path.as_posix().replace("%", "%25").replace("?", "%3f").replace("#", "%23")
