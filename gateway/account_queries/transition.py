"""The one way in which a query changes its status: as the table allows, exactly one row, and those who wait wake."""

from dataclasses import replace
from typing import Final

from common.target import Target
from gateway.account_queries.topics import QUERIES, topic_of_query
from gateway.domain.account_queries import (
    QUERY_ENDED,
    QUERY_TRANSITIONS,
    Query,
    QueryError,
    QueryEvent,
    QueryHold,
    QueryStatus,
    QuerySubmission,
)
from gateway.domain.hints import hint
from gateway.domain.instant import Instant
from gateway.store import account_queries
from gateway.store.port import Transaction

_COUNTED: Final = {QueryEvent.LEASE: 1, QueryEvent.UNDO: -1}
"""By how much an event changes the number of attempts."""


class QueryTransitionError(Exception):
    """The table does not allow this: a fault of this program; all is undone."""


def file(tx: Transaction, now: Instant, submission: QuerySubmission, lifetime_ends_us: int) -> QueryStatus:
    """Put a new query into the queue and return its status."""
    status = QueryStatus.QUEUED
    _check(submission.query_id, QueryEvent.SUBMIT, None, status)
    account_queries.add(tx, now, submission, status, lifetime_ends_us)
    _notify(tx, submission.query_id, Target(submission.site, submission.account), status)
    return status


def transition(
    tx: Transaction,
    now: Instant,
    query: Query,
    event: QueryEvent,
    to: QueryStatus,
    *,
    hold: QueryHold | None = None,
    error: QueryError | None = None,
) -> Query:
    """Bring a query into the status `to` and return it as it stands then.

    `hold` is the new lease, given where `to` is leased; `error` says why a query failed or expired. Raises
    QueryTransitionError if the table does not let `event` lead from here to `to`, RowCountError if the query has moved
    since `query` was read.
    """
    _check(query.query_id, event, query.status, to)
    after = replace(
        query,
        status=to,
        lease_owner=None if hold is None else hold.worker_id,
        lease_session=None if hold is None else hold.session_id,
        lease_expires_at=None if hold is None else hold.expires_at,
        lease_deadline_us=None if hold is None else hold.deadline_us,
        attempts=query.attempts + _COUNTED.get(event, 0),
        error=error,
        completed_at=now.utc if to in QUERY_ENDED else None,
        updated_at=now.utc,
    )
    account_queries.move(tx, now, query, after)
    _notify(tx, query.query_id, query.target, to)
    return after


def _check(query_id: str, event: QueryEvent, before: QueryStatus | None, to: QueryStatus) -> None:
    if to not in QUERY_TRANSITIONS.get((event, before), frozenset()):
        raise QueryTransitionError(f"query {query_id}: {event} does not lead from {before} to {to}")


def _notify(tx: Transaction, query_id: str, target: Target, to: QueryStatus) -> None:
    tx.notify(topic_of_query(query_id))
    if to is QueryStatus.QUEUED:
        tx.notify(QUERIES)
        tx.notify(hint(QUERIES, target))
