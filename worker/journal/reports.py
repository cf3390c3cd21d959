"""The outbox: reports for the gateway, written with what they tell, and what the gateway made of each."""

from worker.clock import Clock, utc_text
from worker.journal.connection import Connection
from worker.journal.database import Database
from worker.journal.records import JournalEntry, Order, OrderStatus, Outcome, Report

MAX_ANSWER = 1_000


class Reports:
    """The reports, numbered in the order in which they were written."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def waiting_tasks(self) -> list[str]:
        """Return the tasks with undelivered reports, the one that has waited longest first."""
        rows = await self._database.rows(
            "SELECT task_id FROM outbox WHERE settled_at IS NULL GROUP BY task_id ORDER BY min(sequence)"
        )
        return [str(row["task_id"]) for row in rows]

    async def next(self, task_id: str) -> Report | None:
        """Return the oldest undelivered report of a task."""
        row = await self._database.row(
            "SELECT * FROM outbox WHERE task_id = ? AND settled_at IS NULL ORDER BY sequence LIMIT 1", (task_id,)
        )
        return None if row is None else Report.from_row(row)

    async def complete(self, sequence: int, evidence_ref: str) -> None:
        """Add the evidence to an order, and to the report that was written before it where that still waits."""

        async def work(connection: Connection) -> None:
            await connection.execute(
                "UPDATE orders SET evidence_ref = ? WHERE task_id = (SELECT task_id FROM outbox WHERE sequence = ?)",
                (evidence_ref, sequence),
            )
            await connection.execute(
                "UPDATE outbox SET evidence_ref = ? WHERE sequence = ? AND settled_at IS NULL", (evidence_ref, sequence)
            )

        await self._database.write(work)

    async def acknowledge(self, sequence: int, outcome: Outcome, answer: str) -> None:
        """Write down what the gateway made of a report; it is not sent again."""
        await self._database.execute(
            "UPDATE outbox SET settled_at = ?, outcome = ?, answer = ? WHERE sequence = ? AND settled_at IS NULL",
            (utc_text(self._clock.now()), outcome, answer[:MAX_ANSWER], sequence),
        )

    async def of_task(self, task_id: str) -> list[Report]:
        """Return all reports of a task, oldest first."""
        rows = await self._database.rows("SELECT * FROM outbox WHERE task_id = ? ORDER BY sequence", (task_id,))
        return [Report.from_row(row) for row in rows]


async def append_report(connection: Connection, now: str, order: Order, entry: JournalEntry) -> int:
    """Write the report of an entry within its transaction; return its sequence."""
    cursor = await connection.execute(
        "INSERT INTO outbox (task_id, lease_token, state, site_order_id, payable_yen, pay_deadline, evidence_ref,"
        " detail, error_code, terminal_status, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            order.task_id,
            order.lease_token,
            entry.state,
            entry.site_order_id,
            entry.payable_yen,
            None if entry.pay_deadline is None else utc_text(entry.pay_deadline),
            entry.evidence_ref,
            entry.detail,
            entry.error_code,
            None if entry.status is OrderStatus.OPEN else entry.status,
            now,
        ),
    )
    return cursor.lastrowid or 0
