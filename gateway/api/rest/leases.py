"""The worker's routes: take an order, hold it, report on it, take it back."""

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from gateway.api.answers import accepted
from gateway.api.auth.admission import Admission
from gateway.api.codec.leases import command
from gateway.api.rest import convert
from gateway.api.rest.documented import answers, mirrors
from gateway.api.rest.envelope import success
from gateway.api.rest.lease_models import EndWord, Lease, Reclaim, Renew, Renewed, Report, Reported
from gateway.api.rest.long_poll import LongPoll
from gateway.api.rest.parameters import DEFAULT_WAIT, AccountServed, MaybeWorkerId, TaskIdInPath, Wait, WorkerId
from gateway.api.rest.route import FacadeRoute, call_of
from gateway.dispatch.order_lease_source import OrderDispatcher
from gateway.domain import fields
from gateway.domain.leases import Holder, LeaseRequest, Via
from gateway.domain.models import NewReport, Policy
from gateway.domain.refusals import invalid
from gateway.domain.states import ENDED, OrderState, TaskStatus
from gateway.orders.hold import renew
from gateway.orders.lease import reclaim
from gateway.orders.report import report
from gateway.store.port import Store

_SERVICE = "ordergateway.v1.OrderLeaseService"


def lease_routes(
    store: Store, dispatcher: OrderDispatcher, admission: Admission, policy: Policy, new_token: Callable[[], str]
) -> APIRouter:
    """Make the routes."""
    router = APIRouter(prefix="/api/orders", route_class=FacadeRoute, tags=["order leases"])
    _add_lease(router, dispatcher, admission, policy)
    _add_renew_and_report(router, store, policy)
    _add_reclaim(router, store, policy, new_token)
    return router


def _add_lease(router: APIRouter, dispatcher: OrderDispatcher, admission: Admission, policy: Policy) -> None:
    @router.get(
        "/lease",
        summary="Take an order (long poll)",
        responses=answers(Lease | None),
        openapi_extra=mirrors(_SERVICE, "LeaseOrders"),
    )
    async def lease_order(
        request: Request,
        worker_id: WorkerId,
        wait: Wait = DEFAULT_WAIT,
        site: Annotated[str | None, Query(description="Only orders of this site.")] = None,
        account: AccountServed = "",
    ) -> Response:
        """Wait for an order; `data` is null if none came. At most one order is in execution at a time.

        If the client goes away meanwhile, no order is leased to it. A lease taken here counts as "may have clicked"
        from its start to its end, since no submit permit stands before the click.
        """
        sites = policy.sites if site is None else (fields.site("site", site, policy.sites),)
        wanted = _lease_request(request, worker_id, sites, account)
        seconds = min(wait, policy.longest_wait.total_seconds())
        return LongPoll(
            lambda gone: dispatcher.wait_for_lease(wanted, seconds, gone),
            convert.lease_json,
            admission,
            call_of(request),
            "GET /api/orders/lease",
        )


def _add_renew_and_report(router: APIRouter, store: Store, policy: Policy) -> None:
    @router.post(
        "/{task_id}/renew",
        summary="Renew a lease",
        responses=answers(Renewed, 404, 409, 413),
        openapi_extra=mirrors(_SERVICE, "RenewLease"),
    )
    async def renew_lease(
        request: Request, task_id: TaskIdInPath, body: Renew | None = None, worker_id: MaybeWorkerId = None
    ) -> Response:
        """Extend the lease to its full length from now."""
        told = body or Renew()
        holder = Holder(
            task_id=fields.key("task_id", task_id),
            worker_id=_one_worker(told.worker_id, worker_id),
            token=_token(told.lease_token),
            identity=call_of(request).identity.name,
        )
        renewed = accepted(await store.write(renew, policy, holder, told.with_other_orders))
        return success(convert.renewed_json(renewed))

    @router.post(
        "/{task_id}/report",
        summary="Report on an order",
        responses=answers(Reported, 404, 409, 413),
        openapi_extra=mirrors(_SERVICE, "ReportOrder"),
    )
    async def report_order(request: Request, task_id: TaskIdInPath, body: Report) -> Response:
        """Record what happened. One row is kept for each state; a repeat overwrites it with what it brings.

        A report that is refused is kept in the task's history all the same.
        """
        holder = Holder(
            task_id=fields.key("task_id", task_id),
            worker_id=fields.key("worker_id", body.worker_id),
            token=_token(body.lease_token),
            identity=call_of(request).identity.name,
        )
        return success(convert.reported_json(accepted(await store.write(report, holder, _new_report(body)))))


