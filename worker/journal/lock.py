"""One worker process a journal, held by two locks: on a file beside it, and on the journal itself.

The lock on the journal holds whatever name leads there: a hard link, a bind mount, or after the lock beside it was
deleted. On Linux flock(2) is apart from the byte ranges that SQLite locks with fcntl(2), so the two do not meet;
elsewhere they may, and only the lock beside it is taken. POSIX drops all fcntl locks of a process on a file when any of
its descriptors is closed: this one is closed last, after SQLite's.
"""

import fcntl
import logging
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

from worker.journal.errors import JournalError, unusable

LOCK_ATTEMPTS = 4
BETWEEN_ATTEMPTS = 0.05

_log = logging.getLogger(__name__)


class JournalLock:
    """Both locks, for the life of the process.

    If one of the files is deleted or replaced, another process may take a new one, and the first may begin nothing
    more: `ensure`.
    """

    def __init__(self, journal_path: Path) -> None:
        """Take the locks of a journal that exists. Raises JournalError if another process has one of them."""
        paths = [lock_path(journal_path)]
        if sys.platform == "linux":
            paths.append(journal_path.resolve())
        self._held: list[tuple[int, Path]] = []
        for path in paths:
            descriptor = _taken(path)
            if descriptor is None:
                self.release()
                who = f"another worker process{_holder(paths[0])}"
                raise JournalError(f"{who} is using the journal {journal_path}: stop that one first")
            self._held.append((descriptor, path))
        if journal_path.stat().st_nlink > 1:
            _log.warning(
                "%s has a second name (a hard link): after a crash what was half written lies beside the name that was "
                "used; remove the other name",
                journal_path,
            )
        self._sign()

    def ensure(self) -> None:
        """Raise JournalError if one of the files is no longer the one that was taken."""
        for descriptor, path in self._held:
            if not _lies_at(descriptor, path):
                what = "the lock" if path.suffix == ".lock" else "the journal"
                raise JournalError(
                    f"{what} {path} was deleted or replaced while this worker ran, so another one may use its journal: "
                    "nothing new is begun here; see that only one is running, and start it again"
                )

    def _sign(self) -> None:
        beside, _ = self._held[0]
        with suppress(OSError):  # the number is for people; the lock holds without it
            os.ftruncate(beside, 0)
            os.pwrite(beside, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Give them back; SQLite must have closed the journal before."""
        while self._held:
            os.close(self._held.pop()[0])


def lock_path(journal_path: Path) -> Path:
    """Where a journal's lock lies: beside the file itself, so that a symbolic link leads to the same one."""
    file = journal_path.resolve()
    return file.with_name(file.name + ".lock")


def is_in_use(journal_path: Path) -> bool:
    """Return True if a worker process holds the journal now. Not for a process that has a transaction open on it.

    Raises JournalError if this process may not look.
    """
    paths = [lock_path(journal_path)]
    if sys.platform == "linux":
        paths.append(journal_path)
    return any(_is_locked(path) for path in paths)


def _is_locked(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise unusable(path, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _taken(path: Path) -> int | None:
    """Return a descriptor of the locked file at that path; None if another process has it."""
    for _ in range(LOCK_ATTEMPTS):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            locked = False
        else:
            locked = _lies_at(descriptor, path)
        if locked:
            return descriptor
        os.close(descriptor)
        time.sleep(BETWEEN_ATTEMPTS)  # `is_in_use` holds it for an instant
    return None


def _lies_at(descriptor: int, path: Path) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.stat())
    return False


def _holder(lock: Path) -> str:
    holder = b""
    with suppress(OSError):
        holder = lock.read_bytes()[:20]
    return f" (pid {holder.decode()})" if holder.isdigit() else ""
