"""Takes over the content of a SQLite file: one transaction, which commits whole or not at all.

Before its COMMIT the file is marked, so that from then on nobody serves it: there is no moment at which both could be
served. A COMMIT without an answer is asked for by the group that it leaves, as any group's is.
"""

import sqlite3
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg

from gateway.store.port import DatabaseUnusableError, StoreUnavailableError, Value
from gateway.store.postgres import filling, schema
from gateway.store.postgres.filling import Content
from gateway.store.postgres.statements import statements
from gateway.store.sqlite import moved
from gateway.store.sqlite.schema import APPLICATION_ID


@dataclass(frozen=True, slots=True)
class Group:
    """The newest group of the database, by which the service clock goes on from where it stands in the file."""

    utc: str
    elapsed_us: int
    database_us: int
    boot_id: str
    boot_us: int


Stands = Callable[[Callable[[], int]], Group]
"""Tells where the service clock of the file stands, given how to read the database's clock in microseconds."""


def take_over(
    source: sqlite3.Connection,
    target: psycopg.Connection,
    shown: str,
    stands: Stands,
    tell: Callable[[str], None],
) -> Mapping[str, Content] | None:
    """Copy, compare, mark the file and commit; return what each table holds, None if it was done before.

    Raises DatabaseUnusableError (not empty, another version, moved elsewhere, what was read back differs),
    StoreUnavailableError where nobody knows whether it was committed, psycopg.Error, sqlite3.Error.
    """
    state = schema.state_of(target)
    if state.version == 0:
        schema.migrate(target, tell)
    elif state.version != schema.program():
        raise DatabaseUnusableError(
            f"it has schema version {state.version}, the file {schema.program()}: name an empty database"
        )
    with schema.migration_lock(target, tell):
        source.execute("BEGIN IMMEDIATE")
        try:
            with target.transaction():
                return _take_over(source, target, shown, stands, tell)
        except psycopg.Error as error:
            if not source.in_transaction and (error.sqlstate is None or target.broken):
                raise StoreUnavailableError(
                    "the answer to the COMMIT was lost; run the same command again, which finds out what became of it"
                ) from error
            _undo(source)
            raise
        finally:
            if source.in_transaction:
                source.execute("ROLLBACK")


def _take_over(
    source: sqlite3.Connection,
    target: psycopg.Connection,
    shown: str,
    stands: Stands,
    tell: Callable[[str], None],
) -> Mapping[str, Content] | None:
    _run(target, "writer_lock")
    here = _here(target)
    identity = f"{here['system_identifier']}/{here['database_oid']}"
    former = moved.move_of(source)
    if former is not None:
        if former.identity != identity:
            raise DatabaseUnusableError(f"the file was moved to another database: {former.shown}, at {former.at}")
        if _run(target, "group_get", group_id=former.copy_id).fetchone() is not None:
            return None
    tables = filling.tables_of(source)
    filling.require_empty(target, tables)
    read: dict[str, Content] = {}
    for table in tables:
        read[table.name] = filling.fill(source, target, table)
        tell(f"{table.name}: {read[table.name].rows:,} rows")
    filling.set_sequences(source, target, tables)
    tell("comparing what was written")
    written = {table.name: filling.content(target, table) for table in tables}
    if wrong := filling.differing(read, written):
        raise DatabaseUnusableError(f"what was read back differs in {', '.join(wrong)}; nothing was changed")
    filling.require_rules(target)
    group, copy_id = stands(lambda: _clock_us(target)), uuid.uuid4().hex
    _run(
        target, "group_close", group_id=copy_id, gateway_id="copy", utc=group.utc, elapsed_us=group.elapsed_us,
        database_us=group.database_us, boot_id=group.boot_id, boot_us=group.boot_us,
    )  # fmt: skip
    # Moved on purpose: a database without this row would count as one that was put back.
    _run(target, "life_write", **here)
    moved.mark(source, moved.Move(copy_id, shown, identity, group.utc))
    source.execute("COMMIT")
    return written


def _undo(source: sqlite3.Connection) -> None:
    """The file is served again: what was to be committed is not there."""
    if not source.in_transaction:
        source.execute("BEGIN IMMEDIATE")
        moved.unmark(source, APPLICATION_ID)
        source.execute("COMMIT")


def _clock_us(target: psycopg.Connection) -> int:
    row = _run(target, "group_open").fetchone()
    if row is None:
        raise LookupError("the server does not tell the time")
    return int(row[4])


def _here(target: psycopg.Connection) -> dict[str, str]:
    cursor = _run(target, "life_now")
    row = cursor.fetchone()
    if row is None or cursor.description is None:
        raise LookupError("the server does not tell which one it is")
    return {column.name: value for column, value in zip(cursor.description, row, strict=True)}


def _run(target: psycopg.Connection, name: str, **parameters: Value) -> psycopg.Cursor[tuple[Any, ...]]:
    """Run a named statement."""
    statement = statements()[name]
    cursor = psycopg.RawCursor(target)
    cursor.execute(statement.sql, [parameters[parameter] for parameter in statement.parameters])
    return cursor
