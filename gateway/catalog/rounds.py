"""Filing the catalogue's own queries: a list a round, then details, bounded (docs/specification.md#catalogue)."""

import json
from collections.abc import Callable
from typing import Final

from gateway.account_queries.submit import submit_query
from gateway.domain.account_queries import QueryKind, QueryPolicy, QueryStatus, QuerySubmission, QuerySubmitted
from gateway.domain.catalog import CatalogPolicy
from gateway.domain.instant import Instant, microseconds, parse_utc, utc_text
from gateway.store.port import Transaction

MAX_PAGES: Final = 20
"""Pages that a list may read: the most that a query allows."""


class Rounds:
    """Files queries. `new_query_id` makes their keys."""

    def __init__(self, policy: CatalogPolicy, query_policy: QueryPolicy, new_query_id: Callable[[], str]) -> None:
        self._policy = policy
        self._query_policy = query_policy
        self._new_query_id = new_query_id

    def discover(self, tx: Transaction, now: Instant, site: str) -> QuerySubmitted:
        """File a round for a site now, or answer the one in flight."""
        in_flight = tx.one("catalog_list_in_flight", site=site)
        if in_flight is not None:
            return QuerySubmitted(in_flight["query_id"], QueryStatus(in_flight["status"]), created=False)
        since = utc_text(parse_utc(now.utc) - self._policy.window)
        tx.change("catalog_site_filed", site=site, elapsed_us=now.elapsed_us)
        params: dict[str, str | int] = {"since": since, "max_pages": MAX_PAGES}
        return self._file(tx, now, site, QueryKind.ORDER_LIST, params, since_at=since)

    def file_due(self, tx: Transaction, now: Instant) -> int:
        """File a round for each site whose last one was filed an interval ago; return how many."""
        if self._policy.interval is None:
            return 0
        filed = 0
        for site in self._policy.sites:
            last = tx.one("catalog_site_get", site=site)
            if last is None or now.elapsed_us - last["filed_us"] >= microseconds(self._policy.interval):
                filed += self.discover(tx, now, site).created
        return filed

    def file_details(self, tx: Transaction, now: Instant, site: str) -> int:
        """Ask for the details of orders that are new or not final, those asked for longest ago first; return how many.

        An order whose detail is in flight is not asked for again.
        """
        orders = tx.all("catalog_orders_to_ask", site=site, count=self._policy.details_a_round)
        for row in orders:
            number = row["order_number"]
            tx.change("catalog_order_asked", site=site, order_number=number, elapsed_us=now.elapsed_us)
            self._file(tx, now, site, QueryKind.ORDER_DETAIL, {"order_number": number}, order_number=number)
        return len(orders)

    def _file(
        self,
        tx: Transaction,
        now: Instant,
        site: str,
        kind: QueryKind,
        params: dict[str, str | int],
        *,
        order_number: str | None = None,
        since_at: str | None = None,
    ) -> QuerySubmitted:
        submission = QuerySubmission(
            self._new_query_id(), site, kind, json.dumps(params, ensure_ascii=False, separators=(",", ":"))
        )
        filed = submit_query(tx, now, self._query_policy, submission)
        tx.change(
            "catalog_query_insert", query_id=filed.query_id, site=site, order_number=order_number, since_at=since_at
        )
        return filed
