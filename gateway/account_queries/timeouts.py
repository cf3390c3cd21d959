"""What time does to queries: leases time out, queries expire, ended ones are deleted.

The rule: docs/two-queues.md#side-by-side.

Always judged by the service clock: at use as well as by the sweep. A lease that timed out puts its query back into the
queue, which only reading without side effects allows.
"""

from dataclasses import dataclass
from typing import Final

from gateway.account_queries.transition import transition
from gateway.domain.account_queries import Query, QueryError, QueryEvent, QueryPolicy, QueryStatus, after_timeout
from gateway.domain.instant import Instant, microseconds
from gateway.store import account_queries
from gateway.store.port import Transaction

BATCH: Final = 200
"""Queries that one transaction moves on or deletes at most, so that nobody else waits long behind it."""


@dataclass(frozen=True, slots=True)
class TimedOut:
    """What time did: queries put back, ended as failed, ended as expired."""

    requeued: int = 0
    failed: int = 0
    expired: int = 0


def is_lease_due(query: Query, now: Instant) -> bool:
    """Tell whether the query's lease has expired: it holds until one tick before its deadline."""
    return query.lease_deadline_us is not None and now.elapsed_us >= query.lease_deadline_us


def move_on_timed_out(tx: Transaction, now: Instant, policy: QueryPolicy) -> TimedOut:
    """Move on up to BATCH queries whose lease has expired, and end up to BATCH queued ones that are too old."""
    outcomes = [time_out(tx, now, policy, query) for query in account_queries.lease_due(tx, now.elapsed_us, BATCH)]
    too_old = account_queries.too_old(tx, now.elapsed_us, BATCH)
    for query in too_old:
        transition(tx, now, query, QueryEvent.EXPIRE, QueryStatus.EXPIRED, error=_too_old(query))
    return TimedOut(
        requeued=outcomes.count(QueryStatus.QUEUED),
        failed=outcomes.count(QueryStatus.FAILED),
        expired=outcomes.count(QueryStatus.EXPIRED) + len(too_old),
    )


def time_out(tx: Transaction, now: Instant, policy: QueryPolicy, query: Query) -> QueryStatus:
    """Take a leased query from its holder and return where it stands then."""
    too_old = now.elapsed_us >= query.lifetime_ends_us
    status = after_timeout(attempts=query.attempts, max_attempts=policy.max_attempts, too_old=too_old)
    error = None
    if status is QueryStatus.FAILED:
        why = f"no result in {query.attempts} attempts; the last one was held by {query.lease_owner}"
        error = QueryError(0, why)
    elif status is QueryStatus.EXPIRED:
        error = _too_old(query)
    return transition(tx, now, query, QueryEvent.TIME_OUT, status, error=error).status


def prune(tx: Transaction, now: Instant, policy: QueryPolicy) -> int:
    """Delete up to BATCH queries that ended longer ago than their retention; return how many."""
    return account_queries.prune(tx, now.elapsed_us - microseconds(policy.retention), BATCH)


def _too_old(query: Query) -> QueryError:
    return QueryError(0, f"no result within the query's lifetime, after {query.attempts} attempts")
