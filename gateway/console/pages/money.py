"""What may be spent, and what waits for somebody's consent; and the statement of a day."""

from collections.abc import AsyncIterator
from typing import Any, Final
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from ordergateway.v1 import statements_pb2
from starlette.responses import Response, StreamingResponse

from gateway.api.answers import accepted
from gateway.api.codec.page_tokens import make_page_token, page_position, page_token
from gateway.console.charts import gauge
from gateway.console.visit import HOME, OPERATIONS, Visit
from gateway.domain import fields
from gateway.domain.budgets import BudgetPeriod
from gateway.domain.instant import parse_utc
from gateway.domain.search import HELD_FOR_APPROVAL
from gateway.domain.statements import StatementDay
from gateway.operations.budgets import list_budgets, show_budget
from gateway.operations.day import list_statement
from gateway.orders.search import search_tasks
from gateway.spreadsheets.safe_csv import csv_text
from gateway.spreadsheets.statement import COLUMNS, cells

A_PAGE: Final = 50


async def show(visit: Visit) -> Response:
    """Show the budgets that stand and the tasks that wait for an approval."""
    visit.call(OPERATIONS + "ListBudgets")
    call = visit.call(OPERATIONS + "ListApprovals")
    after = page_position(visit.query("page"), ["approvals"], 1)
    async with visit.parts.admission.turn(call):
        budgets = await visit.parts.store.read(list_budgets)
        waiting = await visit.parts.store.read(search_tasks, HELD_FOR_APPROVAL, after, A_PAGE)
        return visit.page(
            "money.html",
            budgets=[(state, gauge(state)) for state in budgets],
            periods=list(BudgetPeriod),
            waiting=waiting.items,
            next_page=make_page_token(waiting.next_after, ["approvals"]),
            is_first=after is None,
        )


async def show_one(visit: Visit) -> Response:
    """Show a budget with its ledger."""
    visit.call(OPERATIONS + "GetBudget")
    budget_id = fields.budget_id("budget_id", visit.request.path_params["budget_id"])
    below = page_token(visit.query("page"), [budget_id])
    found = accepted(await visit.parts.store.read(show_budget, budget_id, below, A_PAGE))
    return visit.page(
        "budget.html",
        state=found.state,
        gauge=gauge(found.state),
        entries=found.entries.items,
        next_page=make_page_token(found.entries.next_after, [budget_id]),
        is_first=below is None,
    )


async def show_statement(visit: Visit) -> Response:
    """Show what was filed on a day, and what it came to."""
    call = visit.call(OPERATIONS + "ListStatement")
    wanted = _day_of(visit)
    chosen = {"day": wanted.day.isoformat(), "zone": wanted.zone}
    filters = ["statement", *chosen.values()]
    after = page_position(visit.query("page"), filters, 1)
    async with visit.parts.admission.turn(call):
        found = await visit.parts.store.read(list_statement, wanted, after, A_PAGE)
        return visit.page(
            "statement.html",
            lines=found.items,
            **chosen,
            address=f"{HOME}/statement?{urlencode(chosen)}",
            download=f"{HOME}/statement.csv?{urlencode(chosen)}",
            next_page=make_page_token(found.next_after, filters),
            is_first=after is None,
        )


async def download_statement(visit: Visit) -> Response:
    """Give what `order-gateway statement --csv` writes, as a file named after the day."""
    path = OPERATIONS + "ListStatement"
    call = visit.call(path)
    wanted = _day_of(visit)
    method = visit.parts.methods[path]
    request = statements_pb2.ListStatementRequest(
        day=wanted.day.isoformat(), time_zone=wanted.zone, page_size=fields.MAX_PAGE_SIZE
    )

    async def page() -> Any:
        async with visit.parts.admission.turn(call):
            return await method.serve(request, call)

    async def texts(found: Any) -> AsyncIterator[str]:
        yield csv_text(COLUMNS, map(cells, found.lines))
        while found.next_page_token:
            request.page_token = found.next_page_token
            found = await page()
            yield csv_text(None, map(cells, found.lines))

    # The first page is read before the answer begins, so that a refusal is told as one.
    first = await page()
    named = f'attachment; filename="statement-{wanted.day.isoformat()}.csv"'
    return StreamingResponse(texts(first), media_type="text/csv", headers={"Content-Disposition": named})


def _day_of(visit: Visit) -> StatementDay:
    zone = fields.time_zone("zone", visit.query("zone") or visit.parts.policy.budget_zone)
    if visit.query("day"):
        return StatementDay(fields.day("day", visit.query("day")), zone)
    return StatementDay(parse_utc(visit.parts.wall_utc()).astimezone(ZoneInfo(zone)).date(), zone)
