"""Account queries in the database: the queries, who held which attempt, and their results."""

from common.target import Target
from gateway.domain.account_queries import Query, QueryError, QueryKind, QueryLeaseRequest, QueryStatus, QuerySubmission
from gateway.domain.binding import binding_of, may_hold
from gateway.domain.instant import Instant
from gateway.store.port import ABOVE_ALL_ROWS, ReadTransaction, Row, Transaction


def add(tx: Transaction, now: Instant, submission: QuerySubmission, status: QueryStatus, lifetime_ends_us: int) -> None:
    """Add a query. `lifetime_ends_us` is of the service clock."""
    tx.insert(
        "query_insert",
        query_id=submission.query_id,
        site=submission.site,
        account=submission.account,
        kind=submission.kind,
        params_json=submission.params_json,
        traceparent=submission.traceparent,
        status=status,
        lifetime_ends_us=lifetime_ends_us,
        at=now.utc,
    )


def move(tx: Transaction, now: Instant, before: Query, after: Query) -> None:
    """Write a query's change of status with all that goes with it; only gateway/account_queries/transition.py does so.

    Raises RowCountError if the query no longer has the status and the attempts of `before`.
    """
    error = after.error
    tx.change_one(
        "query_move",
        query_id=before.query_id,
        from_status=before.status,
        from_attempts=before.attempts,
        status=after.status,
        lease_owner=after.lease_owner,
        lease_session=after.lease_session,
        lease_expires_at=after.lease_expires_at,
        lease_deadline_us=after.lease_deadline_us,
        attempts=after.attempts,
        error_code=None if error is None else error.code,
        error_message=None if error is None else error.message,
        completed_at=after.completed_at,
        completed_us=None if after.completed_at is None else now.elapsed_us,
        updated_at=after.updated_at,
    )


def rebase_lifetime(tx: Transaction, query_id: str, lifetime_ends_us: int) -> None:
    """Say anew when a query's lifetime ends, by a service clock that has begun anew."""
    tx.change_one("query_rebase_lifetime", query_id=query_id, lifetime_ends_us=lifetime_ends_us)


def prune(tx: Transaction, completed_before_us: int, count: int) -> int:
    """Delete up to `count` queries that ended by then, with their attempts and results; return how many."""
    return tx.change("queries_prune", completed_before_us=completed_before_us, count=count)


def find(tx: ReadTransaction, query_id: str) -> Query | None:
    """Return the query, or None."""
    row = tx.one("query_get", query_id=query_id)
    return None if row is None else _query(row)


def oldest_queued(tx: ReadTransaction, target: Target, elapsed_us: int) -> Query | None:
    """Return the query of this target that has been queued for longest, leaving out those that are too old; or None."""
    row = tx.one("query_oldest_queued", site=target.site, account=target.account, elapsed_us=elapsed_us)
    return None if row is None else _query(row)


def of_session(tx: ReadTransaction, session_id: str) -> list[Query]:
    """Return the queries that a worker's session holds, the oldest first."""
    return [_query(row) for row in tx.all("queries_of_session", session_id=session_id)]


def queued_or_leased(tx: ReadTransaction) -> list[Query]:
    """Return every query that has not ended, the oldest first."""
    return [_query(row) for row in tx.all("queries_open")]


def leased(tx: ReadTransaction) -> list[Query]:
    """Return every leased query, the oldest first."""
    return [_query(row) for row in tx.all("queries_leased")]


def lease_due(tx: ReadTransaction, elapsed_us: int, count: int) -> list[Query]:
    """Return up to `count` leased queries whose deadline has come, the earliest deadline first."""
    return [_query(row) for row in tx.all("queries_lease_due", elapsed_us=elapsed_us, count=count)]


def too_old(tx: ReadTransaction, elapsed_us: int, count: int) -> list[Query]:
    """Return up to `count` queued queries whose lifetime is over, the earliest end first."""
    return [_query(row) for row in tx.all("queries_too_old", elapsed_us=elapsed_us, count=count)]


