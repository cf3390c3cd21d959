"""The locks on journals in a simulation: a dead process holds none, and there are places where locks do not hold."""

from pathlib import Path

from tests.simulation.loop import PROCESS, Process
from worker.journal.errors import JournalError


class Locks:
    """Those of one run."""

    def __init__(self, *, hold: bool) -> None:
        self._hold = hold
        self._holders: dict[Path, Process] = {}

    def take(self, journal_path: Path) -> "Lock":
        """What a worker's process does first. Raises JournalError if another one has it."""
        process = PROCESS.get()
        assert process is not None
        holder = self._holders.get(journal_path)
        if self._hold and holder is not None and holder.alive:
            raise JournalError(f"another worker process is using the journal {journal_path}")
        self._holders[journal_path] = process
        return Lock(self._holders, journal_path, process)


class Lock:
    """A lock that was taken."""

    def __init__(self, holders: dict[Path, Process], journal_path: Path, process: Process) -> None:
        self._holders = holders
        self._path = journal_path
        self._process = process

    def ensure(self) -> None:
        """Nobody can delete it here."""

    def release(self) -> None:
        """Gives it back."""
        if self._holders.get(self._path) is self._process:
            del self._holders[self._path]
