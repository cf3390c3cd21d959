"""What may happen once a task and never again: the click and the payment. Each is claimed here before it is made."""

import sqlite3

from worker.clock import Clock, utc_text
from worker.journal.connection import Connection
from worker.journal.database import Database
from worker.journal.rows import append_transition, known_order


class AlreadyRecordedError(Exception):
    """The click or the payment of this task is on record: it must not be made (again)."""


class Claims:
    """The click records and the payment records."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def record_click(self, task_id: str, lease_token: str) -> None:
        """Claim the one click of this task. Raises AlreadyRecordedError if it was claimed before, by anyone, and
        JournalError if the journal's lock is gone.
        """
        await self._claim(
            task_id,
            "click recorded",
            "INSERT INTO clicks (task_id, lease_token, recorded_at) VALUES (?, ?, ?)",
            (task_id, lease_token),
        )

    async def record_payment(self, task_id: str, site_order_id: str) -> None:
        """Claim the one payment of this task. Raises AlreadyRecordedError if it was claimed before, no click of this
        journal precedes it, or the number is another task's on the same site, and JournalError if the journal's lock
        is gone.
        """
        await self._claim(
            task_id,
            "payment recorded",
            "INSERT INTO payments (task_id, site_order_id, recorded_at) VALUES (?, ?, ?)",
            (task_id, site_order_id),
        )

    async def has_click(self, task_id: str) -> bool:
        """Return True if this journal holds a click record of the task."""
        return await self._database.row("SELECT 1 FROM clicks WHERE task_id = ?", (task_id,)) is not None

    async def has_payment(self, task_id: str) -> bool:
        """Return True if this journal holds a payment record of the task."""
        return await self._database.row("SELECT 1 FROM payments WHERE task_id = ?", (task_id,)) is not None

    async def _claim(self, task_id: str, event: str, insert: str, values: tuple[str, str]) -> None:
        self._database.ensure_alone()
        now = utc_text(self._clock.now())

        async def work(connection: Connection) -> None:
            order = await known_order(connection, task_id)
            await connection.execute(insert, (*values, now))
            await append_transition(connection, now, order, order, event, None, "")

        try:
            await self._database.write(work)
        except sqlite3.IntegrityError as error:
            raise AlreadyRecordedError(f"{event} before for {task_id}") from error
