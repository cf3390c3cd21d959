"""The schema: numbered migrations as SQLite's, each in one transaction, under a lock that all gateways share.

A number has the same tables and columns on both engines. What came before the first file is in that file.
"""

from collections.abc import Mapping
from importlib.resources import files
from typing import Final

import psycopg

from gateway.store.port import DatabaseUnusableError

_MIGRATION_LOCK: Final = 0x4F474D47
"""Apart from the writer's lock ("OGMG"), so that a second gateway that starts waits here and not among the groups."""

_VERSIONS: Final = b"""
CREATE TABLE schema_versions (
    number bigint PRIMARY KEY,
    reached_at timestamptz NOT NULL DEFAULT now()
)
"""


def migrations() -> Mapping[int, str]:
    """Return the SQL of the migrations by the version that each leads to, in order. Raises ValueError for a gap."""
    folder = files(__package__).joinpath("migrations")
    found = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".sql")), key=lambda entry: entry.name)
    steps = {int(entry.name[:4]): entry.read_text("utf-8") for entry in found}
    first = min(steps)
    if list(steps) != list(range(first, first + len(found))):
        raise ValueError(f"the migrations {[entry.name for entry in found]} do not follow each other")
    return steps


def migrate(connection: psycopg.Connection) -> int:
    """Bring the database to the newest version and return how many migrations ran.

    Raises DatabaseUnusableError if it belongs to another program or a newer version, psycopg.Error.
    """
    steps = migrations()
    connection.execute("SELECT pg_advisory_lock(%s)", (_MIGRATION_LOCK,))
    try:
        version = _version(connection)
        if version > max(steps):
            raise DatabaseUnusableError(
                f"it has schema version {version}, this program knows versions up to {max(steps)}; "
                "use the newer program"
            )
        missing = [number for number in steps if number > version]
        for number in missing:
            # A table that is in use is waited for no longer than lock_timeout: who waits for it holds up all others.
            with connection.transaction():
                connection.execute(steps[number].encode())
                connection.execute("INSERT INTO schema_versions (number) VALUES (%s)", (number,))
    finally:
        if not connection.closed:
            connection.execute("SELECT pg_advisory_unlock(%s)", (_MIGRATION_LOCK,))
    return len(missing)


def _version(connection: psycopg.Connection) -> int:
    """Return the version; in an empty database make the table that tells it."""
    with connection.transaction():
        tables = connection.execute(
            "SELECT count(*), count(*) FILTER (WHERE tablename = 'schema_versions') "
            "FROM pg_tables WHERE schemaname = current_schema()"
        ).fetchone()
        in_all, ours = tables or (0, 0)
        if not ours:
            if in_all:
                raise DatabaseUnusableError("it holds the tables of another program; name a database of its own")
            connection.execute(_VERSIONS)
        row = connection.execute("SELECT coalesce(max(number), 0) FROM schema_versions").fetchone()
        return int(row[0]) if row else 0
