"""How the help of a program reads: the terminal wraps it."""

import typer
from typer.testing import CliRunner

from common.program import Program


def test_the_terminal_wraps_a_description_not_the_docstring() -> None:
    program = typer.Typer(name="program", cls=Program)
    group = typer.Typer()
    program.add_typer(group, name="group")

    @program.command()
    def plain() -> None:
        """A sentence.

        A second paragraph, of which a line of the docstring is longer than the terminal is wide, so that it would be
        broken twice.
        """

    group.command("inner")(plain)
    for command in (["plain"], ["group", "inner"]):
        shown = CliRunner().invoke(program, [*command, "--help"], env={"COLUMNS": "80"}).output
        lines = [line.strip() for line in shown.splitlines()]
        assert "terminal is wide, so that it would be broken twice." in lines
