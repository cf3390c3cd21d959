"""`order-gateway approvals`: orders that wait for somebody else's approval."""

from datetime import timedelta
from typing import Annotated

import typer
from google.protobuf.duration_pb2 import Duration
from ordergateway.v1 import operations_pb2, orders_pb2

from common.output import plain, print_json, print_line, say
from common.tables import print_table
from common.target import Target
from gateway.cli.client import connected
from gateway.cli.exit_codes import EPILOG
from gateway.cli.options import MAX_YEN, GatewayOption, JsonOption, LimitOption, ReasonOption, TaskArgument
from gateway.cli.output import as_json, list_as_json, when
from gateway.spreadsheets.words import name_of

approvals = typer.Typer(help="See which orders wait for an approval; approve or deny them.", no_args_is_help=True)

_MAX_HOURS = 365 * 24


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(approvals, name="approvals", epilog=EPILOG)


@approvals.command("list")
def list_approvals(limit: LimitOption = 50, gateway: GatewayOption = None, as_json_: JsonOption = False) -> None:
    """List the orders that wait for an approval, those filed first at first."""
    with connected(gateway) as client:
        found = client.pages(client.operations.ListApprovals, operations_pb2.ListApprovalsRequest(), "tasks", limit)
    if as_json_:
        list_as_json("tasks", found)
        return
    print_table(
        ("task", "site", "cap", "filed", "by", "why", "intent"),
        (
            (
                task.task_id,
                str(Target(task.site, task.account)),
                f"{task.max_total_yen:,} yen" if task.HasField("max_total_yen") else "none",
                when(task, "created_at"),
                task.submitted_by,
                ", ".join(name_of(orders_pb2.ApprovalReason, reason) for reason in task.approval_reasons),
                task.intent_json,
            )
            for task in found
        ),
        "nothing waits for an approval",
    )


@approvals.command()
def approve(
    task: TaskArgument,
    reason: ReasonOption,
    total: Annotated[
        int | None,
        typer.Option(
            "--total", min=1, max=MAX_YEN, metavar="YEN", help="The most it may cost. Without it the order's own cap."
        ),
    ] = None,
    hours: Annotated[
        float | None,
        typer.Option(
            "--hours",
            min=0,
            max=_MAX_HOURS,
            help="For how long the approval is good. Without it RAKUTEN_APPROVAL_VALID_SECONDS.",
        ),
    ] = None,
    gateway: GatewayOption = None,
    as_json_: JsonOption = False,
) -> None:
    """Let an order be placed once, for at most so much. Not by whoever filed it; the token needs a name."""
    request = operations_pb2.ApproveOrderRequest(task_id=task, reason=reason, max_total_yen=total)
    if hours is not None:
        request.valid_for.CopyFrom(_duration(hours))
    with connected(gateway) as client:
        done = client.call(client.operations.ApproveOrder, request)
    if as_json_:
        print_json(as_json(done))
        return
    given = done.task.approval
    until = when(given, "valid_until")
    print_line(f"task {plain(task)} is approved for up to {given.max_total_yen:,} yen until {until}")
    if given.used_by_lease:
        say(f"it was used by lease {given.used_by_lease}; to approve the task again, give another reason")
    elif done.already_decided:
        say("you had approved it before; nothing was changed")


@approvals.command()
def deny(task: TaskArgument, reason: ReasonOption, gateway: GatewayOption = None, as_json_: JsonOption = False) -> None:
    """Deny an order: it ends as failed, and nothing was ordered. Its upstream sees the reason."""
    request = operations_pb2.DenyOrderRequest(task_id=task, reason=reason)
    with connected(gateway) as client:
        done = client.call(client.operations.DenyOrder, request)
    if as_json_:
        print_json(as_json(done))
        return
    print_line(f"task {plain(task)} is denied")
    if done.already_decided:
        say("you had denied it before; nothing was changed")


def _duration(hours: float) -> Duration:
    message = Duration()
    message.FromTimedelta(timedelta(hours=hours))
    return message
