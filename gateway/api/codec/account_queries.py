"""Account queries and their leases between the contract's messages and the domain's values.

What reads a request raises RefusedError INVALID_FIELD with the field's path and the limit.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from ordergateway.v1 import account_queries_pb2, query_leases_pb2

from gateway.api.codec.times import duration, timedelta_of, timestamp
from gateway.domain import fields
from gateway.domain.account_queries import (
    Query,
    QueryDetail,
    QueryError,
    QueryKind,
    QueryLease,
    QueryLeaseRequest,
    QueryOutcome,
    QueryPolicy,
    QueryStatus,
    QuerySubmission,
)
from gateway.domain.refusals import invalid

DEFAULT_SITE: Final = "rakuten"
MAX_HELD: Final = 64
MAX_MESSAGE_CHARACTERS: Final = 4_000

_DEFAULT_WAIT: Final = timedelta(seconds=30)
_STATUS = {status: account_queries_pb2.QueryStatus.Value(f"QUERY_STATUS_{status.name}") for status in QueryStatus}
_KIND = {kind: account_queries_pb2.QueryKind.Value(f"QUERY_KIND_{kind.name}") for kind in QueryKind}
_STATUS_BACK = {number: status for status, number in _STATUS.items()}
_KIND_BACK = {number: kind for kind, number in _KIND.items()}


def query_status_to(status: QueryStatus | None) -> account_queries_pb2.QueryStatus.ValueType:
    """Write a query status; None is UNSPECIFIED."""
    return account_queries_pb2.QUERY_STATUS_UNSPECIFIED if status is None else _STATUS[status]


def query_status(field: str, number: int) -> QueryStatus | None:
    """Check a query status; UNSPECIFIED is None."""
    if number == 0:
        return None
    found = _STATUS_BACK.get(account_queries_pb2.QueryStatus.ValueType(number))
    if found is None:
        raise invalid(field, f"is {number}, which is no status")
    return found


def query_kind(field: str, number: int) -> QueryKind | None:
    """Check a query kind; UNSPECIFIED is None."""
    if number == 0:
        return None
    found = _KIND_BACK.get(account_queries_pb2.QueryKind.ValueType(number))
    if found is None:
        raise invalid(field, f"is {number}, which is no kind: order_list or order_detail")
    return found


def query_submission(
    request: account_queries_pb2.SubmitQueryRequest,
    policy: QueryPolicy,
    new_query_id: Callable[[], str],
    traceparent: str,
) -> QuerySubmission:
    """Check a request to file a query; `new_query_id` makes a key where the upstream sent none."""
    kind = query_kind("kind", request.kind)
    if kind is None:
        raise invalid("kind", "is required: order_list or order_detail")
    return QuerySubmission(
        query_id=fields.new_key("query_id", request.query_id) if request.query_id else new_query_id(),
        site=fields.site("site", request.site or DEFAULT_SITE, policy.sites),
        kind=kind,
        params_json=fields.json_object("params_json", request.params_json or "{}", max_bytes=policy.max_params_bytes),
        traceparent=traceparent,
        account=fields.account("account", request.account),
    )


def query_lease_request(
    request: query_leases_pb2.LeaseQueriesRequest, policy: QueryPolicy, identity: str
) -> QueryLeaseRequest:
    """Check who waits for a query."""
    if len(request.held_query_ids) > MAX_HELD:
        raise invalid("held_query_ids", f"must name at most {MAX_HELD} queries")
    return QueryLeaseRequest(
        worker_id=fields.key("worker_id", request.worker_id),
        session_id=fields.opaque_id("session_id", request.session_id),
        sites=fields.sites("sites", request.sites, policy.sites),
        held=frozenset(fields.key("held_query_ids", query_id) for query_id in request.held_query_ids),
        identity=identity,
        accounts=fields.accounts("accounts", request.accounts),
    )


def query_wait(request: query_leases_pb2.LeaseQueriesRequest, policy: QueryPolicy) -> timedelta:
    """Check how long to wait."""
    given = timedelta_of("wait", request.wait) if request.HasField("wait") else None
    return fields.wait("wait", given, longest=policy.longest_wait, default=_DEFAULT_WAIT)


def query_outcome(
    request: query_leases_pb2.ReportQueryResultRequest, policy: QueryPolicy, identity: str
) -> QueryOutcome:
    """Check what a worker brings for one attempt."""
    if request.attempt < 1:
        raise invalid("attempt", "is required, a whole number of at least 1")
    if request.WhichOneof("outcome") is None:
        raise invalid("outcome", "is required: result_json on success, error on failure")
    succeeded = request.HasField("result_json")
    return QueryOutcome(
        query_id=fields.key("query_id", request.query_id),
        worker_id=fields.key("worker_id", request.worker_id),
        attempt=request.attempt,
        result_json=query_result("result_json", request.result_json, policy) if succeeded else None,
        error=None if succeeded else query_error("error", request.error.code, request.error.message),
        identity=identity,
    )


def query_result(field: str, text: str, policy: QueryPolicy) -> str:
    """Check a result: one JSON object, within the configured size."""
    return fields.json_object(field, text, max_bytes=policy.max_result_bytes)


def query_error(field: str, code: int, message: str) -> QueryError:
    """Check a worker's error: a code and words for people."""
    if not 0 <= code <= fields.MAX_ERROR_CODE:
        raise invalid(f"{field}.code", f"must be a whole number from 0 to {fields.MAX_ERROR_CODE:,}")
    return QueryError(code, fields.text(f"{field}.message", message, limit=MAX_MESSAGE_CHARACTERS, required=True))


def query_message(query: Query, result_json: str | None = None) -> account_queries_pb2.Query:
    """Write a query; lists leave the result out."""
    return account_queries_pb2.Query(
        query_id=query.query_id,
        site=query.site,
        account=query.account,
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
        account=lease.account,
        kind=_KIND[lease.kind],
        params_json=lease.params_json,
        lease_expires_at=timestamp(lease.lease_expires_at),
        attempt=lease.attempt,
        lease_ttl=duration(lease.lives_for),
        traceparent=lease.traceparent,
    )


def _error(error: QueryError) -> account_queries_pb2.QueryError:
    return account_queries_pb2.QueryError(code=error.code, message=error.message)
