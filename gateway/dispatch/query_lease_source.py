"""What the dispatcher of queries hands out (docs/two-queues.md#side-by-side)."""

from collections.abc import Collection, Iterable
from typing import TypeAlias

from common.target import Target
from gateway.account_queries.lease import (
    give_back_query,
    open_query_lease,
    ready_query_targets,
    take_next_query,
)
from gateway.account_queries.topics import QUERIES
from gateway.dispatch.dispatcher import Dispatcher
from gateway.dispatch.lease_source import Turn
from gateway.domain.account_queries import QueryLease, QueryLeaseRequest, QueryPolicy
from gateway.domain.instant import Instant
from gateway.store.port import Transaction

QueryDispatcher: TypeAlias = Dispatcher[QueryLeaseRequest, QueryLease]


class QueryLeaseSource:
    """Queries, any number at once."""

    topic = QUERIES

    def __init__(self, policy: QueryPolicy) -> None:
        self._policy = policy

    def waiter_of(self, _request: QueryLeaseRequest) -> None:
        """Let a process wait in several streams, since any number of queries may be in flight."""

    def turn_of(self, request: QueryLeaseRequest) -> Turn:
        """Tell that streams are not counted, since none takes the place of another."""
        return Turn(request.session_id or "", 0)

    def kind_of(self, _request: QueryLeaseRequest) -> None:
        """Tell that any worker of a target may have any of its queries."""

    def open(self, tx: Transaction, now: Instant, request: QueryLeaseRequest) -> QueryLease | None:
        """Begin a wait: a query of the session whose answer was lost, or the next query."""
        return open_query_lease(tx, now, self._policy, request)

    def ready(self, tx: Transaction, now: Instant, wanted: Collection[Target]) -> Iterable[Target]:
        """Return the targets that have queries in the queue."""
        return ready_query_targets(tx, now, self._policy, wanted)

    def take(self, tx: Transaction, now: Instant, request: QueryLeaseRequest) -> QueryLease | None:
        """Lease the next query."""
        return take_next_query(tx, now, self._policy, request)

    def release(self, tx: Transaction, now: Instant, _request: QueryLeaseRequest, lease: QueryLease) -> bool:
        """Undo a lease that was never handed over."""
        return give_back_query(tx, now, lease.query_id, lease.attempt)
