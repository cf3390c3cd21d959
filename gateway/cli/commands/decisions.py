"""What a person decides: decisions, requeue, withdraw, resolve, cancel, expire."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any

import typer
from ordergateway.v1 import operations_pb2, order_leases_pb2, orders_pb2
from rich.text import Text

from common.output import plain, print_json, print_line, say, width
from common.tables import print_fields
from common.wrapping import wrapped
from gateway.cli.advice import advice
from gateway.cli.client import connected
from gateway.cli.commands.tasks import print_reports, task_fields
from gateway.cli.options import GatewayOption, JsonOption, LimitOption, ReasonOption, TaskArgument, choice
from gateway.cli.output import as_json, list_as_json, number_of, when, word
from gateway.spreadsheets.words import name_of


class Outcome(StrEnum):
    """How a person says that a task ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (decisions, requeue, withdraw, resolve, cancel, expire):
        app.command()(command)


def decisions(limit: LimitOption = 50, gateway: GatewayOption = None, as_json_: JsonOption = False) -> None:
    """Show the tasks that need a decision, the longest waiting first, with everything known about each."""
    with connected(gateway) as client:
        found = client.pages(client.operations.ListDecisions, operations_pb2.ListDecisionsRequest(), "decisions", limit)
    if as_json_:
        list_as_json("decisions", found)
        return
    for decision in found:
        _print_decision(decision)
    if not found:
        say("nothing to decide")


def requeue(
    task: TaskArgument, reason: ReasonOption, gateway: GatewayOption = None, as_json_: JsonOption = False
) -> None:
    """Put a task that is stale, or needs a person while an order is impossible, back into the queue.

    The next worker looks at the site before it does anything.
    """
    request = operations_pb2.RequeueOrderRequest(task_id=task, reason=reason)
    with connected(gateway) as client:
        _print_done(client.call(client.operations.RequeueOrder, request).task, as_json_)


def withdraw(
    task: TaskArgument, reason: ReasonOption, gateway: GatewayOption = None, as_json_: JsonOption = False
) -> None:
    """Take a requeued task out of the queue again; it is stale as before."""
    request = operations_pb2.WithdrawOrderRequest(task_id=task, reason=reason)
    with connected(gateway) as client:
        _print_done(client.call(client.operations.WithdrawOrder, request).task, as_json_)


def resolve(
    task: TaskArgument,
    outcome: Annotated[Outcome, typer.Argument(metavar="OUTCOME", help="How it ended: succeeded or failed.")],
    reason: ReasonOption,
    state: Annotated[
        str | None,
        choice("--state", orders_pb2.OrderState, "The order's state as you saw it."),
    ] = None,
    order_number: Annotated[
        str | None, typer.Option("--order-number", help="The site's order number as you saw it.")
    ] = None,
    although_impossible: Annotated[
        bool,
        typer.Option(
            "--although-impossible", help="To succeeded without an order number, though no worker had leave to order."
        ),
    ] = False,
    gateway: GatewayOption = None,
    as_json_: JsonOption = False,
) -> None:
    """Record what happened on the site, and end the task.

    To failed only when an order is impossible, or after the settle time: the site may show an order late. To succeeded
    while an order is impossible only with its number. What you state goes into the history; an order number that the
    worker told stays, and another one is refused. Resolve again to revise what a person stated before.
    """
    request = operations_pb2.ResolveOrderRequest(
        task_id=task,
        reason=reason,
        outcome=number_of(orders_pb2.TaskStatus, outcome),
        state=number_of(orders_pb2.OrderState, state),
        site_order_id=order_number,
        although_impossible=although_impossible,
    )
    with connected(gateway) as client:
        _print_done(client.call(client.operations.ResolveOrder, request).task, as_json_)


WhileLeasedOption = Annotated[
    bool,
    typer.Option(
        "--while-leased", help="Also if a worker has it in hand: it then gets no leave to click, if it has none yet."
    ),
]


def cancel(
    task: TaskArgument,
    reason: ReasonOption,
    while_leased: WhileLeasedOption = False,
    gateway: GatewayOption = None,
    as_json_: JsonOption = False,
) -> None:
    """Cancel a task that no worker has ever taken; with --while-leased request the end of one that is in hand."""
    with connected(gateway) as client:
        done = client.about(task).cancel(task, reason, while_leased=while_leased)
        _print_done(done.task, as_json_)
        if done.requested and not as_json_:
            say("requested: its worker gets no leave to click and ends it; see `order-gateway tasks watch`")


def expire(
    task: TaskArgument, reason: ReasonOption, gateway: GatewayOption = None, as_json_: JsonOption = False
) -> None:
    """End the lease of a worker that is known to be dead; the task is stale.

    Not for a worker that is merely slow: another order could begin while it still clicks.
    """
    request = operations_pb2.ExpireOrderRequest(task_id=task, reason=reason)
    with connected(gateway) as client:
        _print_done(client.call(client.operations.ExpireOrder, request).task, as_json_)


def _print_done(task: orders_pb2.Task, as_json_: bool) -> None:
    if as_json_:
        print_json(as_json(task))
    else:
        line = Text("task ").append_text(plain(task.task_id)).append(" is now ")
        print_line(line.append_text(word(orders_pb2.TaskStatus, task.status)))


def _print_decision(decision: operations_pb2.Decision) -> None:
    task = decision.task
    print_line(Text(f"== {plain(task.task_id)} ==", style="bold"))
    say(Text(decision.summary, style="bold"))
    print_fields(_known(decision))
    if task.reports:
        print_reports(task)
    print_line(Text("\nwhat you can do", "bold"))
    for line in advice(decision):
        _print_advice(line)
    print_line()


def _print_advice(line: str) -> None:
    """Sentences, in brackets, are wrapped; a command stays one line, to be copied."""
    room = width()
    for part in wrapped(line, room - 2) if room is not None and line.startswith("(") else [line]:
        print_line(f"  {part}")


def _known(decision: operations_pb2.Decision) -> Iterator[tuple[str, Any]]:
    yield from (field for field in task_fields(decision.task) if field[0] != "task")
    yield "last worker", decision.last_worker_id
    if decision.HasField("last_verification"):
        look = decision.last_verification
        covered = "whole window covered" if look.window_fully_covered else "window not fully covered"
        verdict = name_of(order_leases_pb2.Verification.Verdict, look.verdict)
        yield "verified", f"{verdict}, {covered}, {look.evidence_ref or 'no evidence'}"
    for late in decision.late_reports:
        state = name_of(orders_pb2.OrderState, late.report.state)
        number = f", order number {late.report.site_order_id}" if late.report.site_order_id else ""
        yield "late report", f"{when(late, 'received_at')} {late.worker_id}: {state}{number}; {late.refusal}"
    if decision.HasField("proposal"):
        proposal = decision.proposal
        told = f"{proposal.proposed_by} proposes {proposal.summary}, until {when(proposal, 'valid_until')}"
        yield "proposed", f"{told}; somebody else: `order-gateway proposals confirm {proposal.proposal_id}`"
    for alert in decision.alerts:
        yield f"alert {alert.alert_id}", f"{when(alert, 'raised_at')} {alert.message}"
