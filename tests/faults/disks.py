"""Disks without room, for real: a small file system of its own, and a limit that works without privileges."""

import os
import resource
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest


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


def mount(folder: Path, size: str) -> bool:
    """Tells whether it is mounted; it takes root, and not every container lets root do it."""
    command = ("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder)
    return os.geteuid() == 0 and subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 0


def unmount(folder: Path) -> None:
    subprocess.run(["umount", "--lazy", folder], check=True)


def can_mount() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        mounted = mount(Path(folder), "1m")
        if mounted:
            unmount(Path(folder))
    return mounted


@contextmanager
def small_disk(folder: Path) -> Iterator[SmallDisk]:
    folder.mkdir()
    assert mount(folder, "48m")
    try:
        yield SmallDisk(folder)
    finally:
        unmount(folder)


@contextmanager
def limited_files(folder: Path) -> Iterator[LimitedFiles]:
    folder.mkdir()
    yield LimitedFiles(folder)


every_disk = pytest.mark.parametrize(
    "make_disk",
    [pytest.param(limited_files, id="limit"), pytest.param(small_disk, id="mount", marks=pytest.mark.needs("mount"))],
)
"""What a test of a full disk runs on: everywhere the limit, and a file system of its own where one can be mounted."""


MakeName = Callable[[Path, Path], AbstractContextManager[None]]


@contextmanager
def linked(path: Path, other: Path) -> Iterator[None]:
    """A hard link, until the folder is gone."""
    other.hardlink_to(path)
    yield


@contextmanager
def bound(path: Path, other: Path) -> Iterator[None]:
    """The file alone, mounted under another name."""
    other.touch()
    subprocess.run(["mount", "--bind", path, other], check=True)
    try:
        yield
    finally:
        unmount(other)


every_other_name = pytest.mark.parametrize(
    "make_name",
    [
        pytest.param(linked, id="hard link"),
        pytest.param(bound, id="bind mount", marks=pytest.mark.needs("mount")),
    ],
)
"""Other names of one file that do not lead to the lock beside it."""
