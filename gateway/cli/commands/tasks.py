"""`order-gateway tasks`: list, show, watch."""

from collections.abc import Iterator
from typing import Annotated

import typer
from ordergateway.v1 import operations_pb2, orders_pb2
from rich.text import Text

from common.output import print_json, print_json_line, print_line
from common.tables import print_fields, print_table
from common.target import Target
from gateway.cli.client import Client, connected
from gateway.cli.commands.events import event_rows
from gateway.cli.exit_codes import EPILOG
from gateway.cli.options import AccountOption, GatewayOption, JsonOption, LimitOption, SiteOption, TaskArgument, choice
from gateway.cli.output import as_json, list_as_json, name_of, number_of, when, word

tasks = typer.Typer(help="Look at tasks.", no_args_is_help=True)

StatusOption = Annotated[str | None, choice("--status", orders_pb2.TaskStatus, "Only in this status.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(tasks, name="tasks", epilog=EPILOG)


@tasks.command("list")
def list_tasks(
    status: StatusOption = None,
    site: SiteOption = "",
    account: AccountOption = "",
    limit: LimitOption = 50,
    gateway: GatewayOption = None,
    as_json_: JsonOption = False,
) -> None:
    """List tasks, the newest first."""
    request = orders_pb2.ListOrdersRequest(site=site, account=account, status=number_of(orders_pb2.TaskStatus, status))
    with connected(gateway) as client:
        found = client.pages(client.orders.ListOrders, request, "tasks", limit)
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
        found = client.call(client.orders.GetOrder, orders_pb2.GetOrderRequest(task_id=task)).task
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
        for found in _changes(client, task):
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
    yield "callback", task.callback_url
    for key, value in sorted(task.labels.items()):
        yield f"label {key}", value
    yield "intent", task.intent_json


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


def _changes(client: Client, task_id: str) -> Iterator[orders_pb2.Task]:
    request = orders_pb2.WatchOrderRequest(task_id=task_id)
    for change in client.orders.WatchOrder(request, metadata=client.metadata):
        if change.WhichOneof("event") == "task":
            yield change.task


def _line(task: orders_pb2.Task) -> Iterator[Text]:
    yield Text(when(task, "updated_at"))
    yield Text(task.task_id)
    yield word(orders_pb2.TaskStatus, task.status)
    if task.latest_state:
        yield Text(f"order {name_of(orders_pb2.OrderState, task.latest_state)}")
    if task.HasField("lease_owner"):
        yield Text(f"held by {task.lease_owner}")
