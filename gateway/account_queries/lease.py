"""Leasing a query (docs/two-queues.md#side-by-side): the next one, the repeat after a lost answer, and giving back.

Any number of queries may be leased at once, and leasing one is no heartbeat of the order worker.
"""

from collections.abc import Collection, Iterable
from datetime import timedelta
from typing import Final

from common.target import Target
from gateway.account_queries.timeouts import is_lease_due, move_on_timed_out
from gateway.account_queries.transition import transition
from gateway.domain.account_queries import (
    Query,
    QueryEvent,
    QueryHold,
    QueryLease,
    QueryLeaseRequest,
    QueryPolicy,
    QueryStatus,
)
from gateway.domain.instant import Instant, microseconds
from gateway.store import account_queries, query_lanes
from gateway.store.port import Transaction

FEW_TARGETS: Final = 64
"""Up to so many targets are looked at one by one, more by those that have queries."""


def open_query_lease(
    tx: Transaction, now: Instant, policy: QueryPolicy, request: QueryLeaseRequest
) -> QueryLease | None:
    """Begin a wait: a query of this session whose answer was lost again, or the next query, or None."""
    return _again(tx, now, request) or take_next_query(tx, now, policy, request)


def take_next_query(
    tx: Transaction, now: Instant, policy: QueryPolicy, request: QueryLeaseRequest
) -> QueryLease | None:
    """Lease the oldest queued query of the worker's targets; None if there is none."""
    move_on_timed_out(tx, now, policy)
    queued = [account_queries.oldest_queued(tx, target, now.elapsed_us) for target in request.targets]
    oldest = min((query for query in queued if query is not None), key=lambda query: query.row, default=None)
    if oldest is None:
        return None
    hold = QueryHold(
        worker_id=request.worker_id,
        session_id=request.session_id,
        expires_at=now.later(policy.lease_ttl),
        deadline_us=now.elapsed_us + microseconds(policy.lease_ttl),
    )
    taken = transition(tx, now, oldest, QueryEvent.LEASE, QueryStatus.LEASED, hold=hold)
    account_queries.begin_attempt(tx, now, taken, request)
    return _lease(taken, now)


def ready_query_targets(
    tx: Transaction, now: Instant, policy: QueryPolicy, wanted: Collection[Target]
) -> Iterable[Target]:
    """Return those of the wanted targets that have queries in the queue."""
    move_on_timed_out(tx, now, policy)
    if len(wanted) <= FEW_TARGETS:
        return [target for target in wanted if query_lanes.queued(tx, target) > 0]
    return [target for target in query_lanes.ready(tx) if target in wanted]


def give_back_query(tx: Transaction, now: Instant, query_id: str, attempt: int) -> bool:
    """Undo a lease that was never handed to the transport; False if it is not that any more."""
    query = account_queries.find(tx, query_id)
    if query is None or query.status is not QueryStatus.LEASED or query.attempts != attempt:
        return False
    if not account_queries.delete_attempt_handed_once(tx, query):
        return False
    transition(tx, now, query, QueryEvent.UNDO, QueryStatus.QUEUED)
    return True


def _again(tx: Transaction, now: Instant, request: QueryLeaseRequest) -> QueryLease | None:
    if request.session_id is None:
        return None
    for query in account_queries.of_session(tx, request.session_id):
        if (
            account_queries.has_held_attempt(tx, query.query_id, query.attempts, request.worker_id, request.identity)
            and query.lease_owner == request.worker_id
            and query.target in request.targets
            and query.query_id not in request.held
            and not is_lease_due(query, now)
        ):
            account_queries.mark_attempt_handed_again(tx, query)
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
        account=query.account,
    )
