"""The journal as a whole: how it is opened, and its parts by subject. Every method is one transaction, on disk when it
returns.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from worker.clock import Clock, utc_text
from worker.journal.claims import Claims
from worker.journal.connection import ConnectionFactory, connect_on_thread, make_private_file
from worker.journal.database import Database
from worker.journal.errors import JournalError, unusable
from worker.journal.evidence import EvidenceIndex
from worker.journal.lock import JournalLock
from worker.journal.orders import Orders
from worker.journal.reclaims import Reclaims
from worker.journal.reports import Reports
from worker.journal.rows import journal_id
from worker.journal.stats import Stats, count

_log = logging.getLogger(__name__)


class Journal:
    """The journal. Open it with `open` (the worker) or `open_beside` (the commands, beside a running worker)."""

    def __init__(self, database: Database, clock: Clock, journal_id: str) -> None:
        self.journal_id = journal_id
        self.orders = Orders(database, clock)
        self.claims = Claims(database, clock)
        self.reports = Reports(database, clock)
        self.evidence = EvidenceIndex(database, clock)
        self.reclaims = Reclaims(database, clock)
        self._database = database

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        clock: Clock,
        new_id: Callable[[], str],
        connect: ConnectionFactory = connect_on_thread,
        take_lock: Callable[[Path], JournalLock] = JournalLock,
    ) -> "Journal":
        """Lock, make or migrate, and open the journal.

        Raises JournalError if another process has it, or it cannot be opened or written.
        """
        made = new_id()
        async with AsyncExitStack() as undo:
            try:
                make_private_file(path)
                lock = take_lock(path)
                undo.callback(lock.release)
                database = await Database.open(path, connect, lock)
                undo.push_async_callback(database.close)
                name = await database.write(lambda connection: journal_id(connection, made, utc_text(clock.now())))
            except (OSError, sqlite3.Error) as error:
                raise unusable(path, error) from error
            undo.pop_all()
        if name == made:
            place = await asyncio.to_thread(path.absolute)
            _log.warning("a new, empty journal was made: %s; if there is one already, put its path right", place)
        return cls(database, clock, name)

    @classmethod
    async def open_beside(
        cls, path: Path, *, clock: Clock, connect: ConnectionFactory = connect_on_thread
    ) -> "Journal":
        """Open an existing journal without its lock, beside a worker that may be running on it.

        To read it, and to file requests in `reclaims`. Raises JournalError.
        """
        place = await asyncio.to_thread(path.absolute)
        try:
            found = await asyncio.to_thread(place.is_file)
        except OSError as error:
            raise unusable(path, error) from error
        if not found:
            raise JournalError(
                f"there is no journal at {place}; is this the worker's folder, and are these its settings "
                "(RAKUTEN_TRADING_DB_PATH)? A worker makes its journal when it starts for the first time"
            )
        database = await Database.open(path, connect, None)
        row = await database.row("SELECT journal_id FROM journal")
        return cls(database, clock, str(row["journal_id"]) if row else "")

    def ensure_alone(self) -> None:
        """Raise JournalError if the lock is gone: ask before something begins; its rest is written anyhow."""
        self._database.ensure_alone()

    async def why_not_writable(self) -> str | None:
        """Return why nothing can be written down now; None if something has just been."""
        return await self._database.why_not_writable()

    async def stats(self) -> Stats:
        """Return how much there is, for whoever watches the worker."""
        return await count(self._database)

    async def close(self) -> None:
        """Finish what is being written and give the lock back."""
        await self._database.close()
