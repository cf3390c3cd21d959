"""`order-gateway conformance`: try a worker in any language against the contract."""

import asyncio
import shlex
from typing import Annotated

import typer
from rich.text import Text

from common.exit_codes import CommandError, Exit
from common.output import print_line
from gateway.cli.exit_codes import EPILOG

conformance = typer.Typer(help="Try a program in any language against the contract.", no_args_is_help=True)


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(conformance, name="conformance", epilog=EPILOG)


@conformance.callback()
def _group() -> None:
    """Try a program in any language against the contract."""


@conformance.command()
def worker(
    command: Annotated[str, typer.Option(help="The worker's command line, as a shell would split it.")],
    only: Annotated[
        list[str] | None, typer.Option(metavar="SITUATION", help="Only this situation; may be given several times.")
    ] = None,
) -> None:
    """Put a worker into situations in which a second order could come about, and judge what it does by rule.

    In each it is started anew, with a scripted gateway and a sandbox shop on this machine. The environment tells it
    where they are: ORDER_GATEWAY_GRPC (host:port), ORDER_GATEWAY_WORKER_TOKEN, ORDER_GATEWAY_SHOP (URL) and
    ORDER_GATEWAY_JOURNAL (a folder for what must outlive the process); the same stands in order-worker's settings.
    Ends with 1 if a rule was broken. docs/clients.md explains situations and rules.
    """
    # The scripted gateway and the shop take long to load, and no other command needs them.
    from conformance.rules import OUTCOME, RULES  # noqa: PLC0415
    from conformance.situations import SITUATIONS  # noqa: PLC0415
    from conformance.trial import Result, try_worker  # noqa: PLC0415
    from conformance.worker import WorkerError  # noqa: PLC0415

    names = only or list(SITUATIONS)
    if unknown := [name for name in names if name not in SITUATIONS]:
        raise CommandError(f"no situation {unknown[0]}; there are {', '.join(SITUATIONS)}", Exit.USAGE)
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise CommandError(f"--command cannot be read: {error}", Exit.USAGE) from None
    if not words:
        raise CommandError("--command is empty", Exit.USAGE)

    async def tried() -> list[Result]:
        results = []
        async for result in try_worker(words, names):
            results.append(result)
            _tell(result.situation, [f"{finding.rule}: {finding.words}" for finding in result.findings])
            if result.tail:
                print_line(Text(f"the worker's last lines:\n{result.tail}", "dim"))
        return results

    try:
        results = asyncio.run(tried())
    except WorkerError as error:
        raise CommandError(str(error), Exit.USAGE) from None
    broken = {finding.rule for result in results for finding in result.findings}
    print_line(Text("\nby rule", "bold"))
    for rule in (OUTCOME, *RULES):
        _tell(rule, ["see above"] if rule in broken else [])
    failed = sum(bool(result.findings) for result in results)
    print_line(Text(f"\nconformance: {len(results) - failed} passed, {failed} failed"))
    if failed:
        raise typer.Exit(Exit.FAULT)


def _tell(name: str, findings: list[str]) -> None:
    print_line(Text.assemble(("FAILED  ", "red") if findings else ("passed  ", "green"), name))
    for words in findings:
        print_line(Text(f"        {words}"))
