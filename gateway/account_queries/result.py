"""What a worker reports (docs/specification.md#query-results): one outcome an attempt, fenced by the attempt."""

from collections.abc import Callable
from typing import TypeAlias

from gateway.account_queries.submit import query_not_found
from gateway.account_queries.timeouts import is_lease_due, time_out
from gateway.account_queries.transition import transition
from gateway.domain.account_queries import QUERY_ENDED, Query, QueryEvent, QueryOutcome, QueryPolicy, QueryStatus
from gateway.domain.instant import Instant
from gateway.domain.refusals import Reason, Refusal
from gateway.store import account_queries
from gateway.store.port import ReadTransaction, Transaction

Observer: TypeAlias = Callable[[Transaction, Instant, Query, str], None]
"""Called with a query and its result in the transaction in which it succeeds."""


def report_result(
    tx: Transaction, now: Instant, policy: QueryPolicy, outcome: QueryOutcome, on_success: Observer
) -> QueryStatus | Refusal:
    """End the query with what its holder reports, and return how it ended.

    Any other attempt than the current one is refused, be it of the same worker: its result is older than the one to
    come. The same outcome of the same attempt again succeeds.
    """
    query = account_queries.find(tx, outcome.query_id)
    if query is None:
        return query_not_found(outcome.query_id)
    attempt = _attempt_of(tx, query, outcome)
    if isinstance(attempt, Refusal):
        return attempt
    if query.status in QUERY_ENDED:
        if attempt == query.attempts and _is_repeat(tx, query, outcome):
            return query.status
        return _refuse(query, "it has ended")
    if attempt != query.attempts:
        return _refuse(query, f"attempt {attempt} has run out, and attempt {query.attempts} was handed out since")
    if is_lease_due(query, now):
        time_out(tx, now, policy, query)
        return _refuse(account_queries.find(tx, query.query_id) or query, f"attempt {attempt} has run out")
    if query.status is not QueryStatus.LEASED:
        return _refuse(query, f"attempt {attempt} has run out")
    status = QueryStatus.FAILED if outcome.result_json is None else QueryStatus.SUCCEEDED
    ended = transition(tx, now, query, QueryEvent.REPORT, status, error=outcome.error)
    if outcome.result_json is not None:
        account_queries.add_result(tx, query.query_id, outcome.result_json)
        on_success(tx, now, ended, outcome.result_json)
    return status


def _attempt_of(tx: ReadTransaction, query: Query, outcome: QueryOutcome) -> int | Refusal:
    """Return the attempt that the outcome belongs to, which its worker must have held."""
    worker = outcome.worker_id
    if outcome.attempt is not None:
        if not account_queries.has_held_attempt(tx, query.query_id, outcome.attempt, worker, outcome.identity):
            return _refuse(query, f"{worker} with this token has not held attempt {outcome.attempt}")
        return outcome.attempt
    attempts = account_queries.attempts_of_worker(tx, query.query_id, worker, outcome.identity)
    if not attempts:
        return _refuse(query, f"{worker} with this token has not held it")
    if len(attempts) > 1:
        return _refuse(query, f"{worker} has held several attempts of it; say which one with `attempt`")
    return attempts[0]


def _is_repeat(tx: ReadTransaction, query: Query, outcome: QueryOutcome) -> bool:
    if outcome.result_json is None:
        return query.status is QueryStatus.FAILED and query.error == outcome.error
    return (
        query.status is QueryStatus.SUCCEEDED and account_queries.find_result(tx, query.query_id) == outcome.result_json
    )


def _refuse(query: Query, why: str) -> Refusal:
    return Refusal(
        Reason.QUERY_LEASE_INVALID,
        f"no result is taken for query {query.query_id}, which is {query.status}: {why}; drop it",
        current_query_status=query.status,
    )
