"""The named SQL of gateway/store/sql: `-- name: x`, then one statement, which every engine runs."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"^-- name: ([a-z_]+)$", re.MULTILINE)


@cache
def statements() -> Mapping[str, str]:
    """Return every named statement, with `:parameters`. Raises ValueError if a name stands twice."""
    found: dict[str, str] = {}
    for file in sorted(files(__package__).joinpath("sql").iterdir(), key=lambda entry: entry.name):
        parts = _NAME.split(file.read_text("utf-8"))
        for name, text in zip(parts[1::2], parts[2::2], strict=True):
            if name in found:
                raise ValueError(f"the SQL name {name} stands twice")
            found[name] = text.strip().removesuffix(";")
    return found
