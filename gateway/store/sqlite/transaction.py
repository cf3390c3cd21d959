"""The port's Transaction over a SQLite connection."""

import sqlite3
from collections.abc import Sequence

from gateway.store.named_sql import statements
from gateway.store.port import Row, RowCountError, Value


class SqliteTransaction:
    """Runs named SQL on one connection and puts hints into `notified`. Lives as long as one transaction at most."""

    __slots__ = ("_connection", "_statements", "notified")

    def __init__(self, connection: sqlite3.Connection, notified: set[str] | None = None) -> None:
        self._connection = connection
        self._statements = statements()
        self.notified = set() if notified is None else notified

    def one(self, name: str, /, **parameters: Value) -> Row | None:
        """Run a named query and return its first row, or None."""
        cursor = self._connection.execute(self._statements[name], parameters)
        row: sqlite3.Row | None = cursor.fetchone()
        cursor.close()
        return row

    def all(self, name: str, /, **parameters: Value) -> Sequence[Row]:
        """Run a named query and return its rows."""
        return self._connection.execute(self._statements[name], parameters).fetchall()

    def insert(self, name: str, /, **parameters: Value) -> None:
        """Run a named INSERT of one row. Raises RowCountError if no row was added."""
        self._expect_one(name, parameters)

    def change_one(self, name: str, /, **parameters: Value) -> None:
        """Run a named statement that moves exactly one row. Raises RowCountError if it moved none or several."""
        self._expect_one(name, parameters)

    def change(self, name: str, /, **parameters: Value) -> int:
        """Run a named statement and return how many rows it changed."""
        return self._connection.execute(self._statements[name], parameters).rowcount

    def change_any(self, name: str, /, **parameters: Value) -> None:
        """Run a named statement that may move any number of rows, also none."""
        self._connection.execute(self._statements[name], parameters)

    def notify(self, topic: str) -> None:
        """Wake those who wait for `topic` once this is committed."""
        self.notified.add(topic)

    def _expect_one(self, name: str, parameters: dict[str, Value]) -> None:
        moved = self._connection.execute(self._statements[name], parameters).rowcount
        if moved != 1:
            raise RowCountError(f"{name} moved {moved} rows instead of one")
