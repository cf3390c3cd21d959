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
from tests.simulation import template
from tests.simulation.layout import World

Mutant = Callable[[], AbstractContextManager[None]]
Broken = Callable[[ExitStack], None]
MUTANTS: dict[str, Mutant] = {}
WORLDS: dict[str, World] = {}
"""The kind of world in which each is looked for."""
BROKEN: dict[str, str] = {}
"""What is broken, in words."""
_WHOLE = template.migrated


def mutant(function: Broken) -> Broken:
    """Registers a function that puts its patches on a stack."""
    return mutant_in(World.ALONE)(function)


def mutant_in(world: World) -> Callable[[Broken], Broken]:
    """Registers as `mutant` does what is looked for in worlds of this kind."""

    def register(function: Broken) -> Broken:
        @contextmanager
        def applied() -> Iterator[None]:
            with ExitStack() as stack:
                function(stack)
                yield

        MUTANTS[function.__name__] = applied
        WORLDS[function.__name__] = world
        BROKEN[function.__name__] = (function.__doc__ or "").strip()
        return function

    return register


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
    replaced(stack, template, "migrated", lambda: _template_without(*parts))


def without_check(stack: ExitStack, begins: str, ends: str) -> None:
    """The gateway's database lacks the check whose text begins and ends like this."""
    replaced(stack, template, "migrated", lambda: _template_without_check(begins, ends))


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


@cache
def _template_without_check(begins: str, ends: str) -> Path:
    path = Path(tempfile.mkdtemp(prefix="simulation-mutant-")) / "gateway.db"
    shutil.copy(_WHOLE(), path)
    connection = sqlite3.connect(path)
    (text,) = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'tasks'").fetchone()
    begin = text.index(begins)
    end = text.index(ends, begin) + len(ends)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 'tasks'", (text[:begin] + text[end:],))
    connection.commit()
    connection.close()
    return path
