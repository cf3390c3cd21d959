"""Filing the catalogue's own queries: a list a round, then details, bounded (docs/specification.md#catalogue)."""

import json
from collections.abc import Callable
from typing import Final

from common.target import Target
from gateway import targets
from gateway.account_queries.submit import file_query
from gateway.domain.account_queries import QueryKind, QueryPolicy, QuerySubmission, QuerySubmitted
from gateway.domain.catalog import CatalogPolicy, CatalogQuery
from gateway.domain.instant import Instant, microseconds, parse_utc, utc_text
from gateway.domain.refusals import Refusal
from gateway.store import catalog
from gateway.store.port import Transaction

MAX_PAGES: Final = 20
"""Pages that a list may read: the most that a query allows."""

ROUNDS_AT_ONCE: Final = 100
"""Rounds of a site that one transaction files."""


class Rounds:
    """Files queries. `new_query_id` makes their keys."""

    def __init__(self, policy: CatalogPolicy, query_policy: QueryPolicy, new_query_id: Callable[[], str]) -> None:
        self._policy = policy
        self._query_policy = query_policy
        self._new_query_id = new_query_id

    def discover(self, tx: Transaction, now: Instant, target: Target) -> QuerySubmitted:
        """File a round for a target now, or answer the one in flight."""
        in_flight = catalog.list_in_flight(tx, target)
        if in_flight is not None:
            return QuerySubmitted(*in_flight, created=False)
        since = utc_text(parse_utc(now.utc) - self._policy.window)
        catalog.begin_round(tx, now, target)
        params: dict[str, str | int] = {"since": since, "max_pages": MAX_PAGES}
        return self._file(tx, now, target, QueryKind.ORDER_LIST, params, CatalogQuery(None, since))

    def ask(self, tx: Transaction, now: Instant, target: Target, identity: str) -> QuerySubmitted | Refusal:
        """Do so for a person. Refused where the target is one more than the token may name."""
        return targets.use(tx, now, (target,), identity) or self.discover(tx, now, target)

    def file_due(self, tx: Transaction, now: Instant) -> int:
        """File a round for each known target whose last one was filed an interval ago; return how many.

        A bounded number at a time, those that have waited longest first; accounts that are not used are left out. A
        site of which no target is known yet has its only account. A target whose list is still in flight has its turn
        an interval later.
        """
        if self._policy.interval is None:
            return 0
        filed = 0
        for site in self._policy.sites:
            before_us = now.elapsed_us - microseconds(self._policy.interval)
            due = catalog.targets_due(tx, site, before_us, targets.unused_since_us(now), ROUNDS_AT_ONCE)
            if not due and not catalog.knows_site(tx, site):
                due = [Target(site)]
            for target in due:
                filed += self.discover(tx, now, target).created
                catalog.begin_round(tx, now, target)
        return filed

    def file_details(self, tx: Transaction, now: Instant, target: Target) -> int:
        """Ask for the details of orders that are new or not final, those asked for longest ago first; return how many.

        An order whose detail is in flight is not asked for again.
        """
        numbers = catalog.orders_to_ask(tx, target, self._policy.details_a_round)
        for number in numbers:
            catalog.mark_asked(tx, now, target, number)
            params: dict[str, str | int] = {"order_number": number}
            self._file(tx, now, target, QueryKind.ORDER_DETAIL, params, CatalogQuery(number, None))
        return len(numbers)

    def _file(
        self,
        tx: Transaction,
        now: Instant,
        target: Target,
        kind: QueryKind,
        params: dict[str, str | int],
        asked: CatalogQuery,
    ) -> QuerySubmitted:
        params_json = json.dumps(params, ensure_ascii=False, separators=(",", ":"))
        submission = QuerySubmission(self._new_query_id(), target.site, kind, params_json, account=target.account)
        filed = file_query(tx, now, self._query_policy, submission)
        catalog.add_query(tx, filed.query_id, target, asked)
        return filed
