"""What the commands print: warnings, JSON for scripts, and the cells of tables."""

import typer

from common.escapes import escape_controls


def warn(message: str) -> None:
    """Print a line to standard error."""
    typer.echo(escape_controls(message), err=True)


def cell(value: object) -> str:
    """Return a value as a table shows it; None is empty."""
    return "" if value is None else str(value)


def short_time(text: str) -> str:
    """Return a moment as `utc_text` wrote it, to the second: `2026-07-27 09:15:00Z`."""
    return f"{text[:10]} {text[11:19]}Z"
