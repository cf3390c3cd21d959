"""A lane a target: its oldest queued task and the one in execution, which the database itself keeps up to date."""

from collections.abc import Iterator
from typing import Final

from common.target import Target
from gateway.store.port import ReadTransaction, Transaction

_PAGE: Final = 500


def add(tx: Transaction, target: Target) -> None:
    """Know a target for which nothing was filed yet."""
    tx.change_any("lane_add", site=target.site, account=target.account)


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
