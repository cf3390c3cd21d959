"""One decision about many tasks, chosen by conditions: what it would come to for each, and taking it."""

import asyncio
from typing import Final
from urllib.parse import urlencode

from google.protobuf.timestamp_pb2 import Timestamp
from ordergateway.v1 import operations_pb2, orders_pb2
from starlette.responses import Response

from gateway.console.forms import Form
from gateway.console.pages.tasks import as_pairs, conditions, task_filter
from gateway.console.visit import HOME, OPERATIONS, Visit, way_back
from gateway.domain.refusals import invalid
from gateway.spreadsheets.words import exact, name_of

A_PAGE: Final = 100
"""So many tasks are decided at once: a call lasts some seconds at most, and a form has room for them."""

DECISIONS: Final = ("requeue", "cancel", "resolve_failed", "resolve_succeeded")


async def show(visit: Visit) -> Response:
    """Show what a decision would come to, with the form that takes it."""
    path = OPERATIONS + "ListDecisionOutcomes"
    call = visit.call(path)
    told, statuses = conditions(visit)
    pairs, decision = as_pairs(told, statuses), visit.query("decision")
    asked = urlencode(pairs)
    outcomes: list[operations_pb2.DecisionOutcome] = []
    next_page = ""
    if asked and decision:
        request = operations_pb2.ListDecisionOutcomesRequest(
            decision=_kind(decision),
            filter=task_filter(told, statuses),
            page_size=A_PAGE,
            page_token=visit.query("page"),
        )
        async with visit.parts.admission.turn(call):
            found = await visit.parts.methods[path].serve(request, call)
        outcomes, next_page = found.outcomes, found.next_page_token
    return visit.page(
        "bulk.html",
        asked=asked,
        conditions=pairs,
        decision=decision,
        decisions=DECISIONS,
        outcomes=[(each, *_words(each), exact(each, "updated_at")) for each in outcomes],
        count=sum(not each.HasField("refusal") for each in outcomes),
        may_decide=visit.may(OPERATIONS + "DecideOrders"),
        address=f"{HOME}/bulk?{urlencode([*pairs, ('decision', decision)])}",
        next_page=next_page,
        is_first=not visit.query("page"),
    )


async def decide(visit: Visit, form: Form) -> Response:
    """Take the decision about the tasks as they were shown, and show what became of each."""
    path = OPERATIONS + "DecideOrders"
    call = visit.call(path)
    request = operations_pb2.DecideOrdersRequest(decision=_kind(form.one("decision")), reason=form.one("reason"))
    for text in form.every("seen"):
        task_id, _, updated_at = text.partition(" ")
        request.tasks.add(task_id=task_id, updated_at=_time(updated_at))
    # Whoever closes the page does not break off what they have decided.
    done = await asyncio.shield(asyncio.ensure_future(visit.parts.methods[path].serve(request, call)))
    results = [(each, name_of(orders_pb2.TaskStatus, each.status)) for each in done.results]
    return visit.page("bulk_done.html", results=results, back=way_back(form.one("back")))


def _kind(decision: str) -> "operations_pb2.DecisionKind.ValueType":
    if decision not in DECISIONS:
        raise invalid("decision", f"must be one of {', '.join(DECISIONS)}")
    return operations_pb2.DecisionKind.Value(f"DECISION_KIND_{decision.upper()}")


def _words(outcome: operations_pb2.DecisionOutcome) -> tuple[str, str, str]:
    return (
        name_of(orders_pb2.TaskStatus, outcome.status),
        name_of(orders_pb2.Placement, outcome.placement),
        name_of(orders_pb2.TaskStatus, outcome.becomes),
    )


def _time(text: str) -> Timestamp:
    shown = Timestamp()
    try:
        shown.FromJsonString(text)
    except ValueError:
        raise invalid("seen", "must be a task with the time of its last change") from None
    return shown
