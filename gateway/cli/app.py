"""The program's commands, put together."""

from importlib.metadata import version
from typing import Annotated

import typer

from common.output import standard_output
from common.program import Program
from gateway.cli.commands import backup, catalog, config, dispatch, queries, serve, tasks
from gateway.cli.commands import callbacks as receivers
from gateway.cli.commands import decisions as decide
from gateway.cli.commands import status as look
from gateway.cli.exit_codes import EPILOG

app = typer.Typer(
    name="order-gateway",
    cls=Program,
    help="A lease queue for purchases that must never happen twice, and a mirror of their states.\n\n"
    "`serve` runs the gateway. The other commands talk to a running one: --gateway or RAKUTEN_ORDER_GATEWAY_URL says "
    "where, RAKUTEN_OPERATOR_TOKEN (or RAKUTEN_API_TOKEN) lets them in. Start with `order-gateway decisions`.",
    epilog=EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"order-gateway {version('order-gateway')}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Take options that stand before a command."""


for part in (serve, look, tasks, decide, dispatch, queries, catalog, receivers, backup, config):
    part.add_to(app)


def main() -> None:
    """Run the command line."""
    with standard_output("order-gateway"):
        app(prog_name="order-gateway")
