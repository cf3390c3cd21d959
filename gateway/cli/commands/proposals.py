"""`order-gateway proposals`."""

from collections.abc import Callable, Sequence
from typing import Annotated

import grpc
import typer
from ordergateway.v1 import operations_pb2

from common.exit_codes import CommandError, Exit
from common.output import plain, print_line, say
from common.tables import print_table
from gateway.cli.client import Client, connected
from gateway.cli.exit_codes import EPILOG
from gateway.cli.options import GatewayOption, JsonOption, LimitOption, ReasonOption
from gateway.cli.output import list_as_json, when, word

proposals = typer.Typer(help="Risky decisions that need a second person (RAKUTEN_SECOND_PERSON).", no_args_is_help=True)

NumbersArgument = Annotated[list[int], typer.Argument(metavar="PROPOSAL...", min=1, help="Numbers of proposals.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(proposals, name="proposals", epilog=EPILOG)


@proposals.command("list")
def list_proposals(
    limit: LimitOption = 50,
    all_: Annotated[bool, typer.Option("--all", help="Also those that wait no more.")] = False,
    gateway: GatewayOption = None,
    as_json_: JsonOption = False,
) -> None:
    """Show the proposals that wait for a second person, newest first."""
    request = operations_pb2.ListProposalsRequest(include_closed=all_)
    with connected(gateway) as client:
        found = client.pages(client.operations.ListProposals, request, "proposals", limit)
    if as_json_:
        list_as_json("proposals", found)
        return
    print_table(
        ("proposal", "status", "what", "by", "why", "until", "closed by", "why"),
        (
            (
                str(proposal.proposal_id),
                word(operations_pb2.ProposalStatus, proposal.status),
                proposal.summary,
                proposal.proposed_by,
                _reason(proposal),
                when(proposal, "valid_until"),
                proposal.closed_by,
                proposal.closed_reason,
            )
            for proposal in found
        ),
        "no proposal" if all_ else "no proposal waits",
    )


@proposals.command()
def confirm(
    numbers: NumbersArgument, reason: ReasonOption, gateway: GatewayOption = None, as_json_: JsonOption = False
) -> None:
    """Confirm what somebody else has proposed: each decision is taken, by its own rules."""

    def ask(client: Client, number: int) -> tuple[operations_pb2.Proposal, str]:
        request = operations_pb2.ConfirmProposalRequest(proposal_id=number, reason=reason)
        done = client.call(client.operations.ConfirmProposal, request)
        return done.proposal, "you had confirmed it before" if done.already_confirmed else "confirmed"

    _each(numbers, ask, gateway, as_json_)


@proposals.command()
def withdraw(
    numbers: NumbersArgument, reason: ReasonOption, gateway: GatewayOption = None, as_json_: JsonOption = False
) -> None:
    """Withdraw proposals, your own or another's; nothing is decided."""

    def ask(client: Client, number: int) -> tuple[operations_pb2.Proposal, str]:
        request = operations_pb2.WithdrawProposalRequest(proposal_id=number, reason=reason)
        return client.call(client.operations.WithdrawProposal, request).proposal, "withdrawn"

    _each(numbers, ask, gateway, as_json_)


def _each(
    numbers: Sequence[int],
    ask: Callable[[Client, int], tuple[operations_pb2.Proposal, str]],
    gateway: str | None,
    as_json_: bool,
) -> None:
    """Do it for one after the other; a refusal of one keeps none of the others back."""
    done: list[operations_pb2.Proposal] = []
    refused: list[CommandError] = []
    with connected(gateway) as client:
        for number in numbers:
            try:
                proposal, said = ask(client, number)
            except grpc.RpcError as error:
                refused.append(client.told(error))
                if refused[-1].code is Exit.UNREACHABLE:
                    break
                continue
            done.append(proposal)
            if not as_json_:
                print_line(f"proposal {number}, {plain(proposal.summary)}: {said}")
    if as_json_:
        list_as_json("proposals", done)
    for told in refused[:-1]:
        say(str(told))
    if refused:
        raise refused[-1]


def _reason(proposal: operations_pb2.Proposal) -> str:
    decision = proposal.WhichOneof("decision")
    return "" if decision is None else str(getattr(proposal, decision).reason)
