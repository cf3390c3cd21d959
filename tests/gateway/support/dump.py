"""Everything that a database file holds, to compare before with after."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any


def dump(
    path: Path, *, without: tuple[str, ...] = ("clock_anchor", "sqlite_sequence")
) -> dict[str, list[tuple[Any, ...]]]:
    """Rows of every table. The clock's anchor moves by itself, so it is left out."""
    with closing(sqlite3.connect(path)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {
            table: connection.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608 - names of our own tables
            for table in sorted(tables)
            if table not in without
        }


def execute(path: Path, sql: str, *parameters: Any) -> None:
    """Change the database from outside, as a person with a shell does."""
    with closing(sqlite3.connect(path, timeout=60)) as connection, connection:
        connection.execute(sql, parameters)


def rows(path: Path, sql: str, *parameters: Any) -> list[dict[str, Any]]:
    """Read from the database from outside."""
    with closing(sqlite3.connect(path, timeout=60)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(sql, parameters)]
