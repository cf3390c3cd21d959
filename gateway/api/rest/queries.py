"""Account queries: the upstream's routes and the worker's."""

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from gateway.account_queries.read import get_query, slice_queries
from gateway.account_queries.result import Observer, report_result
from gateway.account_queries.submit import submit_query
from gateway.api.answers import accepted
from gateway.api.auth.admission import Admission
from gateway.api.codec.account_queries import DEFAULT_SITE, query_error
from gateway.api.rest import query_convert, query_models
from gateway.api.rest.documented import answers, mirrors
from gateway.api.rest.envelope import success
from gateway.api.rest.long_poll import LongPoll
from gateway.api.rest.parameters import DEFAULT_WAIT, AccountServed, Limit, Offset, QueryIdInPath, Wait, WorkerId
from gateway.api.rest.route import FacadeRoute, call_of, text_of
from gateway.api.rest.slices import answer_page
from gateway.dispatch.query_lease_source import QueryDispatcher
from gateway.domain import fields
from gateway.domain.account_queries import (
    QueryKind,
    QueryLeaseRequest,
    QueryOutcome,
    QueryPolicy,
    QueryStatus,
    QuerySubmission,
)
from gateway.domain.refusals import invalid
from gateway.store.port import Store

_UPSTREAM = "ordergateway.v1.AccountQueryService"
_WORKER = "ordergateway.v1.QueryLeaseService"


def query_routes(store: Store, policy: QueryPolicy, new_query_id: Callable[[], str]) -> APIRouter:
    """Make the upstream's routes."""
    router = APIRouter(prefix="/api/account/queries", route_class=FacadeRoute, tags=["account queries"])

    @router.post(
        "",
        summary="Submit a query",
        responses=answers(query_models.SubmittedQuery, 413),
        openapi_extra=mirrors(_UPSTREAM, "SubmitQuery"),
    )
    async def submit(request: Request, body: query_models.SubmitQuery) -> Response:
        """File a query. The same query_id again answers the existing query. Then look at it until it has ended."""
        params = "{}" if body.params is None else text_of(request, "params")
        wanted = QuerySubmission(
            query_id=new_query_id() if body.query_id is None else fields.new_key("query_id", body.query_id),
            site=fields.site("site", DEFAULT_SITE if body.site is None else body.site, policy.sites),
            kind=body.kind,
            params_json=fields.json_size("params", params, max_bytes=policy.max_params_bytes),
            traceparent=call_of(request).traceparent,
            account=fields.account("account", body.account or ""),
        )
        done = accepted(await store.write(submit_query, policy, wanted, call_of(request).identity.name))
        return success(query_convert.query_submitted_json(done))

    @router.get(
        "",
        summary="List queries",
        responses=answers(query_models.QueryList),
        openapi_extra=mirrors(_UPSTREAM, "ListQueries"),
    )
    async def list_all(
        status: Annotated[QueryStatus | None, Query(description="Only queries in this status.")] = None,
        kind: Annotated[QueryKind | None, Query(description="Only queries of this kind.")] = None,
        limit: Limit = fields.DEFAULT_PAGE_SIZE,
        offset: Offset = 0,
    ) -> Response:
        """List queries, newest first, without their results; about 3 MiB at most, then go on at `next_offset`."""
        found = await store.read(slice_queries, status, kind, offset, limit)
        return await answer_page(query_convert.query_json, found.items, found.total, limit, offset)

    @router.get(
        "/{query_id}",
        summary="Look at a query",
        responses=answers(query_models.Query, 404),
        openapi_extra=mirrors(_UPSTREAM, "GetQuery"),
    )
    async def get(query_id: QueryIdInPath) -> Response:
        """Return one query with its result. Ended queries are deleted after their retention."""
        found = accepted(await store.read(get_query, fields.key("query_id", query_id)))
        return success(query_convert.query_json(found.query, found.result_json))

    return router


def query_lease_routes(
    store: Store, dispatcher: QueryDispatcher, admission: Admission, policy: QueryPolicy, on_success: Observer
) -> APIRouter:
    """Make the worker's routes."""
    router = APIRouter(prefix="/api/account/queries", route_class=FacadeRoute, tags=["query leases"])

    @router.get(
        "/lease",
        summary="Take a query (long poll)",
        responses=answers(query_models.QueryLease | None),
        openapi_extra=mirrors(_WORKER, "LeaseQueries"),
    )
    async def lease(
        request: Request,
        worker_id: WorkerId,
        wait: Wait = DEFAULT_WAIT,
        site: Annotated[str | None, Query(description="Only queries of this site.")] = None,
        account: AccountServed = "",
    ) -> Response:
        """Wait for a query; `data` is null if none came. Any number may be in flight. No heartbeat of the worker."""
        wanted = QueryLeaseRequest(
            worker_id=fields.key("worker_id", worker_id),
            session_id=None,
            sites=policy.sites if site is None else (fields.site("site", site, policy.sites),),
            accounts=(fields.account("account", account),),
            identity=call_of(request).identity.name,
        )
        seconds = min(wait, policy.longest_wait.total_seconds())
        return LongPoll(
            lambda gone: dispatcher.wait_for_lease(wanted, seconds, gone),
            query_convert.query_lease_json,
            admission,
            call_of(request),
            "GET /api/account/queries/lease",
        )

    @router.post(
        "/{query_id}/result",
        summary="Bring a result",
        responses=answers(query_models.ResultTaken, 404, 409, 413),
        openapi_extra=mirrors(_WORKER, "ReportQueryResult"),
    )
    async def report(request: Request, query_id: QueryIdInPath, body: query_models.QueryResult) -> Response:
        """Bring the result of one attempt. After 6006 drop it, never repeat it: the query was handed out again."""
        checked_id = fields.key("query_id", query_id)
        told = _outcome(request, checked_id, body, policy)
        status = accepted(await store.write(report_result, policy, told, on_success))
        return success({"query_id": told.query_id, "status": status})

    return router


def _outcome(request: Request, query_id: str, body: query_models.QueryResult, policy: QueryPolicy) -> QueryOutcome:
    worker_id, identity = fields.key("worker_id", body.worker_id), call_of(request).identity.name
    if not body.success:
        error = query_error("error", body.error_code or 0, body.error_message or "")
        return QueryOutcome(query_id, worker_id, body.attempt, error=error, identity=identity)
    if body.result is None:
        raise invalid("result", "is required on success")
    result = fields.json_size("result", text_of(request, "result"), max_bytes=policy.max_result_bytes)
    return QueryOutcome(query_id, worker_id, body.attempt, result_json=result, identity=identity)
