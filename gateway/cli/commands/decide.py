"""`order-gateway tasks decide`: one decision about many tasks, after showing what it would come to."""

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import islice
from typing import Annotated, Final

import grpc
import typer
from ordergateway.v1 import errors_pb2, operations_pb2, orders_pb2
from rich.progress import Progress
from rich.text import Text

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
        found = list(islice(_outcomes(client, kind, selected), limit + 1))
        outcomes = found[:limit]
        taken = [outcome for outcome in outcomes if not outcome.HasField("refusal")]
        if not as_json_:
            _show(outcomes)
            if len(found) > limit:
                say(f"there are more than these; --limit, now {limit:,}, takes further ones")
            say(_counted(outcomes, decision))
        if preview or not taken:
            results: list[operations_pb2.DecidedTask] = []
        else:
            if not yes:
                require_agreement(
                    f"{decision} {_number(len(taken))}?", unasked="--yes decides without asking, --preview only shows"
                )
            results = _decided(client, kind, reason, taken)
    if as_json_:
        print_json({"outcomes": list(map(as_json, outcomes)), "results": list(map(as_json, results))})
    if not preview:
        _conclude(outcomes, taken, results, as_json_)


def _conclude(
    outcomes: Outcomes, taken: Outcomes, results: Sequence[operations_pb2.DecidedTask], as_json_: bool
) -> None:
    """Say what was decided. Raises CommandError where something was left as it was that was to be decided."""
    answered = [result for result in results if result.HasField("refusal")]
    proposed = [
        result for result in answered if result.refusal.reason == errors_pb2.ERROR_REASON_SECOND_PERSON_REQUIRED
    ]
    refused = [result for result in answered if result not in proposed]
    if taken and not as_json_:
        for result in answered:
            say(result.refusal.message)
        say(f"decided: {_number(len(results) - len(answered))}")
    if refused:
        raise CommandError(f"left as it was: {_number(len(refused))}; look again", Exit.REFUSED)
    if proposed:
        numbers = " ".join(str(result.refusal.proposal_id) for result in proposed)
        raise CommandError(
            f"proposed: {_number(len(proposed))}; somebody else confirms: `order-gateway proposals confirm {numbers}`",
            Exit.REFUSED,
        )
    if outcomes and not taken:
        raise CommandError("nothing was decided: it would be refused for each of these", Exit.REFUSED)


def _outcomes(
    client: Client, kind: "operations_pb2.DecisionKind.ValueType", selected: orders_pb2.TaskFilter
) -> Iterator[operations_pb2.DecisionOutcome]:
    request = operations_pb2.ListDecisionOutcomesRequest(decision=kind, filter=selected, page_size=200)
    while True:
        answer: operations_pb2.ListDecisionOutcomesResponse = client.call(
            client.operations.ListDecisionOutcomes, request
        )
        yield from answer.outcomes
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
            try:
                results += client.call(client.operations.DecideOrders, request).results
            except grpc.RpcError:
                # What the last call did nobody has said; the same command shows what is left.
                line = f"{_number(len(results))} had their answer before this; the same command shows what is left"
                typer.echo(f"order-gateway: {line}", err=True)
                raise
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
                _becomes(outcome),
                outcome.refusal.message,
            )
            for outcome in outcomes
        ),
        "no such tasks",
    )


def _becomes(outcome: operations_pb2.DecisionOutcome) -> Text:
    becomes = word(orders_pb2.TaskStatus, outcome.becomes)
    return becomes.append(", once confirmed") if outcome.needs_second_person else becomes


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
