"""From rows of queries to the domain's values."""

from gateway.domain.account_queries import Query, QueryError, QueryKind, QueryStatus
from gateway.store.port import ReadTransaction, Row


def query_from(row: Row) -> Query:
    """Read a row of `account_queries`."""
    return Query(
        row=row["row"],
        query_id=row["query_id"],
        site=row["site"],
        kind=QueryKind(row["kind"]),
        params_json=row["params_json"],
        traceparent=row["traceparent"],
        status=QueryStatus(row["status"]),
        lease_owner=row["lease_owner"],
        lease_expires_at=row["lease_expires_at"],
        lease_deadline_us=row["lease_deadline_us"],
        attempts=row["attempts"],
        lifetime_ends_us=row["lifetime_ends_us"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        completed_at=row["completed_at"],
        error=None if row["error_message"] is None else QueryError(row["error_code"], row["error_message"]),
    )


def find_query(tx: ReadTransaction, query_id: str) -> Query | None:
    """Return the query, or None."""
    row = tx.one("query_get", query_id=query_id)
    return None if row is None else query_from(row)


def find_result(tx: ReadTransaction, query_id: str) -> str | None:
    """Return the query's result as it was brought, or None."""
    row = tx.one("query_result_get", query_id=query_id)
    result: str | None = None if row is None else row["result_json"]
    return result
