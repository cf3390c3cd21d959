"""What the worker writes down and reads back. Every method is one transaction, on disk when it returns."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ordergateway.v1 import order_leases_pb2 as pb

from worker.clock import Clock, from_utc_text, utc_text
from worker.gateway.wire import from_timestamp
from worker.journal.carryable import carryable
from worker.journal.database import (
    Connection,
    ConnectionFactory,
    Database,
    connect_on_thread,
    make_private_file,
)
from worker.journal.lock import JournalError, JournalLock
from worker.journal.records import (
    EvidenceFile,
    JournalEntry,
    Order,
    OrderStatus,
    Outcome,
    ReclaimRequest,
    ReclaimStatus,
    Report,
    Transition,
)
from worker.journal.rows import append_transition, find_order, first_row, known_order
from worker.journal.stats import Stats, count


class AlreadyRecordedError(Exception):
    """The click or the payment of this task is on record: it must not be made (again)."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A lease that is new to the journal; `known` True if the task itself was not."""

    order: Order
    known: bool


class Journal:
    """The journal. Open it with `open` (the worker) or `look_into` (the commands beside a running worker)."""

    def __init__(self, database: Database, clock: Clock, journal_id: str, lock: JournalLock | None) -> None:
        self._database = database
        self._clock = clock
        self._lock = lock
        self.journal_id = journal_id

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
        """Locks, makes or migrates, and opens the journal. Raises JournalError if another process has it."""
        make_private_file(path)
        lock = take_lock(path)
        try:
            database = await Database.open(path, connect, migrate=True)
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

        return cls(database, clock, await database.write(name), lock)

    @classmethod
    async def look_into(cls, path: Path, *, clock: Clock, connect: ConnectionFactory = connect_on_thread) -> "Journal":
        """Opens an existing journal without its lock, to read it and to file wishes. Raises JournalError."""
        place = await asyncio.to_thread(path.absolute)
        if not await asyncio.to_thread(place.is_file):
            raise JournalError(
                f"there is no journal at {place}; is this the worker's folder, and are these its settings "
                "(RAKUTEN_TRADING_DB_PATH)? A worker makes its journal when it starts for the first time"
            )
        database = await Database.open(path, connect, migrate=False)
        row = await database.row("SELECT journal_id FROM journal")
        return cls(database, clock, str(row["journal_id"]) if row else "", None)

    async def close(self) -> None:
        """Finishes what is being written and gives the lock back."""
        await self._database.close()
        if self._lock is not None:
            self._lock.release()

    # Leases and orders

    async def take_lease(self, lease: pb.Lease) -> Taken | None:
        """Writes a lease down. None if this very lease (its token) was taken before: it must be dropped.

        Raises JournalError if the journal's lock is gone.
        """
        self.ensure_alone()
        now = utc_text(self._clock.now())

        async def work(connection: Connection) -> Taken | None:
            before = await find_order(connection, lease.task_id)
            if await first_row(connection, "SELECT 1 FROM leases WHERE lease_token = ?", (lease.lease_token,)):
                return None
            if before is None:
                created = utc_text(from_timestamp(lease.task_created_at))
                await connection.execute(
                    "INSERT INTO orders (task_id, site, intent_json, task_created_at, state, status, lease_token,"
                    " run_folder, created_at, updated_at) VALUES (?, ?, ?, ?, 'created', 'open', ?, '', ?, ?)",
                    (lease.task_id, lease.site, lease.intent_json, created, lease.lease_token, now, now),
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
        """How many leases of the task this journal has taken."""
        row = await self._database.row("SELECT count(*) FROM leases WHERE task_id = ?", (task_id,))
        return int(row[0]) if row else 0

    async def use_run_folder(self, task_id: str, folder: str) -> None:
        """Notes where this run keeps its evidence."""
        await self._statement("UPDATE orders SET run_folder = ? WHERE task_id = ?", (folder, task_id))

    async def order(self, task_id: str) -> Order | None:
        """What is known of a task."""
        row = await self._database.row("SELECT * FROM orders WHERE task_id = ?", (task_id,))
        return None if row is None else Order.from_row(row)

    async def orders(self, limit: int) -> list[Order]:
        """The orders touched last, newest first."""
        rows = await self._database.rows("SELECT * FROM orders ORDER BY updated_at DESC, task_id LIMIT ?", (limit,))
        return [Order.from_row(row) for row in rows]

    async def orders_to_monitor(self, ended_since: datetime) -> list[Order]:
        """Ended orders that are on the site and may still move."""
        rows = await self._database.rows(
            "SELECT * FROM orders WHERE status <> 'open' AND site_order_id IS NOT NULL"
            " AND state NOT IN ('delivered', 'cancelled') AND ended_at >= ? ORDER BY updated_at",
            (utc_text(ended_since),),
        )
        return [Order.from_row(row) for row in rows]

    async def site_order_ids_of_others(self, task_id: str, site: str) -> frozenset[str]:
        """Order numbers that this journal knows for other tasks of the site."""
        rows = await self._database.rows(
            "SELECT site_order_id FROM orders WHERE site = ? AND task_id <> ? AND site_order_id IS NOT NULL",
            (site, task_id),
        )
        return frozenset(str(row["site_order_id"]) for row in rows)

    async def note_deadline_alert(self, task_id: str) -> bool:
        """True the first time: a payment deadline is told once."""
        changed = await self._statement(
            "UPDATE orders SET deadline_alerted_at = ? WHERE task_id = ? AND deadline_alerted_at IS NULL",
            (utc_text(self._clock.now()), task_id),
        )
        return changed == 1

    async def transitions(self, task_id: str) -> list[Transition]:
        """An order's history, oldest first."""
        rows = await self._database.rows("SELECT * FROM transitions WHERE task_id = ? ORDER BY id", (task_id,))
        names = ("event", "from_state", "to_state", "from_status", "to_status", "evidence_ref", "detail")
        return [
            Transition(id=row["id"], at=from_utc_text(row["at"]), **{name: row[name] for name in names}) for row in rows
        ]

    # What happens to an order

    async def record(self, task_id: str, entry: JournalEntry) -> int:
        """Writes what happened together with its report; returns the report's sequence.

        What a report cannot carry is left out, and described in its words.
        """
        entry = carryable(entry)
        now = utc_text(self._clock.now())

        async def work(connection: Connection) -> int:
            before = await known_order(connection, task_id)
            status = entry.status if before.status is OrderStatus.OPEN else before.status
            deadline = None if entry.pay_deadline is None else utc_text(entry.pay_deadline)
            facts = (
                entry.site_order_id,
                entry.payable_yen,
                deadline,
                entry.evidence_ref,
                entry.detail,
                entry.error_code,
            )
            await connection.execute(
                "UPDATE orders SET state = ?, status = ?, site_order_id = coalesce(?, site_order_id),"
                " payable_yen = coalesce(?, payable_yen), pay_deadline = coalesce(?, pay_deadline),"
                " evidence_ref = coalesce(?, evidence_ref), detail = coalesce(nullif(?, ''), detail),"
                " error_code = coalesce(?, error_code), updated_at = ?,"
                " ended_at = CASE WHEN ? = 'open' THEN NULL ELSE coalesce(ended_at, ?) END WHERE task_id = ?",
                (entry.state, status, *facts, now, status, now, task_id),
            )
            order = await known_order(connection, task_id)
            await append_transition(connection, now, before, order, entry.event, entry.evidence_ref, entry.detail)
            terminal = None if entry.status is OrderStatus.OPEN else entry.status
            cursor = await connection.execute(
                "INSERT INTO outbox (task_id, lease_token, state, site_order_id, payable_yen, pay_deadline,"
                " evidence_ref, detail, error_code, terminal_status, created_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (task_id, order.lease_token, entry.state, *facts, terminal, now),
            )
            return cursor.lastrowid or 0

        return await self._database.write(work)

    async def begin_again(self, task_id: str) -> Order:
        """Opens an order that ended as needs_human with nothing clicked; returns it. Raises sqlite3.IntegrityError for
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
        """Appends to an order's history without changing or reporting anything."""
        now = utc_text(self._clock.now())

        async def work(connection: Connection) -> None:
            order = await known_order(connection, task_id)
            await append_transition(connection, now, order, order, event, None, detail)

        await self._database.write(work)

    async def record_click(self, task_id: str, lease_token: str) -> None:
        """Claims the one click of this task. Raises AlreadyRecordedError if it was claimed before, by anyone."""
        await self._claim(
            task_id,
            "click recorded",
            "INSERT INTO clicks (task_id, lease_token, recorded_at) VALUES (?, ?, ?)",
            (task_id, lease_token),
        )

    async def record_payment(self, task_id: str, site_order_id: str) -> None:
        """Claims the one payment of this task. Raises AlreadyRecordedError if it was claimed before."""
        await self._claim(
            task_id,
            "payment recorded",
            "INSERT INTO payments (task_id, site_order_id, recorded_at) VALUES (?, ?, ?)",
            (task_id, site_order_id),
        )

    async def _claim(self, task_id: str, event: str, insert: str, values: tuple[str, str]) -> None:
        self.ensure_alone()
        now = utc_text(self._clock.now())

        async def work(connection: Connection) -> None:
            order = await known_order(connection, task_id)
            await connection.execute(insert, (*values, now))
            await append_transition(connection, now, order, order, event, None, "")

        try:
            await self._database.write(work)
        except sqlite3.IntegrityError as error:
            raise AlreadyRecordedError(f"{event} before for {task_id}") from error

    def ensure_alone(self) -> None:
        """Raises JournalError if the lock is gone: ask before something begins; its rest is written anyhow."""
        if self._lock is not None:
            self._lock.ensure()

    async def why_not_writable(self) -> str | None:
        """Why nothing can be written down now; None if something has just been."""
        return await self._database.why_not_writable()

    async def has_click(self, task_id: str) -> bool:
        """True if this journal holds a click record of the task."""
        return await self._database.row("SELECT 1 FROM clicks WHERE task_id = ?", (task_id,)) is not None

    async def has_payment(self, task_id: str) -> bool:
        """True if this journal holds a payment record of the task."""
        return await self._database.row("SELECT 1 FROM payments WHERE task_id = ?", (task_id,)) is not None

    # Evidence

    async def index_evidence(self, task_id: str, evidence: Iterable[EvidenceFile]) -> None:
        """Adds files that are on disk to the index."""
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

    async def evidence(self, task_id: str) -> list[EvidenceFile]:
        """A task's evidence files, by path."""
        rows = await self._database.rows("SELECT * FROM evidence WHERE task_id = ? ORDER BY path", (task_id,))
        return [EvidenceFile(row["path"], row["evidence_ref"], row["sha256"], row["bytes"]) for row in rows]

    async def stats(self) -> Stats:
        """How much there is, for whoever watches the worker."""
        return await count(self._database)

    # Outbox

    async def tasks_with_waiting_reports(self) -> list[str]:
        """Tasks with undelivered reports, the one that has waited longest first."""
        rows = await self._database.rows(
            "SELECT task_id FROM outbox WHERE settled_at IS NULL GROUP BY task_id ORDER BY min(sequence)"
        )
        return [str(row["task_id"]) for row in rows]

    async def next_report(self, task_id: str) -> Report | None:
        """The oldest undelivered report of a task."""
        row = await self._database.row(
            "SELECT * FROM outbox WHERE task_id = ? AND settled_at IS NULL ORDER BY sequence LIMIT 1", (task_id,)
        )
        return None if row is None else Report.from_row(row)

    async def acknowledge_report(self, sequence: int, outcome: Outcome, answer: str) -> None:
        """Notes what the gateway made of a report; it is not sent again."""
        await self._statement(
            "UPDATE outbox SET settled_at = ?, outcome = ?, answer = ? WHERE sequence = ? AND settled_at IS NULL",
            (utc_text(self._clock.now()), outcome, answer[:1000], sequence),
        )

    async def reports(self, task_id: str) -> list[Report]:
        """All reports of a task, oldest first."""
        rows = await self._database.rows("SELECT * FROM outbox WHERE task_id = ? ORDER BY sequence", (task_id,))
        return [Report.from_row(row) for row in rows]

    # Wishes to reclaim

    async def file_reclaim_request(self, task_id: str, *, requested_by: str = "", reason: str = "") -> int:
        """Files a wish, or answers the open one for the same task; returns its number."""
        now = utc_text(self._clock.now())

        async def work(connection: Connection) -> int:
            open_reclaim_request = await first_row(
                connection,
                "SELECT id FROM reclaim_wishes WHERE task_id = ? AND status IN ('waiting', 'taken')",
                (task_id,),
            )
            if open_reclaim_request:
                return int(open_reclaim_request["id"])
            cursor = await connection.execute(
                "INSERT INTO reclaim_wishes (task_id, filed_at, status, updated_at, requested_by, reason)"
                " VALUES (?, ?, 'waiting', ?, ?, ?)",
                (task_id, now, now, requested_by, reason),
            )
            return cursor.lastrowid or 0

        return await self._database.write(work)

    async def reclaim_request(self, number: int) -> ReclaimRequest | None:
        """A wish."""
        row = await self._database.row("SELECT * FROM reclaim_wishes WHERE id = ?", (number,))
        return None if row is None else ReclaimRequest.from_row(row)

    async def last_reclaim_request(self, task_id: str) -> ReclaimRequest | None:
        """The newest wish for a task."""
        row = await self._database.row(
            "SELECT * FROM reclaim_wishes WHERE task_id = ? ORDER BY id DESC LIMIT 1", (task_id,)
        )
        return None if row is None else ReclaimRequest.from_row(row)

    async def next_reclaim_request(self) -> ReclaimRequest | None:
        """The oldest wish that waits."""
        row = await self._database.row("SELECT * FROM reclaim_wishes WHERE status = 'waiting' ORDER BY id LIMIT 1")
        return None if row is None else ReclaimRequest.from_row(row)

    async def move_reclaim_request(self, number: int, status: ReclaimStatus, note: str) -> None:
        """Notes where a wish stands."""
        await self._statement(
            "UPDATE reclaim_wishes SET status = ?, note = ?, updated_at = ? WHERE id = ?",
            (status, note[:1000], utc_text(self._clock.now()), number),
        )

    async def interrupt_taken_reclaim_requests(self) -> None:
        """At start, and after a turn that failed: a wish in nobody's hand is over; whoever filed it decides again."""
        await self._statement(
            "UPDATE reclaim_wishes SET status = 'interrupted', note = ?, updated_at = ? WHERE status = 'taken'",
            ("the worker ended, or had a full disk, while it was executing this request", utc_text(self._clock.now())),
        )

    async def _statement(self, sql: str, parameters: Iterable[Any]) -> int:
        async def work(connection: Connection) -> int:
            return (await connection.execute(sql, parameters)).rowcount

        return await self._database.write(work)
