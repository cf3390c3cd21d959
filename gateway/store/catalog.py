"""The order catalogue in the database: its rounds and queries, the orders that sites show, and where tasks differ."""

from common.target import Target
from gateway.domain.account_queries import QueryStatus
from gateway.domain.catalog import (
    CatalogFilter,
    CatalogOrder,
    CatalogQuery,
    Discrepancy,
    DiscrepancyKind,
    ListedOrder,
    OrderDetail,
)
from gateway.domain.instant import Instant
from gateway.domain.states import OrderState
from gateway.store.port import ABOVE_ALL_ROWS, ReadTransaction, Row, Transaction


def targets_due(tx: ReadTransaction, site: str, filed_before_us: int, used_after_us: int, count: int) -> list[Target]:
    """Return up to `count` targets of a site without a round since then, in microseconds of the service clock.

    First those that never had one, then those whose last one was filed longest ago. Accounts that were not used since
    `used_after_us` are left out.
    """
    rows = [*tx.all("catalog_targets_new", site=site, used_after_us=used_after_us, count=count)]
    if len(rows) < count:
        left = count - len(rows)
        rows += tx.all(
            "catalog_targets_due",
            site=site,
            filed_before_us=filed_before_us,
            used_after_us=used_after_us,
            count=left,
        )
    return [Target(row["site"], row["account"]) for row in rows]


def knows_site(tx: ReadTransaction, site: str) -> bool:
    """Tell whether any target of the site is known."""
    return tx.one("catalog_target_of_site", site=site) is not None


def begin_round(tx: Transaction, now: Instant, target: Target) -> None:
    """Write down that a round of the target is filed now."""
    tx.change_one("catalog_round_filed", site=target.site, account=target.account, elapsed_us=now.elapsed_us)


def list_in_flight(tx: ReadTransaction, target: Target) -> tuple[str, QueryStatus] | None:
    """Return the id and the status of the target's list query that has not ended; None if there is none."""
    row = tx.one("catalog_list_in_flight", site=target.site, account=target.account)
    return None if row is None else (row["query_id"], QueryStatus(row["status"]))


def add_query(tx: Transaction, query_id: str, target: Target, asked: CatalogQuery) -> None:
    """Write down that the catalogue filed this query, and what for."""
    tx.insert(
        "catalog_query_insert",
        query_id=query_id,
        site=target.site,
        account=target.account,
        order_number=asked.order_number,
        since_at=asked.since_at,
    )


def find_query(tx: ReadTransaction, query_id: str) -> CatalogQuery | None:
    """Return what the catalogue asks for with this query; None if it is not the catalogue's."""
    row = tx.one("catalog_query_get", query_id=query_id)
    return None if row is None else CatalogQuery(row["order_number"], row["since_at"])


def mark_seen(tx: Transaction, now: Instant, target: Target, order: ListedOrder) -> None:
    """Keep an order that a list of the target shows; it becomes the one that was seen last."""
    tx.change_one(
        "catalog_order_seen",
        site=target.site,
        account=target.account,
        order_number=order.order_number,
        shop_id=order.shop_id,
        shop_name=order.shop_name,
        order_date=order.order_date,
        at=now.utc,
    )


def orders_to_ask(tx: ReadTransaction, target: Target, count: int) -> list[str]:
    """Return the numbers of up to `count` orders that are new or not final, those asked for longest ago first.

    An order whose detail is in flight is left out.
    """
    rows = tx.all("catalog_orders_to_ask", site=target.site, account=target.account, count=count)
    return [row["order_number"] for row in rows]


def mark_asked(tx: Transaction, now: Instant, target: Target, order_number: str) -> None:
    """Write down that the order's detail is asked for now."""
    tx.change_one(
        "catalog_order_asked",
        site=target.site,
        account=target.account,
        order_number=order_number,
        elapsed_us=now.elapsed_us,
    )


def keep_detail(tx: Transaction, now: Instant, target: Target, order_number: str, detail: OrderDetail) -> None:
    """Keep what the order's own page shows."""
    tx.change_one(
        "catalog_order_detail",
        site=target.site,
        account=target.account,
        order_number=order_number,
        delivery_status=detail.delivery_status,
        order_state=detail.order_state,
        at=now.utc,
    )


