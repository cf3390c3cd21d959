"""What a command works on: the settings in effect here, and the journal that they name."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from typing import TypeVar

from common.exit_codes import CommandError, Exit
from common.settings import SettingsError
from worker.clock import SystemClock
from worker.journal.errors import JournalError, unusable
from worker.journal.journal import Journal
from worker.settings import WorkerSettings, load_settings

T = TypeVar("T")


def read_settings() -> WorkerSettings:
    """Read the settings. Raises CommandError."""
    try:
        return load_settings()
    except SettingsError as error:
        raise CommandError(str(error), Exit.USAGE) from error


def in_journal(settings: WorkerSettings, look: Callable[[Journal], Awaitable[T]]) -> T:
    """Return what `look` finds in the journal, beside a worker that may be running on it. Raises CommandError."""

    async def looked() -> T:
        journal = await Journal.open_beside(settings.trading_db_path, clock=SystemClock())
        try:
            return await look(journal)
        finally:
            await journal.close()

    try:
        return asyncio.run(looked())
    except (JournalError, sqlite3.Error) as error:
        raise CommandError(str(unusable(settings.trading_db_path, error)), Exit.DATABASE) from error
