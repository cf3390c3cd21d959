"""How the gateway is: the queue and its pauses, workers, alerts, callbacks, the history, the settings."""

from typing import Final

from starlette.responses import Response

from gateway.api.codec.page_tokens import make_page_token, page_token
from gateway.callbacks.manage import list_callbacks
from gateway.console.charts import decision_chart, queue_chart
from gateway.console.visit import OPERATIONS, Visit
from gateway.domain import fields
from gateway.domain.callbacks import CallbackStatus
from gateway.domain.models import AlertKind
from gateway.domain.operations import HistoryFilter
from gateway.domain.refusals import invalid
from gateway.operations.alerts import list_alerts
from gateway.operations.history import list_events
from gateway.operations.overview import last_day
from gateway.operations.second_person import waiting_about

A_PAGE: Final = 50


async def show_queue(visit: Visit) -> Response:
    """Show what waits, what is in execution, who works, and what is paused."""
    visit.call(OPERATIONS + "GetHealth")
    health = await visit.parts.look()
    steps = await visit.parts.store.read(last_day)
    proposal = await visit.parts.store.read(waiting_about, None)
    return visit.page(
        "queue.html",
        health=health,
        proposal=proposal,
        sites=visit.parts.policy.sites,
        paused={pause.site for pause in health.pauses},
        queue_chart=queue_chart(steps),
        decision_chart=decision_chart(steps),
        steps=steps,
    )


async def show_alerts(visit: Visit) -> Response:
    """Show a page of alerts."""
    visit.call(OPERATIONS + "ListAlerts")
    kind, cleared_too = visit.query("kind"), bool(visit.query("cleared"))
    if kind and kind not in set(AlertKind):
        raise invalid("kind", "is no kind of alert")
    filters = ["alerts", kind, "all" if cleared_too else ""]
    below = page_token(visit.query("page"), filters)
    found = await visit.parts.store.read(list_alerts, AlertKind(kind) if kind else None, cleared_too, below, A_PAGE)
    return visit.page(
        "alerts.html",
        alerts=found.items,
        kind=kind,
        cleared_too=cleared_too,
        kinds=list(AlertKind),
        next_page=make_page_token(found.next_after, filters),
        is_first=below is None,
    )


async def show_callbacks(visit: Visit) -> Response:
    """Show a page of callbacks."""
    visit.call(OPERATIONS + "ListCallbacks")
    status = visit.query("status")
    if status and status not in set(CallbackStatus):
        raise invalid("status", "is no status of a callback")
    filters = ["callbacks", status]
    below = page_token(visit.query("page"), filters)
    found = await visit.parts.store.read(
        list_callbacks, CallbackStatus(status) if status else None, None, below, A_PAGE
    )
    return visit.page(
        "callbacks.html",
        found={"callbacks": found.items},
        status=status,
        statuses=list(CallbackStatus),
        next_page=make_page_token(found.next_after, filters),
        is_first=below is None,
    )


async def show_history(visit: Visit) -> Response:
    """Show a page of the history."""
    visit.call(OPERATIONS + "ListEvents")
    subject = fields.text("subject", visit.query("subject"), limit=fields.MAX_REASON_CHARACTERS)
    filters = ["events", subject]
    below = page_token(visit.query("page"), filters)
    wanted = HistoryFilter(subject or None, (), None, None)
    found = await visit.parts.store.read(list_events, wanted, below, A_PAGE)
    return visit.page(
        "history.html",
        events=found.items,
        subject=subject,
        next_page=make_page_token(found.next_after, filters),
        is_first=below is None,
    )


async def show_settings(visit: Visit) -> Response:
    """Show the settings in effect; secrets are not among what is shown."""
    visit.call(OPERATIONS + "GetHealth")
    return visit.page("settings.html", settings=visit.parts.settings)
