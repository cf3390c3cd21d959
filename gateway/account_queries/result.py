"""What a worker brings (docs/specification.md#query-results): one outcome an attempt, fenced by the attempt."""

from collections.abc import Callable
from typing import TypeAlias

from gateway.account_queries.end import end_query
from gateway.account_queries.submit import query_not_found
from gateway.account_queries.timeouts import is_lease_due, lapse
from gateway.domain.account_queries import QUERY_ENDED, Query, QueryOutcome, QueryPolicy, QueryStatus
from gateway.domain.instant import Instant
from gateway.domain.refusals import Reason, Refusal
from gateway.store.port import ReadTransaction, Transaction
from gateway.store.query_rows import find_query, find_result

Observer: TypeAlias = Callable[[Transaction, Instant, Query, str], None]
"""Called with a query and its result in the transaction in which it succeeds."""


def report_result(
    tx: Transaction, now: Instant, policy: QueryPolicy, told: QueryOutcome, on_success: Observer
) -> QueryStatus | Refusal:
    """End the query with what its holder brings, and return how it ended.

    Any other attempt than the current one is refused, be it of the same worker: its result is older than the one to
    come. The same outcome of the same attempt again succeeds.
    """
    query = find_query(tx, told.query_id)
    if query is None:
        return query_not_found(told.query_id)
    attempt = _attempt_of(tx, query, told)
    if isinstance(attempt, Refusal):
        return attempt
    if query.status in QUERY_ENDED:
        if attempt == query.attempts and _is_repeat(tx, query, told):
            return query.status
        return _refuse(query, "it has ended")
    if attempt != query.attempts:
        return _refuse(query, f"attempt {attempt} has run out, and attempt {query.attempts} was handed out since")
    if is_lease_due(query, now):
        lapse(tx, now, policy, query)
        return _refuse(find_query(tx, query.query_id) or query, f"attempt {attempt} has run out")
    if query.status is not QueryStatus.LEASED:
        return _refuse(query, f"attempt {attempt} has run out")
    status = QueryStatus.FAILED if told.result_json is None else QueryStatus.SUCCEEDED
    end_query(tx, now, query, status, told.error)
    if told.result_json is not None:
        tx.change("query_result_insert", query_id=query.query_id, result_json=told.result_json)
        on_success(tx, now, query, told.result_json)
    return status


def _attempt_of(tx: ReadTransaction, query: Query, told: QueryOutcome) -> int | Refusal:
    """Return the attempt that the outcome belongs to, which its worker must have held."""
    if told.attempt is not None:
        held = tx.one("query_attempt_get", query_id=query.query_id, attempt=told.attempt)
        if held is None or held["worker_id"] != told.worker_id:
            return _refuse(query, f"{told.worker_id} has not held attempt {told.attempt}")
        return told.attempt
    attempts = [
        row["attempt"] for row in tx.all("query_attempts_of_worker", query_id=query.query_id, worker_id=told.worker_id)
    ]
    if len(attempts) == 1:
        only: int = attempts[0]
        return only
    if not attempts:
        return _refuse(query, f"{told.worker_id} has not held it")
    return _refuse(query, f"{told.worker_id} has held several attempts of it; say which one with `attempt`")


def _is_repeat(tx: ReadTransaction, query: Query, told: QueryOutcome) -> bool:
    if told.result_json is None:
        return query.status is QueryStatus.FAILED and query.error == told.error
    return query.status is QueryStatus.SUCCEEDED and find_result(tx, query.query_id) == told.result_json


def _refuse(query: Query, why: str) -> Refusal:
    return Refusal(
        Reason.QUERY_LEASE_INVALID,
        f"no result is taken for query {query.query_id}, which is {query.status}: {why}; drop it",
        current_query_status=query.status,
    )
