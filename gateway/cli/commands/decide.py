"""`order-gateway tasks decide`: one decision about many tasks, after showing what it would come to."""

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated, Final

import typer
from ordergateway.v1 import operations_pb2, orders_pb2
from rich.progress import Progress

from common.exit_codes import CommandError, Exit
from common.output import print_json, say
from common.tables import print_table
from common.target import Target
from gateway.cli.client import Client, connected
from gateway.cli.commands.tasks import OldestFirstOption, tasks
from gateway.cli.confirmation import require_agreement
from gateway.cli.options import GatewayOption, JsonOption, ReasonOption
from gateway.cli.output import as_json, number_of, progress_console, word
from gateway.cli.search_options import selects_tasks

_A_CALL: Final = 100
"""So many tasks are decided by one call, which lasts some seconds at most."""

Outcomes = Sequence[operations_pb2.DecisionOutcome]


class Decision(StrEnum):
    """What is decided, and how it is typed."""

    REQUEUE = "requeue"
    CANCEL = "cancel"
    RESOLVE_FAILED = "resolve-failed"
    RESOLVE_SUCCEEDED = "resolve-succeeded"


def add_to(_app: typer.Typer) -> None:
    """Add the command to those of tasks."""
    tasks.command("decide")(decide)


@selects_tasks
def decide(  # noqa: PLR0913, PLR0917 - an option each
    selected: orders_pb2.TaskFilter,
    decision: Annotated[Decision, typer.Argument(metavar="DECISION", help=f"{', '.join(Decision)}.")],
    reason: ReasonOption,
    oldest_first: OldestFirstOption = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="About how many tasks at most.")] = 100,
    preview: Annotated[bool, typer.Option("--preview", help="Only show what it would come to.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask after showing what it would come to.")] = False,
    gateway: GatewayOption = None,
    as_json_: JsonOption = False,
) -> None:
    """Take one decision about the selected tasks, for one reason, after showing what it comes to for each.

    Each is judged by itself, as by the command for one. What has changed since it was shown is left as it is.
    """
    if not selected.ByteSize():
        raise CommandError("which tasks? Give at least one condition, such as --status stale", Exit.USAGE)
    kind = number_of(operations_pb2.DecisionKind, decision.replace("-", "_"))
    if oldest_first:
        selected.order = orders_pb2.TASK_ORDER_OLDEST_FIRST
    with connected(gateway) as client:
        outcomes = list(_outcomes(client, kind, selected, limit))
        taken = [outcome for outcome in outcomes if not outcome.HasField("refusal")]
        if preview and as_json_:
            print_json({"outcomes": [as_json(outcome) for outcome in outcomes]})
            return
        if not as_json_:
            _show(outcomes)
            say(_counted(outcomes, decision))
        if preview or not taken:
            return
        if not yes:
            require_agreement(
                f"{decision} {_number(len(taken))}?", unasked="--yes decides without asking, --preview only shows"
            )
        results = _decided(client, kind, reason, taken)
    refused = [result for result in results if result.HasField("refusal")]
    if as_json_:
        print_json({"results": [as_json(result) for result in results]})
    else:
        for result in refused:
            say(result.refusal.message)
        say(f"decided: {_number(len(results) - len(refused))}")
    if refused:
        raise CommandError(f"{_number(len(refused))} left as they were; look again", Exit.REFUSED)


def _outcomes(
    client: Client, kind: "operations_pb2.DecisionKind.ValueType", selected: orders_pb2.TaskFilter, limit: int
) -> Iterator[operations_pb2.DecisionOutcome]:
    request = operations_pb2.ListDecisionOutcomesRequest(decision=kind, filter=selected)
    left = limit
    while left > 0:
        request.page_size = min(200, left)
        answer: operations_pb2.ListDecisionOutcomesResponse = client.call(
            client.operations.ListDecisionOutcomes, request
        )
        yield from answer.outcomes
        left -= len(answer.outcomes)
        # What repeats itself would never end.
        if answer.next_page_token in ("", request.page_token):
            return
        request.page_token = answer.next_page_token


def _decided(
    client: Client, kind: "operations_pb2.DecisionKind.ValueType", reason: str, taken: Outcomes
) -> list[operations_pb2.DecidedTask]:
    """Decide some at a time, with progress on standard error and only to a terminal."""
    console = progress_console()
    results: list[operations_pb2.DecidedTask] = []
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("deciding", total=len(taken))
        for at in range(0, len(taken), _A_CALL):
            seen = [
                operations_pb2.SeenTask(task_id=outcome.task_id, updated_at=outcome.updated_at)
                for outcome in taken[at : at + _A_CALL]
            ]
            request = operations_pb2.DecideOrdersRequest(decision=kind, reason=reason, tasks=seen)
            results += client.call(client.operations.DecideOrders, request).results
            progress.advance(bar, len(seen))
    return results


def _show(outcomes: Outcomes) -> None:
    print_table(
        ("task", "site", "status", "placement", "becomes", "why not"),
        (
            (
                outcome.task_id,
                str(Target(outcome.site, outcome.account)),
                word(orders_pb2.TaskStatus, outcome.status),
                word(orders_pb2.Placement, outcome.placement),
                word(orders_pb2.TaskStatus, outcome.becomes),
                outcome.refusal.message,
            )
            for outcome in outcomes
        ),
        "no such tasks",
    )


def _counted(outcomes: Outcomes, decision: Decision) -> str:
    placements = Counter(outcome.placement for outcome in outcomes if not outcome.HasField("refusal"))
    taken = sum(placements.values())
    parts = [
        f"an order is {word(orders_pb2.Placement, placement).plain} for {count}"
        for placement, count in sorted(placements.items())
    ]
    told = f" ({', '.join(parts)})" if parts else ""
    refused = len(outcomes) - taken
    return f"{decision}: {_number(taken)}{told}; refused: {_number(refused)}"


def _number(count: int) -> str:
    return "1 task" if count == 1 else f"{count:,} tasks"
