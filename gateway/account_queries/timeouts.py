"""What time does to queries: leases lapse, queries grow too old, ended ones are deleted.

The rule: docs/two-queues.md#side-by-side.

Always judged by the service clock: at use as well as by the sweep. A lapsed lease puts its query back into the queue,
which only reading without side effects allows.
"""

from dataclasses import dataclass
from typing import Final

from gateway.account_queries.end import end_query
from gateway.account_queries.topics import QUERIES, topic_of_query
from gateway.domain.account_queries import Query, QueryError, QueryPolicy, QueryStatus, after_timeout
from gateway.domain.instant import Instant, microseconds
from gateway.store.port import Transaction
from gateway.store.query_rows import query_from

BATCH: Final = 200
"""Queries that one transaction moves on or deletes at most, so that nobody else waits long behind it."""


@dataclass(frozen=True, slots=True)
class Lapsed:
    """What time did: queries put back, ended as failed, ended as expired."""

    requeued: int = 0
    failed: int = 0
    expired: int = 0


def is_lease_due(query: Query, now: Instant) -> bool:
    """Tell whether the query's lease has run out: it holds until one tick before its deadline."""
    return query.lease_deadline_us is not None and now.elapsed_us >= query.lease_deadline_us


def move_on_timed_out(tx: Transaction, now: Instant, policy: QueryPolicy) -> Lapsed:
    """Move on up to BATCH queries whose lease has run out, and end up to BATCH queued ones that are too old."""
    leased = [query_from(row) for row in tx.all("queries_lapsed", elapsed_us=now.elapsed_us, count=BATCH)]
    outcomes = [lapse(tx, now, policy, query) for query in leased]
    too_old = [query_from(row) for row in tx.all("queries_too_old", elapsed_us=now.elapsed_us, count=BATCH)]
    for query in too_old:
        _expire(tx, now, query)
    return Lapsed(
        requeued=outcomes.count(QueryStatus.QUEUED),
        failed=outcomes.count(QueryStatus.FAILED),
        expired=outcomes.count(QueryStatus.EXPIRED) + len(too_old),
    )


def lapse(tx: Transaction, now: Instant, policy: QueryPolicy, query: Query) -> QueryStatus:
    """Take a leased query from its holder and return where it stands then."""
    too_old = now.elapsed_us >= query.lifetime_ends_us
    status = after_timeout(attempts=query.attempts, max_attempts=policy.max_attempts, too_old=too_old)
    if status is QueryStatus.QUEUED:
        tx.change("query_requeue", query_id=query.query_id, attempt=query.attempts, at=now.utc)
        tx.notify(topic_of_query(query.query_id))
        tx.notify(QUERIES)
    elif status is QueryStatus.EXPIRED:
        _expire(tx, now, query)
    else:
        why = f"no result in {query.attempts} attempts; the last one was held by {query.lease_owner}"
        end_query(tx, now, query, status, QueryError(0, why))
    return status


def prune(tx: Transaction, now: Instant, policy: QueryPolicy) -> int:
    """Delete up to BATCH queries that ended longer ago than their retention; return how many."""
    return tx.change("queries_prune", completed_before_us=now.elapsed_us - microseconds(policy.retention), count=BATCH)


def _expire(tx: Transaction, now: Instant, query: Query) -> None:
    why = f"no result within the query's lifetime, after {query.attempts} attempts"
    end_query(tx, now, query, QueryStatus.EXPIRED, QueryError(0, why))
