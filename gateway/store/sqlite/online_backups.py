"""Makes online backups one at a time, in a thread, and ends early when the gateway stops."""

import asyncio
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from gateway.domain.operations import BackupFacts
from gateway.domain.refusals import Reason, Refusal
from gateway.store.port import StoreUnavailableError
from gateway.store.sqlite.backup import BackupInterruptedError, back_up

_SEPARATORS: Final = str.maketrans("", "", "-:.")

_log = logging.getLogger(__name__)


class OnlineBackups:
    """Backs up one database file into one folder. `wall_utc` names the backups."""

    def __init__(self, source: Path, folder: Path, wall_utc: Callable[[], str]) -> None:
        self._source = source
        self._folder = folder
        self._wall_utc = wall_utc
        self._stopping = threading.Event()
        self._running: asyncio.Task[BackupFacts] | None = None

    async def create(self) -> BackupFacts | Refusal:
        """Make a backup and verify it. It goes on to its end though the caller may have gone away."""
        if self._stopping.is_set():
            return Refusal(Reason.SHUTTING_DOWN, "the gateway is stopping; come back")
        if self._running is not None and not self._running.done():
            return Refusal(Reason.TOO_MANY, "another backup is being made; wait for its end")
        self._running = asyncio.create_task(
            asyncio.to_thread(back_up, self._source, self._folder, self._name(), self._stopping.is_set)
        )
        try:
            facts = await asyncio.shield(self._running)
        except BackupInterruptedError:
            return Refusal(Reason.SHUTTING_DOWN, "the gateway is stopping and has given up the backup; come back")
        except StoreUnavailableError as error:
            _log.error("%s", error)
            return Refusal(Reason.STORE_UNAVAILABLE, str(error))
        _log.info("backup=%s bytes=%d tasks=%d", facts.file_name, facts.size_bytes, facts.task_count)
        return facts

    async def close(self) -> None:
        """Give up a backup that is being made, and wait until nothing is left of it."""
        self._stopping.set()
        if self._running is not None:
            await asyncio.gather(self._running, return_exceptions=True)

    def _name(self) -> str:
        stem = f"gateway-{self._wall_utc().translate(_SEPARATORS)}"
        number, name = 1, f"{stem}.db"
        while (self._folder / name).exists():
            number += 1
            name = f"{stem}-{number}.db"
        return name
