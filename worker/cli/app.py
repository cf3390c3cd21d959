"""The command `order-worker`, put together."""

from importlib.metadata import version
from typing import Annotated

import typer

from common.output import standard_output
from common.program import Program
from worker.cli.commands import check, config, evidence, journal, reclaim, run, sandbox
from worker.cli.options import EPILOG

app = typer.Typer(
    name="order-worker",
    cls=Program,
    help="The local worker: takes one order at a time from the gateway, buys it, keeps the evidence, reports.\n\n"
    "Settings come from the environment and from .env in the current folder, prefix RAKUTEN_.",
    epilog=EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"order-worker {version('order-gateway')}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Take options that stand before a command."""


for part in (config, check, run, sandbox, reclaim, journal, evidence):
    part.add_to(app)


def main() -> None:
    """Run the command line."""
    with standard_output("order-worker"):
        app(prog_name="order-worker")
