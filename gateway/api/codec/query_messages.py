"""From the domain's values of account queries to the contract's messages."""

from ordergateway.v1 import account_queries_pb2, query_leases_pb2

from gateway.api.codec.messages import duration, timestamp
from gateway.domain.account_queries import Query, QueryDetail, QueryError, QueryKind, QueryLease, QueryStatus

_STATUS = {status: account_queries_pb2.QueryStatus.Value(f"QUERY_STATUS_{status.name}") for status in QueryStatus}
_KIND = {kind: account_queries_pb2.QueryKind.Value(f"QUERY_KIND_{kind.name}") for kind in QueryKind}
_STATUS_BACK = {number: status for status, number in _STATUS.items()}
_KIND_BACK = {number: kind for kind, number in _KIND.items()}


def query_status_to(status: QueryStatus | None) -> account_queries_pb2.QueryStatus.ValueType:
    """Write a query status; None is UNSPECIFIED."""
    return account_queries_pb2.QUERY_STATUS_UNSPECIFIED if status is None else _STATUS[status]


def query_status_from(number: int) -> QueryStatus | None:
    """Read a query status; UNSPECIFIED is None. Raises KeyError for a number that the contract does not know."""
    return None if number == 0 else _STATUS_BACK[account_queries_pb2.QueryStatus.ValueType(number)]


def query_kind_from(number: int) -> QueryKind | None:
    """Read a query kind; UNSPECIFIED is None. Raises KeyError for a number that the contract does not know."""
    return None if number == 0 else _KIND_BACK[account_queries_pb2.QueryKind.ValueType(number)]


def query_message(query: Query, result_json: str | None = None) -> account_queries_pb2.Query:
    """Write a query; lists leave the result out."""
    return account_queries_pb2.Query(
        query_id=query.query_id,
        site=query.site,
        kind=_KIND[query.kind],
        params_json=query.params_json,
        status=_STATUS[query.status],
        lease_owner=query.lease_owner,
        lease_expires_at=timestamp(query.lease_expires_at),
        attempts=query.attempts,
        created_at=timestamp(query.created_at),
        updated_at=timestamp(query.updated_at),
        completed_at=timestamp(query.completed_at),
        result_json=result_json,
        error=None if query.error is None else _error(query.error),
    )


def query_detail_message(detail: QueryDetail) -> account_queries_pb2.Query:
    """Write a query with its result."""
    return query_message(detail.query, detail.result_json)


def query_lease_message(lease: QueryLease) -> query_leases_pb2.QueryLease:
    """Write a query lease."""
    return query_leases_pb2.QueryLease(
        query_id=lease.query_id,
        site=lease.site,
        kind=_KIND[lease.kind],
        params_json=lease.params_json,
        lease_expires_at=timestamp(lease.lease_expires_at),
        attempt=lease.attempt,
        lease_ttl=duration(lease.lives_for),
        traceparent=lease.traceparent,
    )


def _error(error: QueryError) -> account_queries_pb2.QueryError:
    return account_queries_pb2.QueryError(code=error.code, message=error.message)
