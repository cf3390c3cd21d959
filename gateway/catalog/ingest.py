"""Taking in what the catalogue's own queries bring, in the transaction in which they succeed."""

from gateway.catalog.parsing import read_detail, read_list
from gateway.catalog.reconcile import compare_orders, find_missing
from gateway.catalog.rounds import Rounds
from gateway.domain.account_queries import Query
from gateway.domain.catalog import CatalogPolicy
from gateway.domain.instant import Instant, parse_utc, utc_text
from gateway.store.port import Transaction


class Ingest:
    """Sees every result of a query; those that the catalogue did not ask for pass by."""

    def __init__(self, policy: CatalogPolicy, rounds: Rounds) -> None:
        self._policy = policy
        self._rounds = rounds

    def __call__(self, tx: Transaction, now: Instant, query: Query, result_json: str) -> None:
        """Write down what a result shows, and compare it with the tasks."""
        asked = tx.one("catalog_query_get", query_id=query.query_id)
        if asked is None:
            return
        if asked["order_number"] is None:
            self._take_list(tx, now, query, asked["since_at"], result_json)
        else:
            _take_detail(tx, now, query.site, asked["order_number"], result_json)

    def _take_list(self, tx: Transaction, now: Instant, query: Query, since_at: str, result_json: str) -> None:
        reading = read_list(result_json)
        # The list is newest first; the newest shall have been seen last.
        for order in reversed(reading.orders):
            tx.change(
                "catalog_order_seen",
                site=query.site,
                order_number=order.order_number,
                shop_id=order.shop_id,
                shop_name=order.shop_name,
                order_date=order.order_date,
                at=now.utc,
            )
        compare_orders(tx, now, query.site, [order.order_number for order in reading.orders])
        attempt = tx.one("query_attempt_get", query_id=query.query_id, attempt=query.attempts)
        if reading.complete and attempt is not None:
            # The site was read after the lease, and shows an order only some time after it was placed.
            until = utc_text(parse_utc(attempt["started_at"]) - self._policy.settle)
            find_missing(tx, now, query.site, since=since_at, until=until)
        self._rounds.file_details(tx, now, query.site)


def _take_detail(tx: Transaction, now: Instant, site: str, order_number: str, result_json: str) -> None:
    reading = read_detail(result_json, order_number)
    if reading is None:
        return
    tx.change(
        "catalog_order_detail",
        site=site,
        order_number=order_number,
        delivery_status=reading.delivery_status,
        order_state=reading.order_state,
        at=now.utc,
    )
    compare_orders(tx, now, site, [order_number])
