"""The journal's schema: numbered migrations, and the checks of a file before it is trusted."""

import sqlite3
from importlib.resources import files
from pathlib import Path

from worker.journal.connection import Connection
from worker.journal.errors import JournalError, damaged

MIGRATIONS = files("worker.journal") / "migrations"


async def check_pages(connection: Connection, path: Path) -> None:
    """Read the whole file: a click record on a page that cannot be read must not be taken for one never made.

    Raises JournalError.
    """
    row = await (await connection.execute("PRAGMA quick_check(1)")).fetchone()
    if row is None or row[0] != "ok":
        raise damaged(path)


async def check_version(connection: Connection, path: Path, *, migrate: bool) -> None:
    """Compare the file's schema with this version's and, if `migrate`, bring it up to date, a transaction a migration.

    Raises JournalError where it is of a newer version, or would have to be migrated and may not be.
    """
    migrations = sorted((entry for entry in MIGRATIONS.iterdir() if entry.name.endswith(".sql")), key=lambda e: e.name)
    row = await (await connection.execute("PRAGMA user_version")).fetchone()
    version = int(row[0]) if row else 0
    if version > len(migrations):
        raise JournalError(f"{path} has schema {version} of a newer version; this one knows {len(migrations)}")
    if version < len(migrations) and not migrate:
        raise JournalError(f"{path} has schema {version}, this version needs {len(migrations)}: start the worker once")
    for number, migration in enumerate(migrations[version:], start=version + 1):
        try:
            await connection.executescript(
                f"BEGIN IMMEDIATE;\n{migration.read_text('utf-8')}\nPRAGMA user_version = {number};\nCOMMIT;"
            )
        except sqlite3.Error as error:
            raise JournalError(f"{path}: migration {migration.name} failed: {error}") from error
