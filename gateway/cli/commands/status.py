"""`order-gateway health`, `events`, `alerts`."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, Final

import typer
from google.protobuf.timestamp_pb2 import Timestamp
from ordergateway.v1 import operations_pb2, orders_pb2
from rich.text import Text

from common.output import say
from common.tables import print_fields, print_table
from gateway.cli.client import Client, connected
from gateway.cli.exit_codes import EPILOG
from gateway.cli.options import GatewayOption, JsonOption, LimitOption, ReasonOption, choice
from gateway.cli.output import as_json, list_as_json, name_of, number_of, print_json, span, when, word

alerts = typer.Typer(help="See what a person should look at, and say what was dealt with.")

_TIMES: Final = "2026-11-29T15:58:22Z, 2026-11-29T15:58:22+09:00, or 2026-11-29 (midnight UTC)"


def _moment(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or (at.tzinfo is None and len(text) != len("2026-11-29")):
        raise typer.BadParameter(f"write a time like {_TIMES}")
    return at if at.tzinfo else at.replace(tzinfo=UTC)


SubjectOption = Annotated[
    str, typer.Option("--task", "--query", metavar="ID", help="Only of this task_id or query_id.")
]
EventKindsOption = Annotated[
    list[str] | None,
    typer.Option("--kind", metavar="KIND", help="Only of this kind, as the column `what` shows it; may be repeated."),
]
SinceOption = Annotated[
    datetime | None,
    typer.Option(
        "--since",
        parser=_moment,
        metavar="TIME",
        help=f"Only from this time on: {_TIMES}.",
    ),
]
UntilOption = Annotated[
    datetime | None,
    typer.Option("--until", parser=_moment, metavar="TIME", help="Only before this time, written as for --since."),
]
_COUNTED: Final = 200
"""Up to how many tasks and alerts `health` counts, one page each."""

_SHOWN_APART: Final = (
    operations_pb2.HEALTH_PROBLEM_KIND_WORKER_OFFLINE,
    operations_pb2.HEALTH_PROBLEM_KIND_TASK_UNCLAIMED,
    operations_pb2.HEALTH_PROBLEM_KIND_DECISION_WAITING,
    operations_pb2.HEALTH_PROBLEM_KIND_ALERT_STANDING,
)
"""Problems that have lines of their own, which say more."""

KindOption = Annotated[str | None, choice("--kind", operations_pb2.AlertKind, "Only of this kind.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(health)
    app.command()(events)
    app.add_typer(alerts, name="alerts", epilog=EPILOG)


def health(gateway: GatewayOption = None, as_json_: JsonOption = False) -> None:
    """Say how the gateway and its workers are, and how much waits for a person.

    Ends with 0 whenever the gateway answers, be it ok or degraded.
    """
    with connected(gateway) as client:
        found = client.call(client.operations.GetHealth, operations_pb2.GetHealthRequest())
        waiting = [] if as_json_ else list(_waiting_for_a_person(client))
    if as_json_:
        print_json(as_json(found))
        return
    print_fields(
        (
            ("gateway", word(operations_pb2.HealthStatus, found.status)),
            *waiting,
            *(("problem", problem.message) for problem in found.problems if problem.kind not in _SHOWN_APART),
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
    subject: SubjectOption = "",
    kinds: EventKindsOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
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
    print_table(columns, rows, f"no event of the kind {' or '.join(kinds)}; is it spelt so?" if kinds else "no events")


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
    request = operations_pb2.ListAlertsRequest(
        include_cleared=cleared_too, kind=number_of(operations_pb2.AlertKind, kind)
    )
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


@alerts.command()
def clear(
    alert: Annotated[int, typer.Argument(metavar="ALERT", help="The number that `order-gateway alerts` shows.")],
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
        say(f"alert {cleared.alert_id} is cleared")


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


def _waiting_for_a_person(client: Client) -> Iterator[tuple[str, Text]]:
    """Yield what `decisions` and `alerts` would show, as counts."""
    tasks = []
    for status in (orders_pb2.TASK_STATUS_STALE, orders_pb2.TASK_STATUS_NEEDS_HUMAN):
        request = orders_pb2.ListOrdersRequest(status=status)
        if count := _count(client.pages(client.orders.ListOrders, request, "tasks", _COUNTED)):
            tasks.append(f"{count} {name_of(orders_pb2.TaskStatus, status)}")
    if tasks:
        yield "to decide", Text(f"{', '.join(tasks)}; see `order-gateway decisions`", style="yellow")
    standing = operations_pb2.ListAlertsRequest()
    if count := _count(client.pages(client.operations.ListAlerts, standing, "alerts", _COUNTED)):
        yield "alerts", Text(f"{count} standing; see `order-gateway alerts`", style="yellow")


def _count(found: list[Any]) -> str:
    if not found:
        return ""
    return f"{_COUNTED} or more" if len(found) >= _COUNTED else str(len(found))


def _timestamp(at: datetime | None) -> Timestamp | None:
    if at is None:
        return None
    message = Timestamp()
    message.FromDatetime(at.astimezone(UTC))
    return message
