"""Online backups by SQLite's own backup API, verified before they count, and putting one back in place.

A copy of the file is no backup: the newest commits are in the write-ahead log beside it. The backup is taken from one
snapshot while writers go on, made one plain file, checked, and only then given its name.
"""

import contextlib
import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from gateway.domain.operations import BackupFacts
from gateway.store.port import DatabaseUnusableError, StoreUnavailableError
from gateway.store.sqlite import connection as connections
from gateway.store.sqlite import moved
from gateway.store.sqlite.schema import APPLICATION_ID, migrations

_PAGES_A_STEP: Final = 2_048
_INSTRUCTIONS_A_LOOK: Final = 50_000
_HASH_BYTES: Final = 1 << 20

Progress = Callable[[int, int], None]
"""Gets how many pages are left, and how many there are in all."""


class BackupInterruptedError(Exception):
    """The gateway is stopping; what was begun is gone again."""


def back_up(source: Path, folder: Path, name: str, stopping: Callable[[], bool]) -> BackupFacts:
    """Write a verified backup of the database `source` into `folder`, readable by the owner only.

    Blocks until it is on disk. Raises StoreUnavailableError (no room, unreadable), BackupInterruptedError.
    """
    partial = folder / f".{name}.partial"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for left_over in folder.glob(".*.partial"):
            left_over.unlink()
        os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            held = _copy(source, partial, stopping)
            facts = inspect(partial, name, stopping)
            _compare(facts, held)
            _flush(partial)
            partial.rename(folder / name)
            _flush(folder)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    except (OSError, sqlite3.Error, DatabaseUnusableError) as error:
        if stopping():
            raise BackupInterruptedError from error
        raise StoreUnavailableError(f"no backup could be made in {folder}: {error}") from error
    return facts


def inspect(path: Path, name: str | None = None, stopping: Callable[[], bool] = lambda: False) -> BackupFacts:
    """Verify a backup: one of our databases, of a version that we know, whole, with its references intact.

    Changes nothing. Raises DatabaseUnusableError naming the file and what is wrong, OSError if it cannot be read.
    """
    try:
        return _inspect(path, name, stopping)
    except DatabaseUnusableError as error:
        raise DatabaseUnusableError(f"{path}: {error}") from error


def _inspect(path: Path, name: str | None, stopping: Callable[[], bool]) -> BackupFacts:
    size = path.stat().st_size
    try:
        with contextlib.closing(_open_alone(path)) as connection:
            _watch(connection, stopping)
            if _number(connection, "PRAGMA application_id") not in (APPLICATION_ID, moved.APPLICATION_ID):
                raise DatabaseUnusableError("it is no backup of a gateway's database")
            version, known = _number(connection, "PRAGMA user_version"), len(migrations())
            if version > known:
                raise DatabaseUnusableError(f"it has schema version {version}, this program knows up to {known}")
            fault = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if fault != "ok":
                raise DatabaseUnusableError(f"it is damaged: {fault}")
            if connection.execute("PRAGMA foreign_key_check").fetchone() is not None:
                raise DatabaseUnusableError("it is damaged: a row refers to another that is not there")
            last, tasks = _counts(connection)
    except sqlite3.DatabaseError as error:
        raise DatabaseUnusableError(f"it is damaged or no database: {error}") from error
    return BackupFacts(name or path.name, size, _sha256(path, stopping), last, tasks)


def place(backup: Path, target: Path, aside: Path, prepare: Callable[[Path], None], progress: Progress) -> bool:
    """Put a verified backup in the place of `target`, whose lock the caller holds; True if one was there to set aside.

    `prepare` works on the copy before it counts. The old database goes to `aside` first, whole with its log, and the
    new one takes its name in one step, so that after a crash at any moment `target` is a whole database, old or new.
    """
    fresh = target.with_name(f"{target.name}.restoring")
    for path in _with_logs(fresh):
        path.unlink(missing_ok=True)
    os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with contextlib.closing(_open_alone(backup)) as source, contextlib.closing(sqlite3.connect(fresh)) as copy:
            source.backup(copy, pages=_PAGES_A_STEP, progress=lambda _status, left, total: progress(left, total))
        prepare(fresh)
        _one_file(fresh)
        _flush(fresh)
        existed = target.exists()
        if existed:
            _set_aside(target, aside)
        fresh.rename(target)
        _flush(target.parent)
    except BaseException:
        for path in _with_logs(fresh):
            path.unlink(missing_ok=True)
        raise
    return existed


def _copy(source: Path, partial: Path, stopping: Callable[[], bool]) -> tuple[int, int]:
    """Copy one snapshot, and return what it held: the number of its last event, and its tasks."""

    def look(_status: int, _left: int, _total: int) -> None:
        if stopping():
            raise BackupInterruptedError

    with (
        contextlib.closing(connections.open_reader(source)) as reading,
        contextlib.closing(sqlite3.connect(partial)) as writing,
    ):
        _watch(reading, stopping)
        # The snapshot is held from here on; without it the backup would begin anew with every commit of the writer.
        reading.execute("BEGIN")
        counts = _counts(reading)
        reading.backup(writing, pages=_PAGES_A_STEP, progress=look, sleep=0)
    _one_file(partial)
    return counts


def _compare(facts: BackupFacts, held: tuple[int, int]) -> None:
    if (facts.last_event_sequence, facts.task_count) != held:
        raise DatabaseUnusableError(f"the copy is not what the database held: {facts} instead of {held}")


def _set_aside(target: Path, aside: Path) -> None:
    try:
        _one_file(target)
    except sqlite3.Error:
        # Too damaged to be opened: its log goes with it, and must never meet the new database.
        for old, kept in zip(_with_logs(target), _with_logs(aside), strict=True):
            if old != target and old.exists():
                old.rename(kept)
    os.link(target, aside)


def _one_file(path: Path) -> None:
    """Bring everything from the write-ahead log into the file, and do away with the log."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        mode = connection.execute("PRAGMA journal_mode = DELETE").fetchone()[0]
    if mode != "delete":
        raise sqlite3.OperationalError("its write-ahead log is in use")


def _with_logs(path: Path) -> tuple[Path, ...]:
    return path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")


def _open_alone(path: Path) -> sqlite3.Connection:
    """Open a file that nobody writes, without leaving anything beside it."""
    return sqlite3.connect(
        f"file:{connections.quoted(path)}?mode=ro&immutable=1", uri=True, isolation_level=None, check_same_thread=False
    )


def _counts(connection: sqlite3.Connection) -> tuple[int, int]:
    return (
        _number(connection, "SELECT coalesce(max(sequence), 0) FROM events"),
        _number(connection, "SELECT count(*) FROM tasks"),
    )


def _number(connection: sqlite3.Connection, sql: str) -> int:
    return int(connection.execute(sql).fetchone()[0])


def _watch(connection: sqlite3.Connection, stopping: Callable[[], bool]) -> None:
    """Let long statements end early when the gateway stops."""
    connection.set_progress_handler(lambda: int(stopping()), _INSTRUCTIONS_A_LOOK)


def _sha256(path: Path, stopping: Callable[[], bool]) -> str:
    digest = hashlib.sha256()
    for block in _blocks(path):
        if stopping():
            raise BackupInterruptedError
        digest.update(block)
    return digest.hexdigest()


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(_HASH_BYTES):
            yield block


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
