"""A lane a target: its oldest queued task and the one in execution, which the database itself keeps up to date."""

from collections.abc import Iterator
from typing import Final

from common.target import Target
from gateway.store.port import ReadTransaction, Transaction

_PAGE: Final = 500


def add(tx: Transaction, target: Target) -> None:
    """Know a target for which nothing was filed yet."""
    tx.change_any("lane_add", site=target.site, account=target.account)


def longest_waiting(tx: ReadTransaction, count: int) -> list[tuple[Target, int]]:
    """Return up to `count` targets whose oldest queued tasks came first, and since when each waits.

    By the service clock; 0 where nobody wrote that down.
    """
    rows = tx.all("lanes_longest_waiting", count=count)
    return [(Target(row["site"], row["account"]), row["queued_us"] or 0) for row in rows]


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
