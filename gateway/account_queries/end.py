"""How a query ends."""

from gateway.account_queries.topics import topic_of_query
from gateway.domain.account_queries import Query, QueryError, QueryStatus
from gateway.domain.instant import Instant
from gateway.store.port import Transaction


def end_query(tx: Transaction, now: Instant, query: Query, status: QueryStatus, error: QueryError | None) -> None:
    """End an open query for good; `error` is None only on success."""
    tx.change(
        "query_end",
        query_id=query.query_id,
        from_status=query.status,
        attempt=query.attempts,
        status=status,
        error_code=None if error is None else error.code,
        error_message=None if error is None else error.message,
        at=now.utc,
        elapsed_us=now.elapsed_us,
    )
    tx.notify(topic_of_query(query.query_id))
