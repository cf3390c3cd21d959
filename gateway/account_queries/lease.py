"""Taking a query (docs/two-queues.md#side-by-side): lease, the repeat after a lost answer, giving back.

Any number of queries may be leased at once, and leasing one is no heartbeat of the order worker.
"""

from datetime import timedelta

from gateway.account_queries.timeouts import is_lease_due, move_on_timed_out
from gateway.account_queries.topics import QUERIES, topic_of_query
from gateway.domain.account_queries import Query, QueryLease, QueryLeaseRequest, QueryPolicy, QueryStatus
from gateway.domain.instant import Instant, microseconds
from gateway.store.port import Transaction
from gateway.store.query_rows import find_query, query_from


def open_query_lease(
    tx: Transaction, now: Instant, policy: QueryPolicy, request: QueryLeaseRequest
) -> QueryLease | None:
    """Begin a wait: a query of this session whose answer was lost again, or the next query, or None."""
    return _again(tx, now, request) or take_next_query(tx, now, policy, request)


def take_next_query(
    tx: Transaction, now: Instant, policy: QueryPolicy, request: QueryLeaseRequest
) -> QueryLease | None:
    """Lease the oldest queued query of the worker's sites; None if there is none."""
    move_on_timed_out(tx, now, policy)
    oldest: Query | None = None
    for site in request.sites:
        row = tx.one("query_oldest_queued", site=site, elapsed_us=now.elapsed_us)
        if row is not None and (oldest is None or row["row"] < oldest.row):
            oldest = query_from(row)
    if oldest is None:
        return None
    query_id = oldest.query_id
    tx.change(
        "query_take",
        query_id=query_id,
        worker_id=request.worker_id,
        session_id=request.session_id,
        expires_at=now.later(policy.lease_ttl),
        deadline_us=now.elapsed_us + microseconds(policy.lease_ttl),
        at=now.utc,
    )
    tx.change(
        "query_attempt_insert",
        query_id=query_id,
        attempt=oldest.attempts + 1,
        worker_id=request.worker_id,
        at=now.utc,
    )
    tx.notify(topic_of_query(query_id))
    taken = find_query(tx, query_id)
    return None if taken is None else _lease(taken, now)


def give_back_query(tx: Transaction, now: Instant, query_id: str, attempt: int) -> bool:
    """Undo a lease that was never handed to the transport; False if it is not that any more."""
    query = find_query(tx, query_id)
    if query is None or query.status is not QueryStatus.LEASED or query.attempts != attempt:
        return False
    if tx.change("query_attempt_undo", query_id=query_id, attempt=attempt) == 0:
        return False
    tx.change("query_give_back", query_id=query_id, attempt=attempt, at=now.utc)
    tx.notify(topic_of_query(query_id))
    tx.notify(QUERIES)
    return True


def _again(tx: Transaction, now: Instant, request: QueryLeaseRequest) -> QueryLease | None:
    if request.session_id is None:
        return None
    for row in tx.all("queries_of_session", session_id=request.session_id):
        query = query_from(row)
        if (
            query.lease_owner == request.worker_id
            and query.query_id not in request.held
            and not is_lease_due(query, now)
        ):
            tx.change("query_attempt_hand_again", query_id=query.query_id, attempt=query.attempts)
            return _lease(query, now)
    return None


def _lease(query: Query, now: Instant) -> QueryLease:
    return QueryLease(
        query_id=query.query_id,
        site=query.site,
        kind=query.kind,
        params_json=query.params_json,
        lease_expires_at=query.lease_expires_at or "",
        attempt=query.attempts,
        lives_for=timedelta(microseconds=(query.lease_deadline_us or 0) - now.elapsed_us),
        traceparent=query.traceparent,
    )
