"""The schema: numbered migrations, each in one transaction, and the check of the version at start."""

import sqlite3
from collections.abc import Sequence
from importlib.resources import files
from typing import Final

from gateway.store.migration_files import Migration, read
from gateway.store.port import DatabaseUnusableError
from gateway.store.sqlite import moved

APPLICATION_ID: Final = 0x4F474154
"""Marks our files ("OGAT"), so that another program's database is not taken for one."""


def migration_steps() -> Sequence[Migration]:
    """Return the migrations in order, from 1 on. Raises ValueError for a gap."""
    return read(files(__package__).joinpath("migrations"))


def migrations() -> Sequence[str]:
    """Return the SQL of the migrations in order; the schema version is their number."""
    return [step.sql for step in migration_steps()]


def version_of(connection: sqlite3.Connection, *, allow_moved: bool = False) -> int:
    """Return the version of the schema; 0 in an empty file. Raises DatabaseUnusableError as `check_ours`."""
    check_ours(connection, allow_moved=allow_moved)
    return _pragma(connection, "user_version")


def migrate(connection: sqlite3.Connection, steps: Sequence[str] | None = None) -> int:
    """Bring the database to the newest version and return how many migrations ran.

    Raises DatabaseUnusableError if the file belongs to another program or to a newer version, or is damaged.
    """
    steps = migrations() if steps is None else steps
    version = version_of(connection)
    if version > len(steps):
        raise DatabaseUnusableError(
            f"it has schema version {version}, this program knows versions up to {len(steps)}; "
            "use the newer program, or restore a backup made before the upgrade"
        )
    for number, sql in enumerate(steps[version:], start=version + 1):
        try:
            connection.executescript(
                f"BEGIN IMMEDIATE;\n{sql}\nPRAGMA application_id = {APPLICATION_ID};\n"
                f"PRAGMA user_version = {number};\nCOMMIT;"
            )
        except sqlite3.Error:
            if connection.in_transaction:
                connection.rollback()
            raise
    return len(steps) - version


def check_ours(connection: sqlite3.Connection, *, allow_moved: bool = False) -> None:
    """Raise DatabaseUnusableError unless the file is empty or was made by this program, and was not moved."""
    move = moved.move_of(connection)
    if move is not None:
        if allow_moved:
            return
        raise DatabaseUnusableError(
            f"its content was moved to {move.shown} at {move.at}, and this file is not served any more: set "
            "RAKUTEN_GATEWAY_DB_URL. If the copy broke off, run the same `order-gateway copy` again"
        )
    application = _pragma(connection, "application_id")
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if application != APPLICATION_ID and (application != 0 or tables):
        raise DatabaseUnusableError("it is a SQLite database of another program; name another file")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
