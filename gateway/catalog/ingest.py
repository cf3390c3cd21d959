"""Taking in what the catalogue's own queries bring, in the transaction in which they succeed."""

from common.target import Target
from gateway.catalog.parsing import read_detail, read_list
from gateway.catalog.reconcile import compare_orders
from gateway.catalog.rounds import Rounds
from gateway.domain.account_queries import Query
from gateway.domain.catalog import CatalogPolicy, CatalogQuery
from gateway.domain.instant import Instant, parse_utc, utc_text
from gateway.store import account_queries, catalog, targets
from gateway.store.port import Transaction


class Ingest:
    """Sees every result of a query; those that the catalogue did not ask for pass by."""

    def __init__(self, policy: CatalogPolicy, rounds: Rounds) -> None:
        self._policy = policy
        self._rounds = rounds

    def __call__(self, tx: Transaction, now: Instant, query: Query, result_json: str) -> None:
        """Write down what a result shows, and compare it with the tasks. Whose account is read is in use."""
        asked = catalog.find_query(tx, query.query_id)
        if asked is None:
            return
        targets.keep(tx, now, query.target)
        if asked.order_number is None:
            self._take_list(tx, now, query, asked, result_json)
        else:
            _take_detail(tx, now, query.target, asked.order_number, result_json)

    def _take_list(self, tx: Transaction, now: Instant, query: Query, asked: CatalogQuery, result_json: str) -> None:
        reading = read_list(result_json)
        # The list is newest first; the newest shall have been seen last.
        for order in reversed(reading.orders):
            catalog.mark_seen(tx, now, query.target, order)
        compare_orders(tx, now, query.target, [order.order_number for order in reading.orders])
        leased_at = account_queries.start_of_attempt(tx, query.query_id, query.attempts)
        if reading.complete and leased_at is not None and asked.since_at is not None:
            # The site was read after the lease, and shows an order only some time after it was placed.
            until = utc_text(parse_utc(leased_at) - self._policy.settle)
            catalog.note_missing(tx, now, query.target, since=asked.since_at, until=until)
        self._rounds.file_details(tx, now, query.target)


def _take_detail(tx: Transaction, now: Instant, target: Target, order_number: str, result_json: str) -> None:
    detail = read_detail(result_json, order_number)
    if detail is None:
        return
    catalog.keep_detail(tx, now, target, order_number, detail)
    compare_orders(tx, now, target, [order_number])
