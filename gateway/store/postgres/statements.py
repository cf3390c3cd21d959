"""The named SQL as PostgreSQL takes it: the common text, what is PostgreSQL's own, parameters by their numbers.

A name that stands in both folders is an override: its comment says why one text for both engines will not do.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from gateway.store import named_sql

_COMMENT = re.compile(r"^--.*\n", re.MULTILINE)
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement to be prepared under its name; `parameters` are the names of $1, $2, ..."""

    name: bytes
    sql: bytes
    parameters: tuple[str, ...]


def own() -> Mapping[str, str]:
    """Return the statements of gateway/store/postgres/sql, with `:parameters`."""
    return named_sql.load(files(__package__).joinpath("sql"))


@cache
def statements() -> Mapping[str, Statement]:
    """Return every statement by its name."""
    return {name: numbered(name, sql) for name, sql in {**named_sql.statements(), **own()}.items()}


def numbered(name: str, sql: str) -> Statement:
    """Return a statement with $1 in place of its first `:parameter`, and so on."""
    parameters: list[str] = []

    def number(found: re.Match[str]) -> str:
        if found[1] not in parameters:
            parameters.append(found[1])
        return f"${parameters.index(found[1]) + 1}"

    text = _PARAMETER.sub(number, _COMMENT.sub("", sql))
    return Statement(name.encode(), text.encode(), tuple(parameters))
