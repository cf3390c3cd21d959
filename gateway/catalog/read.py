"""Reading the catalogue."""

from gateway.domain.catalog import CatalogOrder, CatalogPage, CatalogSlice
from gateway.domain.instant import Instant
from gateway.domain.states import OrderState
from gateway.store.port import ReadTransaction, Row

_ABOVE_ALL = 2**63 - 1


def list_catalog(tx: ReadTransaction, _now: Instant, site: str | None, below: int | None, count: int) -> CatalogPage:
    """Return up to `count` orders seen before `below` (None: from the latest), latest seen first.

    An order that is seen again between two pages moves to the front, so it may be missed by that walk, never repeated.
    """
    rows = _latest(tx, site, below=_ABOVE_ALL if below is None else below, count=count + 1, skip=0)
    orders = tuple(_order(row) for row in rows[:count])
    return CatalogPage(orders, orders[-1].seen if len(rows) > count else None)


def slice_catalog(tx: ReadTransaction, _now: Instant, site: str | None, skip: int, count: int) -> CatalogSlice:
    """Return up to `count` orders after the latest `skip`, latest seen first, and how many there are in all."""
    rows = _latest(tx, site, below=_ABOVE_ALL, count=count, skip=skip)
    total = tx.one("catalog_count", site=site)
    return CatalogSlice(tuple(_order(row) for row in rows), 0 if total is None else total["count"])


def _latest(tx: ReadTransaction, site: str | None, *, below: int, count: int, skip: int) -> list[Row]:
    if site is None:
        return list(tx.all("catalog_latest", below=below, count=count, skip=skip))
    return list(tx.all("catalog_latest_by_site", site=site, below=below, count=count, skip=skip))


def _order(row: Row) -> CatalogOrder:
    return CatalogOrder(
        seen=row["seen"],
        site=row["site"],
        order_number=row["order_number"],
        shop_id=row["shop_id"],
        shop_name=row["shop_name"],
        order_date=row["order_date"],
        delivery_status=row["delivery_status"],
        order_state=None if row["order_state"] is None else OrderState(row["order_state"]),
        discovered_at=row["discovered_at"],
        detail_fetched_at=row["detail_fetched_at"],
        last_seen_at=row["last_seen_at"],
    )
