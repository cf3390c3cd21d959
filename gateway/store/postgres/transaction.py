"""The port's Transaction over a session: what nobody waits for is sent along, and checked before the commit."""

from collections.abc import Sequence

from gateway.store.port import Row, RowCountError, Value
from gateway.store.postgres.session import Reply, Session


class PostgresTransaction:
    """Runs named SQL on one session and puts hints into `notified`. Lives as long as one transaction at most.

    `insert`, `change_one` and `change_any` are not waited for: whether they failed, and moved one row where they must,
    is told by `check`, which must be called before what they did is kept.
    """

    __slots__ = ("_expected", "_session", "notified")

    def __init__(self, session: Session, notified: set[str] | None = None) -> None:
        self._session = session
        self._expected: list[Reply] = []
        self.notified = set() if notified is None else notified

    def one(self, name: str, /, **parameters: Value) -> Row | None:
        """Run a named query and return its first row, or None."""
        rows = self._session.rows(self._session.send(name, parameters), 1)
        return rows[0] if rows else None

    def all(self, name: str, /, **parameters: Value) -> Sequence[Row]:
        """Run a named query and return its rows."""
        return self._session.rows(self._session.send(name, parameters))

    def insert(self, name: str, /, **parameters: Value) -> None:
        """Send a named INSERT of one row; see `check`."""
        self._expected.append(self._session.send(name, parameters))

    def change_one(self, name: str, /, **parameters: Value) -> None:
        """Send a named statement that moves exactly one row; see `check`."""
        self._expected.append(self._session.send(name, parameters))

    def change(self, name: str, /, **parameters: Value) -> int:
        """Run a named statement and return how many rows it changed."""
        return self._session.count(self._session.send(name, parameters))

    def change_any(self, name: str, /, **parameters: Value) -> None:
        """Send a named statement that may move any number of rows."""
        self._session.send(name, parameters)

    def notify(self, topic: str) -> None:
        """Wake those who wait for `topic` once this is committed."""
        self.notified.add(topic)

    def check(self) -> None:
        """Wait for what was sent. Raises psycopg.Error, and RowCountError if a statement did not move its one row."""
        self._session.settle()
        for reply in self._expected:
            moved = self._session.count(reply)
            if moved != 1:
                raise RowCountError(f"{reply.name} moved {moved} rows instead of one")
        self._expected.clear()
