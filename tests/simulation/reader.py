"""A look into a database from outside."""

import sqlite3
from pathlib import Path
from typing import Any


class Reader:
    """Reads a file that may not be there yet: what is committed, and nothing else."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def __call__(self, sql: str, *parameters: Any) -> list[sqlite3.Row]:
        if self._connection is None:
            if not self._path.exists():
                return []
            self._connection = sqlite3.connect(f"file:{self._path}?mode=ro", uri=True, isolation_level=None)
            self._connection.row_factory = sqlite3.Row
        try:
            return self._connection.execute(sql, parameters).fetchall()
        except sqlite3.OperationalError:  # its program was killed before the first migration
            return []

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
