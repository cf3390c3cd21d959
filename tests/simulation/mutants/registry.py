"""How a variant that lacks a safeguard is made, and all of them by name."""

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from gateway.store.named_sql import statements
from tests.simulation import run

Mutant = Callable[[], AbstractContextManager[None]]
MUTANTS: dict[str, Mutant] = {}
BROKEN: dict[str, str] = {}
"""What is broken, in words."""
_WHOLE = run.template


def mutant(function: Callable[[ExitStack], None]) -> Callable[[ExitStack], None]:
    """Registers a function that puts its patches on a stack."""

    @contextmanager
    def applied() -> Iterator[None]:
        with ExitStack() as stack:
            function(stack)
            yield

    MUTANTS[function.__name__] = applied
    BROKEN[function.__name__] = (function.__doc__ or "").strip()
    return function


def replaced(stack: ExitStack, owner: Any, name: str, value: Any) -> None:
    """Something of the programs is another thing for the length of the run."""
    stack.enter_context(patch.object(owner, name, value))


def sql(stack: ExitStack, **changed: str) -> None:
    """Statements of the gateway, by their names."""
    if unknown := changed.keys() - statements().keys():
        raise LookupError(f"there are no statements {', '.join(sorted(unknown))}")
    stack.enter_context(patch.dict(statements(), changed))  # type: ignore[arg-type]


def without(stack: ExitStack, *parts: str) -> None:
    """The gateway's database lacks these indexes or triggers."""
    replaced(stack, run, "template", lambda: _template_without(*parts))


@cache
def _template_without(*parts: str) -> Path:
    path = Path(tempfile.mkdtemp(prefix="simulation-mutant-")) / "gateway.db"
    shutil.copy(_WHOLE(), path)
    connection = sqlite3.connect(path)
    for part in parts:
        connection.execute(f"DROP {part}")
    connection.commit()
    connection.close()
    return path
