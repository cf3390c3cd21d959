"""The named SQL of gateway/store/sql: `-- name: x`, then one statement, which every engine runs.

A comment on a statement stands below its name: what stands above a name would belong to the statement before it.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

_NAME = re.compile(r"^-- name: ([a-z_]+)$", re.MULTILINE)
_ENDED = re.compile(r"^(?!--).*;\Z", re.MULTILINE)


@cache
def statements() -> Mapping[str, str]:
    """Return every named statement that all engines share, with `:parameters`. Raises ValueError as `parse` does."""
    return load(files(__package__).joinpath("sql"))


def load(folder: Traversable) -> dict[str, str]:
    """Return every named statement of a folder. Raises ValueError as `parse` does, and where a name stands twice."""
    found: dict[str, str] = {}
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        for name, statement in parse(file.read_text("utf-8")):
            if name in found:
                raise ValueError(f"the SQL name {name} stands twice")
            found[name] = statement
    return found


def parse(text: str) -> list[tuple[str, str]]:
    """Return the names and statements of a file in their order.

    Raises ValueError where something stands before the first name, or behind the semicolon that ends a statement.
    """
    before, *parts = _NAME.split(text)
    if before.strip():
        raise ValueError("something stands before the first `-- name:`")
    found = []
    for name, part in zip(parts[::2], parts[1::2], strict=True):
        statement = part.strip()
        if not _ENDED.search(statement):
            raise ValueError(f"the statement {name} does not end with a semicolon; a comment stands below its name")
        found.append((name, statement.removesuffix(";")))
    return found