def newest(
    tx: ReadTransaction,
    status: QueryStatus | None,
    kind: QueryKind | None,
    *,
    below: int = ABOVE_ALL_ROWS,
    count: int,
    skip: int = 0,
) -> list[Query]:
    """Return up to `count` queries of rows below `below`, newest first, leaving out the first `skip`."""
    if status is not None and kind is not None:
        rows = tx.all(
            "queries_newest_by_status_and_kind", status=status, kind=kind, below=below, count=count, skip=skip
        )
    elif status is not None:
        rows = tx.all("queries_newest_by_status", status=status, below=below, count=count, skip=skip)
    elif kind is not None:
        rows = tx.all("queries_newest_by_kind", kind=kind, below=below, count=count, skip=skip)
    else:
        rows = tx.all("queries_newest", below=below, count=count, skip=skip)
    return [_query(row) for row in rows]


def number_of(tx: ReadTransaction, status: QueryStatus | None, kind: QueryKind | None) -> int:
    """Return how many queries there are of this status and kind (None: of any)."""
    row = tx.one("queries_count", status=status, kind=kind)
    return 0 if row is None else int(row["count"])


def begin_attempt(tx: Transaction, now: Instant, query: Query, request: QueryLeaseRequest) -> None:
    """Write down who holds the query's newest attempt."""
    tx.insert(
        "query_attempt_insert",
        query_id=query.query_id,
        attempt=query.attempts,
        worker_id=request.worker_id,
        bound_to=binding_of(request.identity),
        at=now.utc,
    )


def mark_attempt_handed_again(tx: Transaction, query: Query) -> None:
    """Write down that the newest attempt was handed to its session once more."""
    tx.change_one("query_attempt_hand_again", query_id=query.query_id, attempt=query.attempts)


def delete_attempt_handed_once(tx: Transaction, query: Query) -> bool:
    """Forget the newest attempt; False, and nothing is changed, if it was handed to its session once more."""
    return tx.change("query_attempt_undo", query_id=query.query_id, attempt=query.attempts) == 1


def has_held_attempt(tx: ReadTransaction, query_id: str, attempt: int, worker_id: str, identity: str) -> bool:
    """Tell whether a worker has held an attempt, and with the token that it is bound to, if any."""
    row = tx.one("query_attempt_get", query_id=query_id, attempt=attempt)
    return row is not None and row["worker_id"] == worker_id and may_hold(row["bound_to"], identity)


def start_of_attempt(tx: ReadTransaction, query_id: str, attempt: int) -> str | None:
    """Return when an attempt was leased, UTC text; None if there was no such attempt."""
    row = tx.one("query_attempt_get", query_id=query_id, attempt=attempt)
    return None if row is None else str(row["started_at"])


def attempts_of_worker(tx: ReadTransaction, query_id: str, worker_id: str, identity: str) -> list[int]:
    """Return the attempts of a query that a worker has held with this token, in order."""
    rows = tx.all("query_attempts_of_worker", query_id=query_id, worker_id=worker_id, identity=identity)
    return [int(row["attempt"]) for row in rows]


def add_result(tx: Transaction, query_id: str, result_json: str) -> None:
    """Keep the result of a query."""
    tx.insert("query_result_insert", query_id=query_id, result_json=result_json)


def find_result(tx: ReadTransaction, query_id: str) -> str | None:
    """Return the query's result as it was brought, or None."""
    row = tx.one("query_result_get", query_id=query_id)
    return None if row is None else str(row["result_json"])


def _query(row: Row) -> Query:
    return Query(
        row=row["row"],
        query_id=row["query_id"],
        site=row["site"],
        account=row["account"],
        kind=QueryKind(row["kind"]),
        params_json=row["params_json"],
        traceparent=row["traceparent"],
        status=QueryStatus(row["status"]),
        lease_owner=row["lease_owner"],
        lease_session=row["lease_session"],
        lease_expires_at=row["lease_expires_at"],
        lease_deadline_us=row["lease_deadline_us"],
        attempts=row["attempts"],
        lifetime_ends_us=row["lifetime_ends_us"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        completed_at=row["completed_at"],
        error=None if row["error_message"] is None else QueryError(row["error_code"], row["error_message"]),
    )
