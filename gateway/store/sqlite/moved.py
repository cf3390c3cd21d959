"""The mark of a file whose content was moved to a server: no version of the program serves it any more.

The file's application id is another one from then on, which also versions that never heard of a move refuse.
"""

import sqlite3
from dataclasses import dataclass
from typing import Final

APPLICATION_ID: Final = 0x4F474D56
"""In place of the id of our files: "OGMV"."""

_TABLE: Final = """
CREATE TABLE moved (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    copy_id TEXT NOT NULL,
    shown TEXT NOT NULL,
    identity TEXT NOT NULL,
    at TEXT NOT NULL
) STRICT
"""


@dataclass(frozen=True, slots=True)
class Move:
    """Where the content went. `shown` is the address for people; `identity` tells the database from any other.

    `copy_id` is the group that stands in the database, if the move was committed there. `at`: UTC text.
    """

    copy_id: str
    shown: str
    identity: str
    at: str


def move_of(connection: sqlite3.Connection) -> Move | None:
    """Return where a file's content went; None if it was not moved."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        return None
    return Move(*connection.execute("SELECT copy_id, shown, identity, at FROM moved").fetchone())


def mark(connection: sqlite3.Connection, move: Move) -> None:
    """Mark the file, in the transaction that is open."""
    connection.execute("DROP TABLE IF EXISTS moved")
    connection.execute(_TABLE)
    connection.execute("INSERT INTO moved VALUES (1, ?, ?, ?, ?)", (move.copy_id, move.shown, move.identity, move.at))
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def unmark(connection: sqlite3.Connection, application_id: int) -> None:
    """Make the file one of ours again, in the transaction that is open."""
    connection.execute("DROP TABLE IF EXISTS moved")
    connection.execute(f"PRAGMA application_id = {application_id}")
