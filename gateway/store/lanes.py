"""A lane a target: its oldest queued task and the one in execution, which the database itself keeps up to date."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from common.target import Target
from gateway.store.port import ReadTransaction

_PAGE: Final = 500


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """A queued task without its intent. `queued_us`: since when, by the service clock; 0 where nobody wrote it down."""

    task_id: str
    target: Target
    created_at: str
    queued_us: int


def head(tx: ReadTransaction, target: Target) -> int | None:
    """Return the row of the target's task that was filed first of those that may be handed out."""
    row = tx.one("lane_head", site=target.site, account=target.account)
    return None if row is None else int(row["head_row"])


def longest_waiting(tx: ReadTransaction, count: int) -> list[QueueEntry]:
    """Return of up to `count` targets the task that is handed out next, the one filed first at first."""
    return [
        QueueEntry(row["task_id"], Target(row["site"], row["account"]), row["created_at"], row["queued_us"] or 0)
        for row in tx.all("lanes_longest_waiting", count=count)
    ]


def counts(tx: ReadTransaction) -> dict[str, int]:
    """Return how many targets are known, have queued tasks, and have a task in execution."""
    row = tx.one("lanes_count")
    return {} if row is None else {name: int(row[name]) for name in ("known", "queued", "active")}


def ready(tx: ReadTransaction, site: str) -> Iterator[tuple[int, Target]]:
    """Yield the site's targets that have a queued task and none in execution, with its row, the lowest first."""
    after = 0
    while True:
        found = tx.all("lanes_ready", site=site, after=after, count=_PAGE)
        for row in found:
            after = row["head_row"]
            yield after, Target(site, row["account"])
        if len(found) < _PAGE:
            return