def _add_reclaim(router: APIRouter, store: Store, policy: Policy, new_token: Callable[[], str]) -> None:
    @router.post(
        "/{task_id}/reclaim",
        summary="Take a stale order back",
        responses=answers(Lease, 404, 409, 413, waits=True),
        openapi_extra=mirrors(_SERVICE, "ReclaimOrder"),
    )
    async def reclaim_order(
        request: Request, task_id: TaskIdInPath, body: Reclaim | None = None, worker_id: MaybeWorkerId = None
    ) -> Response:
        """Lease a stale task again, on a person's command. Look at the site's order list before anything else.

        While another task is in execution it answers 200 with success=false and code 6004: ask again later.
        """
        checked = fields.key("task_id", task_id)
        told = body or Reclaim()
        wanted = _lease_request(request, _one_worker(told.worker_id, worker_id), policy.sites, told.account or "")
        by = command(told.requested_by or "", told.reason or "")
        lease = accepted(await store.write(reclaim, policy, checked, wanted, new_token(), by))
        return success(convert.lease_json(lease))


def _lease_request(request: Request, worker_id: str, sites: tuple[str, ...], account: str) -> LeaseRequest:
    return LeaseRequest(
        worker_id=fields.key("worker_id", worker_id),
        session_id=None,
        journal_id=None,
        sites=sites,
        via=Via.REST,
        identity=call_of(request).identity.name,
        accounts=(fields.account("account", account),),
    )


def _one_worker(in_body: str | None, in_query: str | None) -> str:
    """Return the worker's name, which may stand in the body or in the query."""
    if in_body is not None and in_query is not None and in_body != in_query:
        raise invalid("worker_id", "is not the same in the body and in the query")
    return fields.key("worker_id", in_body or in_query or "")


def _token(value: str | None) -> str | None:
    return None if value is None else fields.lease_token("lease_token", value)


def _new_report(body: Report) -> NewReport:
    terminal = bool(body.terminal)
    state, status = _state_and_end(body)
    if status is not None and not terminal:
        raise invalid("terminal_status", "is given without terminal")
    if status is not None and status not in ENDED:
        raise invalid("terminal_status", "must be succeeded, failed or needs_human")
    if state is None and not terminal:
        raise invalid("state", "is required unless terminal is true")
    return NewReport(
        state=state,
        payable_yen=fields.integer("payable_yen", body.payable_yen, low=0, high=fields.MAX_YEN),
        pay_deadline=fields.utc_time("pay_deadline", body.pay_deadline),
        site_order_id=fields.site_order_id("site_order_id", body.site_order_id),
        evidence_ref=fields.evidence_ref("evidence_ref", body.evidence_ref),
        detail=fields.text("detail", body.detail or "", limit=fields.MAX_DETAIL_CHARACTERS),
        error_code=fields.integer("error_code", body.error_code, low=0, high=fields.MAX_ERROR_CODE),
        sequence=None,
        terminal=terminal,
        terminal_status=status,
    )


def _state_and_end(body: Report) -> tuple[OrderState | None, TaskStatus | None]:
    """Read the state, or how the task ends where that stands in its place: at the latest known state then."""
    state, status = body.state, body.terminal_status
    if not isinstance(state, EndWord):
        return state, status
    ended = TaskStatus(state)
    if not body.terminal:
        raise invalid("state", f"may say {state}, which is how a task ends, only where terminal is true")
    if status not in (None, ended):
        raise invalid("terminal_status", f"says {status}, while state says {ended}")
    return None, ended
