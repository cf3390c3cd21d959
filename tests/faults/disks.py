"""Disks without room, for real: a small file system of its own, and a limit that works without privileges."""

import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

_CAP_SYS_ADMIN = 21
_EFFECTIVE = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff"))
CAN_MOUNT = bool(int(_EFFECTIVE.split()[1], 16) >> _CAP_SYS_ADMIN & 1)


class Disk(Protocol):
    """A folder whose room can be taken and given back while processes use it."""

    folder: Path

    def fill(self, pid: int, *, leave: int = 0) -> None:
        """Takes all room but `leave` bytes from the process `pid`."""
        ...

    def make_room(self, pid: int) -> None:
        """Gives it back."""
        ...


@dataclass
class SmallDisk:
    """A tmpfs; a file takes all its room, so writes end with ENOSPC."""

    folder: Path

    def fill(self, pid: int, *, leave: int = 0) -> None:
        del pid
        room = os.statvfs(self.folder)
        size = room.f_bavail * room.f_frsize - leave
        descriptor = os.open(self.folder / "ballast", os.O_WRONLY | os.O_CREAT)
        try:
            os.posix_fallocate(descriptor, 0, size)
        finally:
            os.close(descriptor)

    def make_room(self, pid: int) -> None:
        del pid
        (self.folder / "ballast").unlink()


@dataclass
class LimitedFiles:
    """A limit of each file's size, below what the files have: writes end with EFBIG, as with EDQUOT under a quota."""

    folder: Path

    def fill(self, pid: int, *, leave: int = 0) -> None:
        limit(pid, leave)

    def make_room(self, pid: int) -> None:
        limit(pid, resource.RLIM_INFINITY)


def limit(pid: int, size: int) -> None:
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


@contextmanager
def small_disk(folder: Path, size: str = "48m") -> Iterator[SmallDisk]:
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def limited_files(folder: Path) -> Iterator[LimitedFiles]:
    folder.mkdir()
    yield LimitedFiles(folder)


DISKS: list[Callable[[Path], AbstractContextManager[Disk]]] = [limited_files, *([small_disk] if CAN_MOUNT else [])]
"""What a test of a full disk runs on: everywhere the limit, and a file system of its own where one can be mounted."""
