"""`order-gateway tasks`: list, show, watch."""

from collections.abc import Iterator
from typing import Annotated

import typer
from ordergateway.v1 import operations_pb2, orders_pb2
from rich.text import Text

from common.output import print_json, print_json_line, print_line
from common.tables import print_fields, print_table
from common.target import Target
from gateway.cli.client import connected
from gateway.cli.commands.events import event_rows
from gateway.cli.exit_codes import EPILOG
from gateway.cli.options import GatewayOption, JsonOption, LimitOption, TaskArgument
from gateway.cli.output import as_json, list_as_json, when, word
from gateway.cli.search_options import selects_tasks
from gateway.spreadsheets.words import name_of

tasks = typer.Typer(help="Look at tasks.", no_args_is_help=True)

OldestFirstOption = Annotated[bool, typer.Option("--oldest-first", help="The oldest first.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(tasks, name="tasks", epilog=EPILOG)


@tasks.command("list")
@selects_tasks
def list_tasks(
    selected: orders_pb2.TaskFilter,
    oldest_first: OldestFirstOption = False,
    limit: LimitOption = 50,
    gateway: GatewayOption = None,
    as_json_: JsonOption = False,
) -> None:
    """List tasks, the newest first; with --updated-from or --updated-to those first that changed last."""
    with connected(gateway) as client:
        found = list(client.search(selected, oldest_first=oldest_first, limit=limit))
    if as_json_:
        list_as_json("tasks", found)
        return
    print_table(
        ("task", "site", "status", "order", "placement", "leases", "held by", "updated"),
        (
            (
                task.task_id,
                str(Target(task.site, task.account)),
                word(orders_pb2.TaskStatus, task.status),
                word(orders_pb2.OrderState, task.latest_state),
                word(orders_pb2.Placement, task.placement),
                str(task.lease_count),
                task.lease_owner,
                when(task, "updated_at"),
            )
            for task in found
        ),
        "no tasks",
    )


@tasks.command()
def show(task: TaskArgument, gateway: GatewayOption = None, as_json_: JsonOption = False) -> None:
    """Show one task with its reports and its history."""
    with connected(gateway) as client:
        found = client.about(task).get(task)
        request = operations_pb2.ListEventsRequest(subject=task)
        events = client.pages(client.operations.ListEvents, request, "events", 1_000)[::-1]
    if as_json_:
        print_json({"task": as_json(found), "events": [as_json(event) for event in events]})
        return
    print_fields(task_fields(found))
    print_reports(found)
    print_line(Text("\nhistory", "bold"))
    print_table(("number", "when", "what", "who", "worker", "before", "after", "why"), event_rows(events), "no history")


@tasks.command()
def watch(task: TaskArgument, gateway: GatewayOption = None, as_json_: JsonOption = False) -> None:
    """Follow one task until it has ended; one line for each change."""
    with connected(gateway) as client:
        for found in client.about(task).watch(task):
            if as_json_:
                print_json_line(as_json(found))
            else:
                print_line(Text("  ").join(_line(found)))


def task_fields(task: orders_pb2.Task) -> Iterator[tuple[str, str | Text]]:
    """Yield what a person wants to know of a task."""
    yield "task", task.task_id
    yield "site", task.site
    if task.account:
        yield "account", task.account
    yield "status", word(orders_pb2.TaskStatus, task.status)
    yield "order", word(orders_pb2.OrderState, task.latest_state)
    yield "placement", word(orders_pb2.Placement, task.placement)
    yield "permitted", when(task, "submit_permitted_at") or "never"
    yield "leases", str(task.lease_count)
    yield "held by", task.lease_owner
    yield "until", when(task, "lease_expires_at")
    yield "filed", when(task, "created_at")
    yield "updated", when(task, "updated_at")
    if task.HasField("max_total_yen"):
        yield "cap", f"{task.max_total_yen:,} yen"
    yield "not before", when(task, "not_before")
    yield "not after", when(task, "not_after")
    yield "same intent as", task.same_intent_as
    yield "cancel requested", when(task, "cancel_requested_at")
    yield "filed by", task.submitted_by
    yield "needs approval", ", ".join(name_of(orders_pb2.ApprovalReason, reason) for reason in task.approval_reasons)
    yield "approval", _approval(task)
    yield "dry run", "yes" if task.stop_before_submit else ""
    if task.HasField("terms"):
        yield "terms", _terms(task.terms)
    yield "callback", task.callback_url
    for key, value in sorted(task.labels.items()):
        yield f"label {key}", value
    yield "intent", task.intent_json


def _approval(task: orders_pb2.Task) -> str:
    """Return what was decided, or that nothing was yet."""
    given = task.approval
    waits = "waits for one" if task.held_for_approval else ""
    if given.verdict == orders_pb2.Approval.VERDICT_UNSPECIFIED:
        return waits
    told = f"{name_of(orders_pb2.Approval.Verdict, given.verdict)} by {given.decided_by} at {when(given, 'decided_at')}"
    if given.HasField("max_total_yen"):
        told += f", up to {given.max_total_yen:,} yen until {when(given, 'valid_until')}"
    if given.used_by_lease:
        told += f", used by lease {given.used_by_lease}"
    elif given.HasField("ended_at") and given.HasField("max_total_yen"):
        told += ", not valid any more"
    return "\n".join(part for part in (f"{told}: {given.reason}", waits) if part)


def _terms(terms: orders_pb2.Terms) -> str:
    """Return what a worker read from the confirmation page, an item a line."""
    lines = [f"{terms.payable_yen:,} yen to pay"]
    for item in terms.items:
        variant = f" ({item.variant_id})" if item.variant_id else ""
        price = f" at {item.unit_price_yen:,} yen" if item.HasField("unit_price_yen") else ""
        lines.append(f"{item.quantity} x {item.item_url}{variant}{price}")
    return "\n".join(lines)


def print_reports(task: orders_pb2.Task) -> None:
    """Print the reports of a task, the oldest first."""
    print_line(Text("\nreports", "bold"))
    print_table(
        ("order", "reported", "yen", "pay until", "order number", "evidence", "error", "detail"),
        (
            (
                word(orders_pb2.OrderState, report.state),
                when(report, "reported_at"),
                str(report.payable_yen) if report.HasField("payable_yen") else "",
                when(report, "pay_deadline"),
                report.site_order_id,
                report.evidence_ref,
                str(report.error_code) if report.HasField("error_code") else "",
                report.detail,
            )
            for report in task.reports
        ),
        "no reports",
    )


def _line(task: orders_pb2.Task) -> Iterator[Text]:
    yield Text(when(task, "updated_at"))
    yield Text(task.task_id)
    yield word(orders_pb2.TaskStatus, task.status)
    if task.latest_state:
        yield Text(f"order {name_of(orders_pb2.OrderState, task.latest_state)}")
    if task.HasField("lease_owner"):
        yield Text(f"held by {task.lease_owner}")
