"""The statement of a day (docs/money.md#statement)."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from gateway.api.codec.search import make_search_token, search_position
from gateway.api.codec.statements import statement_day, totals_message
from gateway.api.offload import off_the_loop
from gateway.api.rest.documented import answers, mirrors
from gateway.api.rest.envelope import success
from gateway.api.rest.parameters import Limit
from gateway.api.rest.route import FacadeRoute
from gateway.domain import fields
from gateway.domain.models import Policy
from gateway.domain.statements import Spending, StatementDay, StatementLine
from gateway.domain.states import OrderState, TaskStatus
from gateway.operations.day import list_statement, tasks_of
from gateway.store.port import Store


class Decision(BaseModel):
    """A decision of a person."""

    kind: str = Field(
        description="approve, deny, requeue, withdraw, cancel, cancel_request, resolve or expire_now.",
        examples=["resolve"],
    )
    decided_by: str = Field(description="The identity of the token.", examples=["mika"])
    decided_at: str
    reason: str


class Line(BaseModel):
    """A task as it stands now."""

    task_id: str
    site: str
    account: str
    filed_at: str
    filed_by: str | None = Field(description="The identity of the token; null where it was not written down.")
    status: TaskStatus
    latest_state: OrderState | None
    spending: Spending = Field(description="Whether it has cost anything, as far as is known.")
    yen: int | None = Field(
        description="What was told last of the order's amount, or else what its permit was for; null: nobody knows."
    )
    site_order_ids: list[str]
    decisions: list[Decision] = Field(description="The first one first; of many the 20 newest.")


class Totals(BaseModel):
    """What the lines of this page add up to; a day's figures are the sums over its pages."""

    tasks: int
    ordered: int
    ordered_yen: int
    possible: int
    possible_yen: int
    cancelled: int
    cancelled_yen: int
    without_amount: int = Field(description="Of how many of those three nobody knows the amount.")


class Statement(BaseModel):
    """One page of the statement of a day."""

    time_zone: str
    starts_at: str
    ends_at: str
    items: list[Line]
    totals: Totals
    next_page_token: str | None = Field(description="The `page_token` of the next page; null on the last one.")


def statement_routes(store: Store, policy: Policy) -> APIRouter:
    """Make the route."""
    router = APIRouter(route_class=FacadeRoute, tags=["orders"])

    @router.get(
        "/api/statement",
        summary="The statement of a day",
        responses=answers(Statement),
        openapi_extra=mirrors("ordergateway.v1.OperationsService", "ListStatement"),
    )
    async def get_statement(
        day: Annotated[str, Query(description="From 1970-01-01 to 2999-12-31.", examples=["2026-11-30"])],
        time_zone: Annotated[
            str, Query(description="IANA name; absent: RAKUTEN_BUDGET_TIMEZONE.", examples=["Asia/Tokyo"])
        ] = "",
        limit: Limit = fields.DEFAULT_PAGE_SIZE,
        page_token: Annotated[str | None, Query(description="`next_page_token` of the page before.")] = None,
    ) -> Response:
        """Tell what was filed on a day, what it came to in yen, and who decided what, in the order of submission.

        Go on with `next_page_token` until it is null: a page may be short, and another one follow.
        """
        wanted = statement_day(day, time_zone, policy.budget_zone)
        search = tasks_of(wanted)
        page = await store.read(list_statement, wanted, search_position(page_token or "", search), limit)
        return await off_the_loop(
            lambda: success(_document(wanted, page.items, make_search_token(page.next_after, search)))
        )

    return router


def _document(day: StatementDay, lines: tuple[StatementLine, ...], next_page_token: str) -> dict[str, Any]:
    totals = totals_message(lines)
    return {
        "time_zone": day.zone,
        "starts_at": day.starts_at,
        "ends_at": day.ends_at,
        "items": [_line(line) for line in lines],
        "totals": {name: getattr(totals, name) for name in Totals.model_fields},
        "next_page_token": next_page_token or None,
    }


def _line(line: StatementLine) -> dict[str, Any]:
    task = line.task
    return {
        "task_id": task.task_id,
        "site": task.site,
        "account": task.account,
        "filed_at": task.created_at,
        "filed_by": task.submitted_by,
        "status": task.status,
        "latest_state": task.latest_state,
        "spending": line.spending,
        "yen": line.yen,
        "site_order_ids": line.site_order_ids,
        "decisions": [
            {"kind": event.kind, "decided_by": event.actor, "decided_at": event.occurred_at, "reason": event.reason}
            for event in line.decisions
        ],
    }
