"""The group of commands that a program is."""

import logging
from typing import Any

import typer
from typer.core import TyperGroup

from common.escapes import escape_lines
from common.exit_codes import CommandError


class Program(TyperGroup):
    """Turns what goes wrong in any command into one line on standard error and an exit code.

    Its name stands before each such line, so it must be given: `typer.Typer(name=..., cls=Program)`.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except CommandError as error:
            logging.shutdown()
            typer.echo(escape_lines(f"{self.name}: {error}"), err=True)
            raise typer.Exit(error.code) from error
