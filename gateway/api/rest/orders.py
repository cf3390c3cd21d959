"""The upstream's routes: file an order, look at one, list them."""

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from gateway.api.answers import accepted
from gateway.api.codec.search import make_search_token, search_position
from gateway.api.offload import checked
from gateway.api.rest import convert, models
from gateway.api.rest.documented import answers, mirrors
from gateway.api.rest.envelope import success
from gateway.api.rest.parameters import AccountFilter, Limit, Offset, TaskIdInPath
from gateway.api.rest.route import FacadeRoute, call_of, text_of
from gateway.api.rest.search_parameters import SearchParameters, Statuses
from gateway.api.rest.slices import answer_page, answer_search
from gateway.api.submission import file_order
from gateway.domain import fields
from gateway.domain.intents import intent_key
from gateway.domain.models import Actor, Policy, Submission
from gateway.domain.refusals import invalid
from gateway.orders.read import get_task
from gateway.orders.search import list_tasks_from, search_tasks
from gateway.store.port import Store
from gateway.task_document import task_document

_SERVICE = "ordergateway.v1.OrderService"


def submission(
    body: models.Submit, intent: str, policy: Policy, new_task_id: Callable[[], str], traceparent: str
) -> Submission:
    """Check a request to file a task, whose intent has been parsed; see `codec.orders.submission`."""
    not_before, not_after = fields.times(
        fields.utc_time("not_before", body.not_before), fields.utc_time("not_after", body.not_after)
    )
    site = fields.site("site", body.site, policy.sites)
    account = fields.account("account", body.account or "")
    return Submission(
        task_id=new_task_id() if body.task_id is None else fields.new_key("task_id", body.task_id),
        site=site,
        intent_json=fields.json_size("intent", intent, max_bytes=policy.max_intent_bytes),
        callback_url=fields.callback_url("callback_url", body.callback_url),
        traceparent=traceparent,
        account=account,
        labels_json=fields.labels("labels", body.labels or {}),
        max_total_yen=fields.cap("max_total_yen", body.max_total_yen),
        not_before=not_before,
        not_after=not_after,
        stop_before_submit=body.stop_before_submit,
        intent_key=intent_key(site, account, body.intent, len(intent)) if policy.same_intent_within else None,
        requires_approval=body.requires_approval,
    )


def order_routes(store: Store, policy: Policy, new_task_id: Callable[[], str]) -> APIRouter:
    """Make the routes."""
    router = APIRouter(prefix="/api/orders", route_class=FacadeRoute, tags=["orders"])

    @router.post(
        "",
        summary="Submit an order",
        responses=answers(models.Submitted, 413),
        openapi_extra=mirrors(_SERVICE, "SubmitOrder"),
    )
    async def submit_order(request: Request, body: models.Submit) -> Response:
        """File an intent. The same task_id again answers the existing task and changes nothing.

        When it answers, the task is on disk. After a lost answer send the same request again, if it had a task_id.
        """
        call = call_of(request)
        intent = text_of(request, "intent")
        wanted = await checked(len(intent), lambda: submission(body, intent, policy, new_task_id, call.traceparent))
        done = await file_order(store, policy, wanted, Actor(call.identity.name))
        return success(convert.submitted_json(done))

    @router.get(
        "",
        summary="List orders",
        responses=answers(models.TaskList),
        openapi_extra=mirrors(_SERVICE, "ListOrders"),
    )
    async def list_orders(
        further: Annotated[SearchParameters, Depends()],
        status: Statuses = None,
        site: Annotated[str | None, Query(description="Only tasks of this site.")] = None,
        account: AccountFilter = None,
        limit: Limit = fields.DEFAULT_PAGE_SIZE,
        offset: Offset = 0,
        page_token: Annotated[str | None, Query(description="`next_page_token` of the page before.")] = None,
    ) -> Response:
        """List tasks, newest first, one slice at a time. A task filed meanwhile moves the others one place on.

        A slice holds about 3 MiB at most: where the tasks are large it has fewer of them than were asked for, and its
        `limit` says how many. Go on at `next_offset`.

        With several statuses, or a parameter beside status, site and account, the list is searched and not counted: go
        on with `next_page_token` until it is null. A page may be short, or empty, and another one follow.
        """
        wanted = further.search(status, site, account, policy)
        if wanted.plain is not None and page_token is None:
            found = await store.read(list_tasks_from, wanted.plain, offset, limit)
            return await answer_page(task_document, found.items, found.total, limit, offset)
        if offset:
            raise invalid("offset", "must be 0 in a search; go on with next_page_token")
        page = await store.read(search_tasks, wanted, search_position(page_token or "", wanted), limit)
        return await answer_search(task_document, page.items, make_search_token(page.next_after, wanted), limit)

    @router.get(
        "/{task_id}",
        summary="Look at an order",
        responses=answers(models.Task, 404),
        openapi_extra=mirrors(_SERVICE, "GetOrder"),
    )
    async def get_order(task_id: TaskIdInPath) -> Response:
        """Return one task with its reports."""
        found = accepted(await store.read(get_task, fields.key("task_id", task_id)))
        return success(task_document(found))

    return router
