"""Arguments and options that several commands share, and the sentence about exit codes that closes every --help."""

from typing import Annotated, Final

import typer

from common.exit_codes import Exit, epilog

EPILOG: Final = epilog(Exit)

TaskArgument = Annotated[str, typer.Argument(metavar="TASK", help="The task_id.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
