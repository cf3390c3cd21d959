"""The worker's evidence on its disk: the production code, on a disk that can be full or lose power in the middle."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.simulation.loop import Process
from tests.simulation.store import Disk
from worker.evidence.store import DiskSpace, EvidenceStore, Reserve
from worker.journal.records import EvidenceFile


def no_space() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class SimEvidence(EvidenceStore):
    """Where the power fails while files are written, some of them are there and some are not."""

    def __init__(self, root: Path, process: Process, disk: Disk, written_over: Callable[[str], None]) -> None:
        super().__init__(root)
        self._process = process
        self._disk = disk
        self._written_over = written_over

    def choose_run_folder(self, task_id: str, *, recovered: bool, lease_count: int) -> str:
        if self._disk.full:
            raise no_space()
        return super().choose_run_folder(task_id, recovered=recovered, lease_count=lease_count)

    def keep(self, folder: str, step: str, page: Any, **about: Any) -> list[EvidenceFile]:
        if self._disk.full:
            raise no_space()
        self._process.sync_point(f"evidence: before {step}")
        before = {path.name for path in (self._root / folder).iterdir()} if (self._root / folder).is_dir() else set()
        files = super().keep(folder, step, page, **about)
        for file in files:
            if Path(file.path).name in before:
                self._written_over(file.path)
        alive = self._process.alive
        try:
            self._process.sync_point(f"evidence: while writing {step}")
        finally:
            if alive and not self._process.alive:  # meta.json comes last, so it is what is missing
                (self._root / files[-1].path).unlink()
        return files


class SimReserve(Reserve):
    """Holds no real space."""

    def __init__(self, disk: Disk) -> None:
        super().__init__((), reach=0)
        self._disk = disk

    def take(self) -> None:
        if self._disk.full:
            raise no_space()


class SimDiskSpace(DiskSpace):
    """Free space of a simulated disk."""

    def __init__(self, disk: Disk) -> None:
        super().__init__((), min_free_mib=0)
        self._disk = disk

    def shortage(self) -> str | None:
        return "the disk is full" if self._disk.full else None

    def reserve(self) -> Reserve:
        return SimReserve(self._disk)
