"""Comparing the catalogue with the tasks, by the site's order number (docs/specification.md#reconciliation).

A difference is found when the site has been read, stands once, and goes when it holds no longer.
"""

from collections.abc import Iterable

from gateway.domain.catalog import Discrepancy, DiscrepancyKind, DiscrepancyPage, DiscrepancySlice
from gateway.domain.instant import Instant
from gateway.domain.states import OrderState
from gateway.store.port import Row, Transaction

_ABOVE_ALL_ROWS = 2**63 - 1


def compare_orders(tx: Transaction, now: Instant, site: str, order_numbers: Iterable[str]) -> None:
    """Find out which of the orders that the site shows no task knows, and which have moved on."""
    for number in order_numbers:
        tx.change("catalog_unknown_add", site=site, order_number=number, at=now.utc)
        tx.change("catalog_moved_on_add", site=site, order_number=number, at=now.utc)
    tx.change("catalog_settled_drop")


def find_missing(tx: Transaction, now: Instant, site: str, *, since: str, until: str) -> int:
    """Find the tasks whose order a complete list from `since` did not show; return how many are new.

    Only orders that the list must have shown count: their task was filed after `since`, and they were told by `until`.
    A task that says itself that its order was cancelled is left out: such an order may well be off the list.
    """
    return tx.change("catalog_missing_add", site=site, since=since, until=until, at=now.utc)


def list_discrepancies(
    tx: Transaction, _now: Instant, kind: DiscrepancyKind | None, site: str | None, below: int | None, count: int
) -> DiscrepancyPage:
    """Return up to `count` differences that hold now, older than row `below` (None: from the newest), newest first."""
    tx.change("catalog_settled_drop")
    rows = tx.all(
        "catalog_discrepancies_newest",
        kind=kind,
        site=site,
        below=_ABOVE_ALL_ROWS if below is None else below,
        count=count + 1,
        skip=0,
    )
    found = tuple(_discrepancy(row) for row in rows[:count])
    return DiscrepancyPage(found, found[-1].row if len(rows) > count else None)


def slice_discrepancies(
    tx: Transaction, _now: Instant, kind: DiscrepancyKind | None, site: str | None, skip: int, count: int
) -> DiscrepancySlice:
    """Return up to `count` differences that hold now after the newest `skip`, and how many there are in all."""
    tx.change("catalog_settled_drop")
    rows = tx.all("catalog_discrepancies_newest", kind=kind, site=site, below=_ABOVE_ALL_ROWS, count=count, skip=skip)
    total = tx.one("catalog_discrepancies_count", kind=kind, site=site)
    return DiscrepancySlice(tuple(_discrepancy(row) for row in rows), 0 if total is None else total["count"])


def _discrepancy(row: Row) -> Discrepancy:
    return Discrepancy(
        row=row["row"],
        kind=DiscrepancyKind(row["kind"]),
        site=row["site"],
        order_number=row["order_number"],
        task_id=row["task_id"],
        task_state=None if row["task_state"] is None else OrderState(row["task_state"]),
        site_state=None if row["site_state"] is None else OrderState(row["site_state"]),
        found_at=row["found_at"],
    )
