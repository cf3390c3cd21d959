"""Comparing the catalogue with the tasks, by the site's order number (docs/specification.md#reconciliation).

A difference is found when the site has been read, stands once, and goes when it holds no longer.
"""

from collections.abc import Iterable

from common.target import Target
from gateway.domain.catalog import CatalogFilter, Discrepancy, DiscrepancyKind
from gateway.domain.instant import Instant
from gateway.domain.paging import Page, Slice
from gateway.store import catalog
from gateway.store.port import ABOVE_ALL_ROWS, Transaction


def compare_orders(tx: Transaction, now: Instant, target: Target, order_numbers: Iterable[str]) -> None:
    """Find out which of the orders that the target shows no task of it knows, and which have moved on."""
    for number in order_numbers:
        catalog.note_unknown(tx, now, target, number)
        catalog.note_moved_on(tx, now, target, number)
    catalog.drop_settled(tx)


def list_discrepancies(
    tx: Transaction, _now: Instant, kind: DiscrepancyKind | None, wanted: CatalogFilter, below: int | None, count: int
) -> Page[Discrepancy, int]:
    """Return up to `count` differences that hold now, older than row `below` (None: from the newest), newest first."""
    catalog.drop_settled(tx)
    above = ABOVE_ALL_ROWS if below is None else below
    found = catalog.newest_discrepancies(tx, kind, wanted, below=above, count=count + 1)
    page = tuple(found[:count])
    return Page(page, page[-1].row if len(found) > count else None)


def slice_discrepancies(
    tx: Transaction, _now: Instant, kind: DiscrepancyKind | None, wanted: CatalogFilter, skip: int, count: int
) -> Slice[Discrepancy]:
    """Return up to `count` differences that hold now after the newest `skip`, and how many there are in all."""
    catalog.drop_settled(tx)
    found = catalog.newest_discrepancies(tx, kind, wanted, count=count, skip=skip)
    return Slice(tuple(found), catalog.number_of_discrepancies(tx, kind, wanted))
