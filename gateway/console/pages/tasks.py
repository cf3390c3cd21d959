"""All tasks, by the conditions that lists take over every transport (docs/specification.md#finding-tasks)."""

from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode

from ordergateway.v1 import orders_pb2
from starlette.responses import Response

from gateway.api.codec.search import make_search_token, search_position, task_search
from gateway.console.visit import HOME, OPERATIONS, ORDERS, Visit
from gateway.domain.refusals import RefusedError, invalid
from gateway.domain.states import TaskStatus
from gateway.orders.search import search_tasks

A_PAGE: Final = 50

_TEXTS: Final = ("site", "account", "site_order_id", "task_id_prefix", "task_id_contains")
_TIMES: Final = ("created_from", "created_to", "updated_from", "updated_to")
_FLAGS: Final = ("needs_decision", "held_for_approval", "oldest_first")


async def show(visit: Visit) -> Response:
    """Show a page of them."""
    call = visit.call(ORDERS + "ListOrders")
    told, statuses = conditions(visit)
    asked = urlencode(as_pairs(told, statuses))
    shown: dict[str, Any] = {
        "asked": told,
        "statuses": statuses,
        "texts": _TEXTS,
        "times": _TIMES,
        "flags": _FLAGS,
        "all_statuses": list(TaskStatus),
        "address": f"{HOME}/tasks?{asked}" if asked else f"{HOME}/tasks",
        "bulk": f"{HOME}/bulk?{asked}" if asked and visit.may(OPERATIONS + "DecideOrders") else "",
    }
    try:
        wanted = task_search(task_filter(told, statuses), visit.parts.policy, "")
        after = search_position(visit.query("page"), wanted)
    except RefusedError as error:
        return visit.page("tasks.html", 422, refusal=error.refusal, tasks=(), next_page="", is_first=True, **shown)
    async with visit.parts.admission.turn(call):
        found = await visit.parts.store.read(search_tasks, wanted, after, A_PAGE)
        return visit.page(
            "tasks.html",
            refusal=None,
            tasks=found.items,
            next_page=make_search_token(found.next_after, wanted),
            is_first=after is None,
            **shown,
        )


def conditions(visit: Visit) -> tuple[dict[str, str], list[str]]:
    """Return the conditions that an address tells: each with its text, and the statuses."""
    told = {name: visit.query(name) for name in (*_TEXTS, *_TIMES, *_FLAGS, "label")}
    return told, [status for status in visit.request.query_params.getlist("status") if status]


def as_pairs(told: dict[str, str], statuses: list[str]) -> list[tuple[str, str]]:
    """Return the conditions that say anything, by their names in an address."""
    return [*((name, text) for name, text in told.items() if text), *(("status", status) for status in statuses)]


def task_filter(told: dict[str, str], statuses: list[str]) -> orders_pb2.TaskFilter:
    """Read the conditions. Raises RefusedError INVALID_FIELD."""
    wanted = orders_pb2.TaskFilter()
    for name in _TEXTS:
        setattr(wanted, name, told[name])
    for name in _TIMES:
        if told[name]:
            getattr(wanted, name).FromDatetime(_time(name, told[name]))
    for status in statuses:
        if status not in set(TaskStatus):
            raise invalid("status", "is no status of a task")
        wanted.statuses.append(orders_pb2.TaskStatus.Value(f"TASK_STATUS_{status.upper()}"))
    if told["label"]:
        key, separator, value = told["label"].partition("=")
        if not separator:
            raise invalid("label", "must be KEY=VALUE")
        wanted.labels[key.strip()] = value.strip()
    wanted.needs_decision = bool(told["needs_decision"])
    wanted.held_for_approval = bool(told["held_for_approval"])
    if told["oldest_first"]:
        wanted.order = orders_pb2.TASK_ORDER_OLDEST_FIRST
    return wanted


def _time(name: str, text: str) -> datetime:
    """Read a time; in UTC where it has no offset."""
    try:
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise invalid(name, "must be a day or a time, such as 2026-11-30 or 2026-11-30T09:00+09:00") from None
