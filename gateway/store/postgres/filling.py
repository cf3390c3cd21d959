"""Fills an empty database with the rows of a SQLite file, and reads back what came of them. One transaction's work.

The tables of a number have the same columns on both engines, so a row is copied as it is: what triggers have made on
one side comes along, and triggers rest meanwhile on the other. CHECKs, keys and references are enforced by each row.
"""

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any, Final

import psycopg
from psycopg import sql

from gateway.store.port import DatabaseUnusableError

_FETCHED: Final = 5_000


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the file. Its rows are told apart, and put in order, by `key`."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Content:
    """What a table holds: how many rows, and the SHA-256 of all of them in the order of their key."""

    rows: int
    digest: str


def tables_of(source: sqlite3.Connection) -> Sequence[Table]:
    """Return the tables of a file; each comes after those that its rows refer to."""
    found = source.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'moved'"
    )
    after = {name: {row[2] for row in source.execute(f"PRAGMA foreign_key_list({name})")} - {name} for (name,) in found}
    return [_table(source, name) for name in TopologicalSorter(after).static_order()]


def _table(source: sqlite3.Connection, name: str) -> Table:
    columns = source.execute(f"PRAGMA table_info({name})").fetchall()
    key = sorted((column for column in columns if column[5]), key=lambda column: column[5])
    return Table(name, tuple(column[1] for column in columns), tuple(column[1] for column in key))


def require_empty(target: psycopg.Connection, tables: Iterable[Table]) -> None:
    """Raise DatabaseUnusableError if a table has a row, or a gateway has ever run there."""
    for name in ("store_groups", *(table.name for table in tables)):
        query = sql.SQL("SELECT EXISTS (SELECT 1 FROM {})").format(sql.Identifier(name))
        if target.execute(query).fetchone() == (True,):
            raise DatabaseUnusableError(f"it is not empty: {name} has rows; name a new database, nothing was changed")


def fill(source: sqlite3.Connection, target: psycopg.Connection, table: Table) -> Content:
    """Copy the rows of a table; return what was read. Raises psycopg.Error where a rule refuses a row."""
    name, columns = sql.Identifier(table.name), sql.SQL(", ").join(map(sql.Identifier, table.columns))
    target.execute(sql.SQL("ALTER TABLE {} DISABLE TRIGGER USER").format(name))
    count, digest = 0, hashlib.sha256()
    with target.cursor() as cursor, cursor.copy(sql.SQL("COPY {} ({}) FROM STDIN").format(name, columns)) as copy:
        for row in _rows_of(source, table):
            copy.write_row(row)
            digest.update(repr(row).encode())
            count += 1
    target.execute(sql.SQL("ALTER TABLE {} ENABLE TRIGGER USER").format(name))
    return Content(count, digest.hexdigest())


def content(target: psycopg.Connection, table: Table) -> Content:
    """Read a table back."""
    count, digest = 0, hashlib.sha256()
    query = sql.SQL("SELECT {} FROM {} ORDER BY {}").format(
        sql.SQL(", ").join(map(sql.Identifier, table.columns)),
        sql.Identifier(table.name),
        sql.SQL(", ").join(map(sql.Identifier, table.key)),
    )
    with target.cursor(name="content") as cursor:
        cursor.itersize = _FETCHED
        for row in cursor.execute(query):
            digest.update(repr(row).encode())
            count += 1
    return Content(count, digest.hexdigest())


def set_sequences(source: sqlite3.Connection, target: psycopg.Connection, tables: Iterable[Table]) -> None:
    """Let numbers go on behind the highest that was ever given, also to a row that is gone."""
    given = dict(source.execute("SELECT name, seq FROM sqlite_sequence").fetchall())
    names = [table.name for table in tables]
    numbered = target.execute(
        "SELECT relname, attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid "
        "WHERE attidentity <> '' AND relnamespace = current_schema()::regnamespace AND relname = ANY (%s)",
        (names,),
    ).fetchall()
    for table, column in numbered:
        query = sql.SQL(
            "SELECT setval(pg_get_serial_sequence({table}, {column}), highest) "
            "FROM (SELECT greatest(max({name}), {given}) AS highest FROM {of}) AS of WHERE highest > 0"
        ).format(
            table=table, column=column, name=sql.Identifier(column), given=given.get(table, 0), of=sql.Identifier(table)
        )
        target.execute(query)


def require_rules(target: psycopg.Connection) -> None:
    """Raise DatabaseUnusableError unless every trigger fires and every constraint was checked."""
    asleep = target.execute(
        "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'O' "
        "UNION ALL SELECT conname FROM pg_constraint WHERE NOT convalidated"
    ).fetchall()
    if asleep:
        raise DatabaseUnusableError(f"rules of the database do not hold: {', '.join(name for (name,) in asleep)}")


def differing(read: Mapping[str, Content], written: Mapping[str, Content]) -> list[str]:
    """Return the tables that do not hold what was read."""
    return [name for name in read if read[name] != written.get(name)]


def _rows_of(source: sqlite3.Connection, table: Table) -> Iterator[tuple[Any, ...]]:
    cursor = source.cursor()
    cursor.row_factory = None
    columns, key = ", ".join(table.columns), ", ".join(table.key)
    yield from cursor.execute(f"SELECT {columns} FROM {table.name} ORDER BY {key}")  # noqa: S608 - our own tables