def latest_orders(
    tx: ReadTransaction, wanted: CatalogFilter, *, below: int = ABOVE_ALL_ROWS, count: int, skip: int = 0
) -> list[CatalogOrder]:
    """Return up to `count` orders seen before `below`, latest seen first, leaving out the first `skip`."""
    site, account = wanted.site, wanted.account
    if account is not None:
        rows = tx.all("catalog_latest_by_account", site=site, account=account, below=below, count=count, skip=skip)
    elif site is None:
        rows = tx.all("catalog_latest", below=below, count=count, skip=skip)
    else:
        rows = tx.all("catalog_latest_by_site", site=site, below=below, count=count, skip=skip)
    return [_order(row) for row in rows]


def find_order(tx: ReadTransaction, target: Target, order_number: str) -> CatalogOrder | None:
    """Return how a target shows an order; None if it has not been seen there."""
    row = tx.one("catalog_order_get", site=target.site, account=target.account, order_number=order_number)
    return None if row is None else _order(row)


def number_of_orders(tx: ReadTransaction, wanted: CatalogFilter) -> int:
    """Return how many of the wanted orders were ever seen."""
    row = tx.one("catalog_count", site=wanted.site, account=wanted.account)
    return 0 if row is None else int(row["count"])


def note_unknown(tx: Transaction, now: Instant, target: Target, order_number: str) -> bool:
    """Note a discrepancy if no task of the target knows an order that it shows; True if that is so."""
    return (
        tx.change(
            "catalog_unknown_add", site=target.site, account=target.account, order_number=order_number, at=now.utc
        )
        > 0
    )


def note_moved_on(tx: Transaction, now: Instant, target: Target, order_number: str) -> None:
    """Note a discrepancy for each task whose order the site shows in a later state."""
    tx.change_any(
        "catalog_moved_on_add", site=target.site, account=target.account, order_number=order_number, at=now.utc
    )


def note_missing(tx: Transaction, now: Instant, target: Target, *, since: str, until: str) -> None:
    """Note a discrepancy for each task whose order a complete list from `since` did not show.

    Only orders that the list must have shown count: their task was filed after `since`, and their number was reported
    by `until`, both UTC texts. A task that reports itself that its order was cancelled is left out: such an order may
    well be off the list.
    """
    tx.change_any("catalog_missing_add", site=target.site, account=target.account, since=since, until=until, at=now.utc)


def drop_settled(tx: Transaction) -> None:
    """Delete the discrepancies that hold no longer, however many there are."""
    tx.change_any("catalog_settled_drop")


def newest_discrepancies(
    tx: ReadTransaction,
    kind: DiscrepancyKind | None,
    wanted: CatalogFilter,
    *,
    below: int = ABOVE_ALL_ROWS,
    count: int,
    skip: int = 0,
) -> list[Discrepancy]:
    """Return up to `count` discrepancies of rows below `below`, newest first, leaving out the first `skip`."""
    rows = tx.all(
        "catalog_discrepancies_newest",
        kind=kind,
        site=wanted.site,
        account=wanted.account,
        below=below,
        count=count,
        skip=skip,
    )
    return [_discrepancy(row) for row in rows]


def number_of_discrepancies(tx: ReadTransaction, kind: DiscrepancyKind | None, wanted: CatalogFilter) -> int:
    """Return how many of the wanted discrepancies there are, of this kind (None: of any)."""
    row = tx.one("catalog_discrepancies_count", kind=kind, site=wanted.site, account=wanted.account)
    return 0 if row is None else int(row["count"])


def _order(row: Row) -> CatalogOrder:
    return CatalogOrder(
        seen=row["seen"],
        site=row["site"],
        account=row["account"],
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


def _discrepancy(row: Row) -> Discrepancy:
    return Discrepancy(
        row=row["row"],
        kind=DiscrepancyKind(row["kind"]),
        site=row["site"],
        account=row["account"],
        order_number=row["order_number"],
        task_id=row["task_id"],
        task_state=None if row["task_state"] is None else OrderState(row["task_state"]),
        site_state=None if row["site_state"] is None else OrderState(row["site_state"]),
        found_at=row["found_at"],
    )
