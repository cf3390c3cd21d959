"""Requests of a person that a stale task be taken again, handed to the worker that runs on this journal."""

from worker.clock import Clock, utc_text
from worker.journal.connection import Connection
from worker.journal.database import Database
from worker.journal.records import ReclaimRequest, ReclaimStatus
from worker.journal.rows import first_row

MAX_NOTE = 1_000


class Reclaims:
    """The reclaim requests; at most one a task is open."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def file(self, task_id: str, *, requested_by: str = "", reason: str = "") -> int:
        """File a request, or find the open one for the same task; return its number."""
        now = utc_text(self._clock.now())

        async def work(connection: Connection) -> int:
            still_open = await first_row(
                connection,
                "SELECT id FROM reclaim_wishes WHERE task_id = ? AND status IN ('waiting', 'taken')",
                (task_id,),
            )
            if still_open:
                return int(still_open["id"])
            cursor = await connection.execute(
                "INSERT INTO reclaim_wishes (task_id, filed_at, status, updated_at, requested_by, reason)"
                " VALUES (?, ?, 'waiting', ?, ?, ?)",
                (task_id, now, now, requested_by, reason),
            )
            return cursor.lastrowid or 0

        return await self._database.write(work)

    async def find(self, number: int) -> ReclaimRequest | None:
        """Return a request."""
        row = await self._database.row("SELECT * FROM reclaim_wishes WHERE id = ?", (number,))
        return None if row is None else ReclaimRequest.from_row(row)

    async def last(self, task_id: str) -> ReclaimRequest | None:
        """Return the newest request for a task."""
        row = await self._database.row(
            "SELECT * FROM reclaim_wishes WHERE task_id = ? ORDER BY id DESC LIMIT 1", (task_id,)
        )
        return None if row is None else ReclaimRequest.from_row(row)

    async def next(self) -> ReclaimRequest | None:
        """Return the oldest request that waits."""
        row = await self._database.row("SELECT * FROM reclaim_wishes WHERE status = 'waiting' ORDER BY id LIMIT 1")
        return None if row is None else ReclaimRequest.from_row(row)

    async def move(self, number: int, status: ReclaimStatus, note: str) -> None:
        """Write down where a request stands."""
        await self._database.execute(
            "UPDATE reclaim_wishes SET status = ?, note = ?, updated_at = ? WHERE id = ?",
            (status, note[:MAX_NOTE], utc_text(self._clock.now()), number),
        )

    async def interrupt_taken(self) -> None:
        """End every request that nobody executes: at start, and after a turn that failed. Whoever filed it decides
        again.
        """
        await self._database.execute(
            "UPDATE reclaim_wishes SET status = 'interrupted', note = ?, updated_at = ? WHERE status = 'taken'",
            ("the worker ended, or had a full disk, while it was executing this request", utc_text(self._clock.now())),
        )
