"""Asking the person which database is meant, before a command changes one that may be the wrong one."""

from typing import Annotated

import typer

from common.exit_codes import CommandError, Exit

YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask which database is meant.")]


def require_agreement(question: str) -> None:
    """Ask on standard error. Raises CommandError where nobody answers, or the answer is no."""
    try:
        agreed = typer.confirm(question, err=True)
    except typer.Abort:
        line = "nobody answered, and nothing was changed; --yes says beforehand that this is the database"
        raise CommandError(line, Exit.USAGE) from None
    if not agreed:
        raise CommandError("nothing was changed", Exit.FAULT)
