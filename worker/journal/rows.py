"""Reading and writing single rows of the journal, within a transaction."""

import sqlite3
from collections.abc import Iterable
from typing import Any

from worker.journal.connection import Connection
from worker.journal.records import Order


async def first_row(connection: Connection, sql: str, parameters: Iterable[Any]) -> sqlite3.Row | None:
    """Return the first row that a SELECT finds within a transaction."""
    return await (await connection.execute(sql, parameters)).fetchone()


async def journal_id(connection: Connection, made: str, now: str) -> str:
    """Return the journal's name: the one that it has, else `made`, which it has from then on."""
    await connection.execute(
        "INSERT INTO journal (singleton, journal_id, created_at) VALUES (1, ?, ?) ON CONFLICT DO NOTHING", (made, now)
    )
    row = await first_row(connection, "SELECT journal_id FROM journal", ())
    return made if row is None else str(row["journal_id"])


async def find_order(connection: Connection, task_id: str) -> Order | None:
    """Return what is known of a task; None if it is not."""
    row = await first_row(connection, "SELECT * FROM orders WHERE task_id = ?", (task_id,))
    return None if row is None else Order.from_row(row)


async def known_order(connection: Connection, task_id: str) -> Order:
    """Return what is known of a task. Raises LookupError."""
    order = await find_order(connection, task_id)
    if order is None:
        raise LookupError(f"the journal does not know the task {task_id}")
    return order


async def append_transition(
    connection: Connection,
    now: str,
    before: Order | None,
    after: Order,
    event: str,
    evidence_ref: str | None,
    detail: str,
) -> None:
    """Write a line of an order's history."""
    await connection.execute(
        "INSERT INTO transitions (task_id, at, event, from_state, to_state, from_status, to_status, evidence_ref,"
        " detail) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            after.task_id,
            now,
            event,
            before and before.state,
            after.state,
            before and before.status,
            after.status,
            evidence_ref,
            detail,
        ),
    )
