"""`order-gateway health`, `events`, `alerts`."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Annotated

import typer
from google.protobuf.timestamp_pb2 import Timestamp
from ordergateway.v1 import operations_pb2, orders_pb2

from gateway.cli.connection import connected
from gateway.cli.exits import EPILOG
from gateway.cli.options import GatewayOption, JsonOption, LimitOption, ReasonOption
from gateway.cli.output import (
    as_json,
    console,
    list_as_json,
    name_of,
    plain,
    print_fields,
    print_json,
    print_table,
    span,
    when,
    word,
)
from gateway.domain.models import AlertKind

alerts = typer.Typer(help="See what a person should look at, and say what was dealt with.")

TimeOption = typer.Option(
    formats=["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S.%fZ", "%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%d"], metavar="TIME"
)
KindOption = Annotated[AlertKind | None, typer.Option("--kind", help="Only of this kind.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(epilog=EPILOG)(health)
    app.command(epilog=EPILOG)(events)
    app.add_typer(alerts, name="alerts", epilog=EPILOG)


def health(gateway: GatewayOption = None, as_json_: JsonOption = False) -> None:
    """Say how the gateway and its workers are."""
    with connected(gateway) as client:
        found = client.call(client.operations.GetHealth, operations_pb2.GetHealthRequest())
    if as_json_:
        print_json(as_json(found))
        return
    print_fields(
        (
            ("gateway", word(operations_pb2.HealthStatus, found.status)),
            ("queued", str(found.queued_count)),
            ("queued queries", str(found.queued_query_count)),
            *((f"{name_of(orders_pb2.TaskStatus, task.status)}", task.task_id) for task in found.active_tasks),
            *(
                (
                    "worker",
                    f"{worker.worker_id}, heard of {span(worker.last_seen_ago)} ago{', offline' * worker.offline}",
                )
                for worker in found.workers
            ),
            *(("waits too long", f"{task.task_id}, {span(task.age)}") for task in found.stale_queued_tasks),
            *(("paused", f"{pause.site or 'all sites'}: {pause.reason}") for pause in found.pauses),
        )
    )


def events(
    subject: Annotated[str, typer.Option("--task", "--query", help="Only of this task or query.")] = "",
    kinds: Annotated[list[str] | None, typer.Option("--kind", help="Only of this kind; may be repeated.")] = None,
    since: Annotated[datetime | None, TimeOption] = None,
    until: Annotated[datetime | None, TimeOption] = None,
    limit: LimitOption = 50,
    gateway: GatewayOption = None,
    as_json_: JsonOption = False,
) -> None:
    """Show the history, the newest first: every change and every refusal worth knowing. Times are UTC."""
    request = operations_pb2.ListEventsRequest(
        subject=subject, kinds=kinds or [], since=_timestamp(since), until=_timestamp(until)
    )
    with connected(gateway) as client:
        found = client.pages(client.operations.ListEvents, request, "events", limit)
    if as_json_:
        list_as_json("events", found)
        return
    columns = ("number", "when", "about", "what", "who", "worker", "before", "after", "why")
    rows = ((row[0], row[1], event.subject, *row[2:]) for event, row in zip(found, event_rows(found), strict=True))
    print_table(columns, rows, "no events")


@alerts.callback(invoke_without_command=True)
def list_alerts(
    context: typer.Context,
    kind: KindOption = None,
    cleared_too: Annotated[bool, typer.Option("--all", help="Cleared ones too.")] = False,
    limit: LimitOption = 50,
    gateway: GatewayOption = None,
    as_json_: JsonOption = False,
) -> None:
    """Show the alerts that stand, the newest first."""
    if context.invoked_subcommand is not None:
        return
    request = operations_pb2.ListAlertsRequest(include_cleared=cleared_too)
    if kind is not None:
        request.kind = operations_pb2.AlertKind.Value(f"ALERT_KIND_{kind.name}")
    with connected(gateway) as client:
        found = client.pages(client.operations.ListAlerts, request, "alerts", limit)
    if as_json_:
        list_as_json("alerts", found)
        return
    print_table(
        ("alert", "kind", "about", "raised", "cleared", "message"),
        (
            (
                str(alert.alert_id),
                word(operations_pb2.AlertKind, alert.kind),
                alert.subject,
                when(alert, "raised_at"),
                when(alert, "cleared_at"),
                alert.message,
            )
            for alert in found
        ),
        "no alerts" if cleared_too else "no alert stands",
    )


@alerts.command(epilog=EPILOG)
def clear(
    alert: Annotated[int, typer.Argument(metavar="ALERT", help="Its number.")],
    reason: ReasonOption,
    gateway: GatewayOption = None,
    as_json_: JsonOption = False,
) -> None:
    """Say that something that happened was dealt with. Alerts of a condition clear themselves."""
    request = operations_pb2.ClearAlertRequest(alert_id=alert, reason=reason)
    with connected(gateway) as client:
        cleared = client.call(client.operations.ClearAlert, request).alert
    if as_json_:
        print_json(as_json(cleared))
    else:
        console().print(plain(f"alert {cleared.alert_id} is cleared"))


def event_rows(found: Iterable[operations_pb2.Event]) -> Iterator[tuple[str, ...]]:
    """Yield the cells of events: number, when, what, who, worker, before, after, why."""
    for event in found:
        yield (
            str(event.sequence),
            when(event, "occurred_at"),
            event.kind,
            event.actor,
            event.worker_id,
            event.before,
            event.after,
            event.reason,
        )


def _timestamp(at: datetime | None) -> Timestamp | None:
    if at is None:
        return None
    message = Timestamp()
    message.FromDatetime((at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC))
    return message
