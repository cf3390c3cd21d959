"""Exit codes, the same for every command (docs/cli.md), and the one line that goes with them."""

import logging
from enum import IntEnum
from typing import Final, NoReturn

import typer


class Exit(IntEnum):
    """What a command ends with."""

    DONE = 0
    FAULT = 1
    USAGE = 2
    DATABASE = 3
    REFUSED = 4
    NOT_FOUND = 5
    UNREACHABLE = 6
    DENIED = 7


MEANINGS: Final = {
    Exit.DONE: "done",
    Exit.FAULT: "a fault",
    Exit.USAGE: "wrong usage, a value or a setting that makes no sense",
    Exit.DATABASE: "the database or the backup cannot be used",
    Exit.REFUSED: "a rule of the gateway refused it; the message says which, and what would be allowed",
    Exit.NOT_FOUND: "no such task, query, worker, alert or callback",
    Exit.UNREACHABLE: "the gateway cannot be reached, is stopping or is busy",
    Exit.DENIED: "no valid token, or its role may not do this",
}

EPILOG: Final = "Exit codes: " + "; ".join(f"{code.value} {meaning}" for code, meaning in MEANINGS.items()) + "."


class CommandError(Exception):
    """A command cannot go on: one line that says why and what to do next, and the exit code."""

    def __init__(self, message: str, code: Exit) -> None:
        super().__init__(message)
        self.code = code


def fail(message: str, code: Exit) -> NoReturn:
    """End the program with one line on standard error."""
    logging.shutdown()
    typer.echo(f"order-gateway: {message}", err=True)
    raise typer.Exit(code)
