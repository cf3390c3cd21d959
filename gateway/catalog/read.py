"""Reading the catalogue."""

from gateway.domain.catalog import CatalogFilter, CatalogOrder
from gateway.domain.instant import Instant
from gateway.domain.paging import Page, Slice
from gateway.store import catalog
from gateway.store.port import ABOVE_ALL_ROWS, ReadTransaction


def list_catalog(
    tx: ReadTransaction, _now: Instant, wanted: CatalogFilter, below: int | None, count: int
) -> Page[CatalogOrder, int]:
    """Return up to `count` orders seen before `below` (None: from the latest), latest seen first.

    An order that is seen again between two pages moves to the front, so it may be missed by that walk, never repeated.
    """
    found = catalog.latest_orders(tx, wanted, below=ABOVE_ALL_ROWS if below is None else below, count=count + 1)
    orders = tuple(found[:count])
    return Page(orders, orders[-1].seen if len(found) > count else None)


def slice_catalog(
    tx: ReadTransaction, _now: Instant, wanted: CatalogFilter, skip: int, count: int
) -> Slice[CatalogOrder]:
    """Return up to `count` orders after the latest `skip`, latest seen first, and how many there are in all."""
    orders = catalog.latest_orders(tx, wanted, count=count, skip=skip)
    return Slice(tuple(orders), catalog.number_of_orders(tx, wanted))
