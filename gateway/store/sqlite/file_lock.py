"""One process a database, held by two locks: on a file beside it, and on the database file itself.

The lock beside it holds while the database is put in place or replaced, and tells people who has it. The one on the
file holds whatever name leads there: a hard link, a bind mount, or after the lock beside it was deleted. On Linux
flock(2) is apart from the byte ranges that SQLite locks with fcntl(2), so the two do not meet; elsewhere they may, and
only the lock beside it is taken. POSIX drops all fcntl locks of a process on a file when any of its descriptors is
closed: this one is closed last, after SQLite's.
"""

import fcntl
import logging
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from common.file_access import next_step
from gateway.store.port import DatabaseUnusableError

_ATTEMPTS: Final = 4

_log = logging.getLogger(__name__)


class FileLock:
    """Both locks, from now until `close`."""

    def __init__(self, path: Path, *, create: bool = True) -> None:
        """Take them. `create`: make the database file, with mode 0600, if it is not there.

        Raises DatabaseUnusableError if another process holds one of them or the folder cannot be written, OSError if
        the database file cannot be opened.
        """
        self._path = path.resolve()
        self._beside_path = self._path.with_name(self._path.name + ".lock")
        try:
            # None above it: where that is missing too, the path is more likely to be wrong.
            self._path.parent.mkdir(exist_ok=True)
            self.beside = self._take(self._beside_path)
            """Descriptor of the file beside it."""
        except OSError as error:
            raise DatabaseUnusableError(
                f"{self._beside_path} cannot be opened ({error.strerror}){next_step(self._beside_path)}"
            ) from error
        self._file: int | None = None
        self._closed = False
        try:
            if sys.platform == "linux" and (create or self._path.exists()):
                self._file = self._take(self._path)
                self._warn_of_other_names()
        except BaseException:
            os.close(self.beside)
            raise
        with suppress(OSError):  # the number is for people; the lock holds without it
            os.ftruncate(self.beside, 0)
            os.pwrite(self.beside, str(os.getpid()).encode("ascii"), 0)

    def lies_at_path(self) -> bool:
        """Tell whether the database that is locked still is the one that the path leads to."""
        with suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(self._file), self._path.stat()) if self._file is not None else True
        return False

    def close(self) -> None:
        """Give them back, once; SQLite must have closed the file before."""
        if not self._closed:
            self._closed = True
            if self._file is not None:
                os.close(self._file)
            os.close(self.beside)

    def _take(self, path: Path) -> int:
        """Open and lock a file, which must lie at its path when it is locked: another may just have been put there."""
        for _ in range(_ATTEMPTS):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
                    return descriptor
            except BlockingIOError:
                os.close(descriptor)
                break
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)
        raise DatabaseUnusableError(self._refusal())

    def _refusal(self) -> str:
        holder = b""
        with suppress(OSError):
            holder = self._beside_path.read_bytes()[:20]
        number = f" (pid {holder.decode()})" if holder.isdigit() else ""
        return f"another gateway process has it open{number}; stop that one first"

    def _warn_of_other_names(self) -> None:
        if self._file is not None and os.fstat(self._file).st_nlink > 1:
            _log.warning(
                "%s has a second name (a hard link): after a crash the newest commits lie beside the name that was "
                "used, and the other one shows an older state; remove the other name",
                self._path,
            )
