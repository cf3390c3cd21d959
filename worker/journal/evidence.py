"""The index of the evidence files on disk."""

from collections.abc import Iterable

from worker.clock import Clock, utc_text
from worker.journal.connection import Connection
from worker.journal.database import Database
from worker.journal.records import EvidenceFile


class EvidenceIndex:
    """Which files a task has, and what they were when they were written. Append-only."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(self, task_id: str, evidence: Iterable[EvidenceFile]) -> None:
        """Add files that are on disk."""
        now = utc_text(self._clock.now())
        entries = list(evidence)

        async def work(connection: Connection) -> None:
            for entry in entries:
                await connection.execute(
                    "INSERT INTO evidence (path, task_id, evidence_ref, sha256, bytes, written_at)"
                    " VALUES (?, ?, ?, ?, ?, ?)",
                    (entry.path, task_id, entry.evidence_ref, entry.sha256, entry.size, now),
                )

        await self._database.write(work)

    async def of_task(self, task_id: str) -> list[EvidenceFile]:
        """Return a task's evidence files, by path."""
        rows = await self._database.rows("SELECT * FROM evidence WHERE task_id = ? ORDER BY path", (task_id,))
        return [EvidenceFile(row["path"], row["evidence_ref"], row["sha256"], row["bytes"]) for row in rows]
