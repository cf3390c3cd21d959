"""The journal as a whole: how it is opened, and its parts by subject. Every method is one transaction, on disk when it
returns.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

from worker.clock import Clock, utc_text
from worker.journal.claims import Claims
from worker.journal.connection import Connection, ConnectionFactory, connect_on_thread, make_private_file
from worker.journal.database import Database
from worker.journal.evidence import EvidenceIndex
from worker.journal.lock import JournalError, JournalLock
from worker.journal.orders import Orders
from worker.journal.reclaims import Reclaims
from worker.journal.reports import Reports
from worker.journal.stats import Stats, count


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
        """Lock, make or migrate, and open the journal. Raises JournalError if another process has it."""
        make_private_file(path)
        lock = take_lock(path)
        try:
            database = await Database.open(path, connect, lock)
        except BaseException:
            lock.release()
            raise
        made = new_id()

        async def name(connection: Connection) -> str:
            await connection.execute(
                "INSERT INTO journal (singleton, journal_id, created_at) VALUES (1, ?, ?) ON CONFLICT DO NOTHING",
                (made, utc_text(clock.now())),
            )
            row = await (await connection.execute("SELECT journal_id FROM journal")).fetchone()
            return made if row is None else str(row["journal_id"])

        return cls(database, clock, await database.write(name))

    @classmethod
    async def open_beside(
        cls, path: Path, *, clock: Clock, connect: ConnectionFactory = connect_on_thread
    ) -> "Journal":
        """Open an existing journal without its lock, beside a worker that may be running on it.

        To read it, and to file requests in `reclaims`. Raises JournalError.
        """
        place = await asyncio.to_thread(path.absolute)
        if not await asyncio.to_thread(place.is_file):
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
