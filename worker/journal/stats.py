"""How much is in the journal, for whoever watches the worker."""

from dataclasses import dataclass

from worker.journal.database import Database
from worker.journal.records import OrderStatus


@dataclass(frozen=True, slots=True)
class Stats:
    """Orders by status, orders whose click is on record, reports that the gateway has not yet taken."""

    orders: dict[OrderStatus, int]
    clicked: int
    waiting_reports: int


async def count(database: Database) -> Stats:
    """Count."""
    by_status = {
        row["status"]: int(row["count"])
        for row in await database.rows("SELECT status, count(*) AS count FROM orders GROUP BY status")
    }
    clicked = await database.row("SELECT count(*) AS count FROM clicks")
    waiting = await database.row("SELECT count(*) AS count FROM outbox WHERE settled_at IS NULL")
    return Stats(
        orders={status: by_status.get(status.value, 0) for status in OrderStatus},
        clicked=0 if clicked is None else int(clicked["count"]),
        waiting_reports=0 if waiting is None else int(waiting["count"]),
    )
