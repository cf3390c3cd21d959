"""From the contract's messages of account queries to checked requests, the same for gRPC and Connect.

Each function raises RefusedError INVALID_FIELD with the field's path and the limit.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from ordergateway.v1 import account_queries_pb2, query_leases_pb2

from gateway.api.codec.query_messages import query_kind_from, query_status_from
from gateway.api.codec.requests import timedelta_of
from gateway.domain import fields
from gateway.domain.account_queries import (
    QueryError,
    QueryKind,
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
    )


def query_lease_request(request: query_leases_pb2.LeaseQueriesRequest, policy: QueryPolicy) -> QueryLeaseRequest:
    """Check who waits for a query."""
    if len(request.held_query_ids) > MAX_HELD:
        raise invalid("held_query_ids", f"must name at most {MAX_HELD} queries")
    return QueryLeaseRequest(
        worker_id=fields.key("worker_id", request.worker_id),
        session_id=fields.opaque_id("session_id", request.session_id),
        sites=fields.sites("sites", request.sites, policy.sites),
        held=frozenset(fields.key("held_query_ids", query_id) for query_id in request.held_query_ids),
    )


def query_wait(request: query_leases_pb2.LeaseQueriesRequest, policy: QueryPolicy) -> timedelta:
    """Check how long to wait."""
    given = timedelta_of("wait", request.wait) if request.HasField("wait") else None
    return fields.wait("wait", given, longest=policy.longest_wait, default=_DEFAULT_WAIT)


def query_outcome(request: query_leases_pb2.ReportQueryResultRequest, policy: QueryPolicy) -> QueryOutcome:
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
    )


def query_result(field: str, text: str, policy: QueryPolicy) -> str:
    """Check a result: one JSON object, within the configured size."""
    return fields.json_object(field, text, max_bytes=policy.max_result_bytes)


def query_error(field: str, code: int, message: str) -> QueryError:
    """Check a worker's error: a code and words for people."""
    if not 0 <= code <= fields.MAX_ERROR_CODE:
        raise invalid(f"{field}.code", f"must be a whole number from 0 to {fields.MAX_ERROR_CODE:,}")
    return QueryError(code, fields.text(f"{field}.message", message, limit=MAX_MESSAGE_CHARACTERS, required=True))


def query_status(field: str, number: int) -> QueryStatus | None:
    """Check a query status; UNSPECIFIED is None."""
    try:
        return query_status_from(number)
    except KeyError:
        raise invalid(field, f"is {number}, which is no status") from None


def query_kind(field: str, number: int) -> QueryKind | None:
    """Check a query kind; UNSPECIFIED is None."""
    try:
        return query_kind_from(number)
    except KeyError:
        raise invalid(field, f"is {number}, which is no kind: order_list or order_detail") from None
