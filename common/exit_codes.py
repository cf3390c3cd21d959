"""Exit codes: a number means the same for both commands (docs/cli.md)."""

from collections.abc import Iterable
from enum import IntEnum
from typing import Final


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
    NEEDS_HUMAN = 8
    FAILED = 9
    INTERRUPTED = 10
    STILL_WAITING = 11


MEANINGS: Final = {
    Exit.DONE: "done",
    Exit.FAULT: "a fault",
    Exit.USAGE: "wrong usage, a value or a setting that makes no sense",
    Exit.DATABASE: "the database, the journal or the backup cannot be used",
    Exit.REFUSED: "a rule of the gateway refused it; the message says which, and what would be allowed",
    Exit.NOT_FOUND: "no such task, query, worker, alert or callback",
    Exit.UNREACHABLE: "the gateway cannot be reached, is stopping or is busy",
    Exit.DENIED: "no valid token, or its role may not do this",
    Exit.NEEDS_HUMAN: "reclaim: the task ended as needs_human, a person must look",
    Exit.FAILED: "reclaim: the task failed, nothing was bought",
    Exit.INTERRUPTED: "reclaim: the worker or the lease ended on the way",
    Exit.STILL_WAITING: "not over yet when --wait was up",
}


def epilog(codes: Iterable[Exit]) -> str:
    """Return the sentence that closes a program's --help: what its exit codes mean."""
    return "Exit codes: " + "; ".join(f"{code.value} {MEANINGS[code]}" for code in codes) + "."


class CommandError(Exception):
    """A command cannot go on: one line that says why and what to do next, and the exit code."""

    def __init__(self, message: str, code: Exit) -> None:
        super().__init__(message)
        self.code = code
