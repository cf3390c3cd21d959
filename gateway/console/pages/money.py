"""What may be spent, and what waits for somebody's consent; and the statement of a day."""

from datetime import datetime
from typing import Final
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from starlette.responses import Response

from gateway.api.answers import accepted
from gateway.api.codec.page_tokens import make_page_token, page_position, page_token
from gateway.console.charts import gauge
from gateway.console.visit import HOME, OPERATIONS, Visit
from gateway.domain import fields
from gateway.domain.budgets import BudgetPeriod
from gateway.domain.instant import parse_utc
from gateway.domain.refusals import invalid
from gateway.domain.search import HELD_FOR_APPROVAL
from gateway.domain.statements import StatementDay
from gateway.operations.budgets import list_budgets, show_budget
from gateway.operations.day import list_statement
from gateway.orders.search import search_tasks

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
    zone = fields.time_zone("zone", visit.query("zone") or visit.parts.policy.budget_zone)
    today = parse_utc(visit.parts.wall_utc()).astimezone(ZoneInfo(zone)).date()
    try:
        day = datetime.strptime(visit.query("day"), "%Y-%m-%d").date() if visit.query("day") else today  # noqa: DTZ007 - a day of `zone`
    except ValueError:
        raise invalid("day", "must be a day, such as 2026-11-30") from None
    wanted = StatementDay(day, zone)
    filters = ["statement", day.isoformat(), zone]
    after = page_position(visit.query("page"), filters, 1)
    async with visit.parts.admission.turn(call):
        found = await visit.parts.store.read(list_statement, wanted, after, A_PAGE)
        return visit.page(
            "statement.html",
            lines=found.items,
            day=day.isoformat(),
            zone=zone,
            address=f"{HOME}/statement?{urlencode({'day': day.isoformat(), 'zone': zone})}",
            next_page=make_page_token(found.next_after, filters),
            is_first=after is None,
        )
