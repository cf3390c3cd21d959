"""The group of commands that a program is."""

import logging
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from common.escapes import escape_lines
from common.exit_codes import CommandError


class Program(TyperGroup):
    """Turns what goes wrong in any command into one line on standard error and an exit code.

    Its name stands before each such line, so it must be given: `typer.Typer(name=..., cls=Program)`.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        _join_lines(self)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise
        except CommandError as error:
            logging.shutdown()
            typer.echo(escape_lines(f"{self.name}: {error}"), err=True)
            raise typer.Exit(error.code) from error


def _join_lines(group: TyperGroup) -> None:
    """Make one line of each paragraph of the help texts: the terminal wraps it, not the source's docstring."""
    for command in group.commands.values():
        if command.help:
            command.help = "\n\n".join(" ".join(part.split()) for part in command.help.split("\n\n"))
        if isinstance(command, TyperGroup):
            _join_lines(command)


def add_version(app: typer.Typer, name: str) -> None:
    """Give a program the option --version."""

    def show(wanted: bool) -> None:
        if wanted:
            typer.echo(f"{name} {version('order-gateway')}")
            raise typer.Exit

    @app.callback()
    def _options(
        _version: Annotated[
            bool, typer.Option("--version", callback=show, is_eager=True, help="Show the version and exit.")
        ] = False,
    ) -> None:
        """Take options that stand before a command."""
