"""Asking the person, before a command changes what may be the wrong thing."""

from typing import Annotated

import typer

from common.exit_codes import CommandError, Exit

YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask which database is meant.")]


def require_agreement(question: str, unasked: str = "--yes says beforehand that this is the database") -> None:
    """Ask on standard error; `unasked` says how to go on without. Raises CommandError for no answer, or for no."""
    try:
        agreed = typer.confirm(question, err=True)
    except typer.Abort:
        line = f"nobody answered, and nothing was changed; {unasked}"
        raise CommandError(line, Exit.USAGE) from None
    if not agreed:
        raise CommandError("nothing was changed", Exit.FAULT)
