"""Everything that a database holds, to compare before with after."""

from pathlib import Path
from typing import Any

from tests.gateway.support.databases import beside, tables

MOVING = (
    "clock_anchor",
    "sqlite_sequence",
    "store_groups",
    "schema_versions",
    "sweep_leader",
    "streams",
    "gateways",
    "database_life",
)
"""What moves by itself: the clock, and what an engine keeps for itself."""


def dump(path: Path, *, without: tuple[str, ...] = MOVING) -> dict[str, list[tuple[Any, ...]]]:
    """Rows of every table, in their order."""
    with beside(path) as connection:
        return {
            table: [
                tuple(row[at] for at in range(len(row)))
                for row in connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2")  # noqa: S608 - our own tables
            ]
            for table in tables(path)
            if table not in without
        }


def execute(path: Path, sql: str, *parameters: Any) -> None:
    """Change the database from outside, as a person with a shell does."""
    with beside(path) as connection:
        connection.execute(sql, parameters)


def rows(path: Path, sql: str, *parameters: Any) -> list[dict[str, Any]]:
    """Read from the database from outside."""
    with beside(path) as connection:
        return [dict(row) for row in connection.execute(sql, parameters)]
