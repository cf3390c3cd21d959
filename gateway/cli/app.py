"""The program's commands, put together."""

from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from gateway.cli import backup, config, decide, dispatch, look, queries, receivers, serve, tasks
from gateway.cli.exits import EPILOG, CommandError, fail


class _Program(TyperGroup):
    """Turns what goes wrong in any command into one line and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except CommandError as error:
            fail(str(error), error.code)


app = typer.Typer(
    cls=_Program,
    help="A lease queue for purchases that must never happen twice, and a mirror of their states.\n\n"
    "`serve` runs the gateway. The other commands talk to a running one: --gateway or RAKUTEN_GATEWAY_URL says where, "
    "RAKUTEN_OPERATOR_TOKEN (or RAKUTEN_API_TOKEN) lets them in. Start with `order-gateway decisions`.",
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


for part in (serve, look, tasks, decide, dispatch, queries, receivers, backup, config):
    part.add_to(app)


def main() -> None:
    """Run the command line."""
    app(prog_name="order-gateway")
