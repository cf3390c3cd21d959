"""What an error of SQLite means: it passes by itself or with room on the disk, or the file is damaged."""

import errno
import sqlite3
from pathlib import Path
from typing import Final

from common.file_access import next_step
from gateway.store.port import DatabaseUnusableError, StoreDamagedError, StoreUnavailableError

_PRIMARY_CODE: Final = 0xFF
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_PASSES: Final = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_INTERRUPT,
    }
)
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})

WHOLE_GROUP_FAILS: Final = _PASSES | _DAMAGED | {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
"""Primary codes after which nothing of a group of operations can be written."""

RESTORE: Final = "put a backup back with `order-gateway restore`"
"""What to do about damage."""


class DatabaseGoneError(sqlite3.OperationalError):
    """The file is not at its path any more, so what was written into it is lost with it."""


def primary_code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code."""
    return getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE


def is_undone(error: sqlite3.Error) -> bool:
    """Tell whether a COMMIT that failed so has surely not been made, also after a crash.

    No room (a full disk, a quota, a limit of the file's size), or a locked file: the record in the write-ahead log is
    not whole, and only a whole one counts. After any other error, of a flush above all, nobody knows.
    """
    no_room = getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_IOERR_WRITE
    return no_room or primary_code(error) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY)


def unavailable(error: sqlite3.Error, doing: str) -> StoreUnavailableError:
    """Return what to tell those who wanted `doing` ("read", "take writes")."""
    if primary_code(error) in _DAMAGED:
        return StoreDamagedError(f"the database is damaged and cannot {doing}: {error}; {RESTORE}")
    return StoreUnavailableError(f"the database cannot {doing} now: {error}")


def unusable(path: Path, error: Exception) -> DatabaseUnusableError | StoreUnavailableError:
    """Return what to say at start: StoreUnavailableError where a later start may succeed."""
    words = f"{path}: {error.strerror if isinstance(error, OSError) else error}"
    if isinstance(error, sqlite3.Error):
        if primary_code(error) in _PASSES:
            return StoreUnavailableError(words)
        if primary_code(error) in _DAMAGED:
            return DatabaseUnusableError(f"{words}; {RESTORE}")
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return StoreUnavailableError(words)
    return DatabaseUnusableError(words if isinstance(error, DatabaseUnusableError) else words + next_step(path))
