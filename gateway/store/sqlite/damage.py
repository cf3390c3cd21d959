"""Damage that is looked for at every start: in the file's pages, and in the write-ahead log beside it.

SQLite itself takes a log that it cannot read for an empty one, and what was acknowledged since the last checkpoint
would be lost without a word. https://www.sqlite.org/walformat.html describes what is read here.
"""

import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from gateway.store.port import DatabaseUnusableError
from gateway.store.sqlite.failures import RESTORE

CHECKED_BYTES: Final = 128 * 1024 * 1024
"""A file up to this size is looked through at start, in half a second at most; a backup is always, when it is made."""

_HEADER: Final = 32
_FRAME_HEADER: Final = 24
_MAGIC: Final = (0x377F0682, 0x377F0683)


def check_pages(connection: sqlite3.Connection, path: Path) -> None:
    """Raise DatabaseUnusableError if the file is damaged, as far as SQLite can tell, and small enough to look."""
    if path.stat().st_size > CHECKED_BYTES:
        return
    fault = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    if fault != "ok":
        raise DatabaseUnusableError(f"it is damaged ({' '.join(fault.split())}); {RESTORE}")


def check_log(path: Path) -> None:
    """Raise DatabaseUnusableError if acknowledged commits in the write-ahead log cannot be read any more.

    Must run before SQLite opens the file. A commit that was under way when power failed is no damage: it may be torn,
    and it is the last one. Two commits behind a gap are, because each commit is flushed before the next begins.
    """
    log = path.with_name(f"{path.name}-wal")
    if not log.exists():
        return
    with log.open("rb") as file:
        header = file.read(_HEADER)
        if len(header) < _HEADER or not any(header):
            return
        magic, _version, page_size = struct.unpack_from(">III", header)
        order = ">" if magic & 1 else "<"
        if magic not in _MAGIC or _sum(order, header[:24], (0, 0)) != struct.unpack_from(">II", header, 24):
            raise _damaged(log)
        gap, behind = False, 0
        for is_whole, is_commit in _frames(order, header, file, page_size):
            gap = gap or not is_whole
            behind += gap and is_whole and is_commit
    if behind > 1:
        raise _damaged(log)


def _frames(order: str, header: bytes, file: BinaryIO, page_size: int) -> Iterator[tuple[bool, bool]]:
    """Yield whether a frame of this log is what was written after the one before it, and whether it is a commit."""
    salts, before = header[16:24], struct.unpack_from(">II", header, 24)
    size = _FRAME_HEADER + page_size
    while len(frame := file.read(size)) == size:
        if frame[8:16] != salts:
            yield False, False
            continue
        told = struct.unpack_from(">II", frame, 16)
        is_whole = _sum(order, frame[_FRAME_HEADER:], _sum(order, frame[:8], before)) == told
        yield is_whole, frame[4:8] != b"\0\0\0\0"
        before = told


def _sum(order: str, data: bytes, before: tuple[int, ...]) -> tuple[int, int]:
    first, second = before
    for one, two in struct.iter_unpack(f"{order}II", data):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + two + first) & 0xFFFFFFFF
    return first, second


def _damaged(log: Path) -> DatabaseUnusableError:
    return DatabaseUnusableError(
        f"its write-ahead log {log.name} is damaged, and acknowledged changes in it cannot be read; {RESTORE}, or move "
        "the log away to go on without them"
    )
