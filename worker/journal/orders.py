"""The orders that this worker ever took: their leases, what is known of each, and its history."""

from datetime import datetime

from worker.clock import Clock, from_utc_text, utc_text
from worker.journal.carryable import carryable
from worker.journal.connection import Connection
from worker.journal.database import Database
from worker.journal.records import JournalEntry, LeasedTask, Order, OrderStatus, Taken, Transition
from worker.journal.reports import append_report
from worker.journal.rows import append_transition, find_order, first_row, known_order


class Orders:
    """The orders. Every change appends to the order's history; those that the gateway must hear of, to the outbox."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def take_lease(self, lease: LeasedTask) -> Taken | None:
        """Write a lease down. None if this very lease (its token) was taken before: it must be dropped.

        Raises JournalError if the journal's lock is gone.
        """
        self._database.ensure_alone()
        now = utc_text(self._clock.now())

        async def work(connection: Connection) -> Taken | None:
            before = await find_order(connection, lease.task_id)
            if await first_row(connection, "SELECT 1 FROM leases WHERE lease_token = ?", (lease.lease_token,)):
                return None
            if before is None:
                await connection.execute(
                    "INSERT INTO orders (task_id, site, account, intent_json, task_created_at, state, status,"
                    " lease_token, run_folder, created_at, updated_at)"
                    " VALUES (?, ?, ?, ?, ?, 'created', 'open', ?, '', ?, ?)",
                    (
                        lease.task_id,
                        lease.site,
                        lease.account,
                        lease.intent_json,
                        utc_text(lease.task_created_at),
                        lease.lease_token,
                        now,
                        now,
                    ),
                )
            else:
                await connection.execute(
                    "UPDATE orders SET lease_token = ?, updated_at = ? WHERE task_id = ?",
                    (lease.lease_token, now, lease.task_id),
                )
            await connection.execute(
                "INSERT INTO leases (lease_token, task_id, lease_count, taken_at) VALUES (?, ?, ?, ?)",
                (lease.lease_token, lease.task_id, lease.lease_count, now),
            )
            order = await known_order(connection, lease.task_id)
            await append_transition(connection, now, before, order, "leased", None, f"lease {lease.lease_count}")
            return Taken(order=order, known=before is not None)

        return await self._database.write(work)

    async def lease_count(self, task_id: str) -> int:
        """Return how many leases of the task this journal has taken."""
        row = await self._database.row("SELECT count(*) FROM leases WHERE task_id = ?", (task_id,))
        return int(row[0]) if row else 0

    async def use_run_folder(self, task_id: str, folder: str) -> None:
        """Write down where this run keeps its evidence."""
        await self._database.execute("UPDATE orders SET run_folder = ? WHERE task_id = ?", (folder, task_id))

    async def find(self, task_id: str) -> Order | None:
        """Return what is known of a task."""
        row = await self._database.row("SELECT * FROM orders WHERE task_id = ?", (task_id,))
        return None if row is None else Order.from_row(row)

    async def latest(self, limit: int) -> list[Order]:
        """Return the orders touched last, newest first."""
        rows = await self._database.rows("SELECT * FROM orders ORDER BY updated_at DESC, task_id LIMIT ?", (limit,))
        return [Order.from_row(row) for row in rows]

    async def to_monitor(self, ended_since: datetime) -> list[Order]:
        """Return the ended orders that are on the site and may still move."""
        rows = await self._database.rows(
            "SELECT * FROM orders WHERE status <> 'open' AND site_order_id IS NOT NULL"
            " AND state NOT IN ('delivered', 'cancelled') AND ended_at >= ? ORDER BY updated_at",
            (utc_text(ended_since),),
        )
        return [Order.from_row(row) for row in rows]

    async def numbers_of_others(self, task_id: str, site: str) -> frozenset[str]:
        """Return the order numbers that this journal knows for other tasks of the site."""
        rows = await self._database.rows(
            "SELECT site_order_id FROM orders WHERE site = ? AND task_id <> ? AND site_order_id IS NOT NULL",
            (site, task_id),
        )
        return frozenset(str(row["site_order_id"]) for row in rows)

    async def history(self, task_id: str) -> list[Transition]:
        """Return an order's history, oldest first."""
        rows = await self._database.rows("SELECT * FROM transitions WHERE task_id = ? ORDER BY id", (task_id,))
        names = ("event", "from_state", "to_state", "from_status", "to_status", "evidence_ref", "detail")
        return [
            Transition(id=row["id"], at=from_utc_text(row["at"]), **{name: row[name] for name in names}) for row in rows
        ]

    async def record(self, task_id: str, entry: JournalEntry) -> int:
        """Write what happened together with its report; return the report's sequence.

        What a report cannot carry is left out, and described in its words.
        """
        entry = carryable(entry)
        now = utc_text(self._clock.now())

        async def work(connection: Connection) -> int:
            before = await known_order(connection, task_id)
            status = entry.status if before.status is OrderStatus.OPEN else before.status
            await connection.execute(
                "UPDATE orders SET state = ?, status = ?, site_order_id = coalesce(?, site_order_id),"
                " payable_yen = coalesce(?, payable_yen), pay_deadline = coalesce(?, pay_deadline),"
                " evidence_ref = coalesce(?, evidence_ref), detail = coalesce(nullif(?, ''), detail),"
                " error_code = coalesce(?, error_code), updated_at = ?,"
                " ended_at = CASE WHEN ? = 'open' THEN NULL ELSE coalesce(ended_at, ?) END WHERE task_id = ?",
                (
                    entry.state,
                    status,
                    entry.site_order_id,
                    entry.payable_yen,
                    None if entry.pay_deadline is None else utc_text(entry.pay_deadline),
                    entry.evidence_ref,
                    entry.detail,
                    entry.error_code,
                    now,
                    status,
                    now,
                    task_id,
                ),
            )
            order = await known_order(connection, task_id)
            await append_transition(connection, now, before, order, entry.event, entry.evidence_ref, entry.detail)
            return await append_report(connection, now, order, entry)

        return await self._database.write(work)

    async def begin_again(self, task_id: str) -> Order:
        """Open an order that ended as needs_human with nothing clicked; return it. Raises sqlite3.IntegrityError for
        any other.
        """
        now = utc_text(self._clock.now())

        async def work(connection: Connection) -> Order:
            before = await known_order(connection, task_id)
            await connection.execute(
                "UPDATE orders SET status = 'open', ended_at = NULL, detail = '', error_code = NULL, updated_at = ?"
                " WHERE task_id = ?",
                (now, task_id),
            )
            order = await known_order(connection, task_id)
            await append_transition(connection, now, before, order, "begun again", None, "put back into the queue")
            return order

        return await self._database.write(work)

    async def note(self, task_id: str, event: str, detail: str) -> None:
        """Append to an order's history without changing or reporting anything."""
        now = utc_text(self._clock.now())

        async def work(connection: Connection) -> None:
            order = await known_order(connection, task_id)
            await append_transition(connection, now, order, order, event, None, detail)

        await self._database.write(work)

    async def note_deadline_alert(self, task_id: str) -> bool:
        """Write down that a payment deadline was told; True the first time."""
        changed = await self._database.execute(
            "UPDATE orders SET deadline_alerted_at = ? WHERE task_id = ? AND deadline_alerted_at IS NULL",
            (utc_text(self._clock.now()), task_id),
        )
        return changed == 1
