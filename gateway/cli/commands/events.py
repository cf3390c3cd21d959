"""`order-gateway events`."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Annotated, Final

import typer
from google.protobuf.timestamp_pb2 import Timestamp
from ordergateway.v1 import operations_pb2

from common.tables import print_table
from gateway.cli.client import connected
from gateway.cli.options import GatewayOption, JsonOption, LimitOption
from gateway.cli.output import list_as_json, when

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


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(events)


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
    message.FromDatetime(at.astimezone(UTC))
    return message
