"""Both engines have the same tables, columns and unique keys at the same version; PostgreSQL has what several share."""

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from gateway.store.port import DatabaseUnusableError
from gateway.store.postgres import schema
from gateway.store.postgres.connection import parse_url
from gateway.store.sqlite.schema import migrations as sqlite_migrations
from tests.gateway.support import postgres
from tests.gateway.support.template import make_ready

pytestmark = pytest.mark.needs("postgresql")

SHARED = {
    "store_groups",
    "schema_versions",
    "schema_compatibility",
    "sweep_leader",
    "streams",
    "gateways",
    "database_life",
}
"""Tables that only a database of several gateways has."""

TYPES = {"INTEGER": "bigint", "TEXT": "text"}


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    make_ready(tmp_path / "gateway.db")
    connection = sqlite3.connect(tmp_path / "gateway.db")
    yield connection
    connection.close()


@pytest.fixture
def url() -> Iterator[str]:
    with postgres.database() as made:
        yield made


def tables(sqlite: sqlite3.Connection) -> list[str]:
    found = sqlite.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
    return sorted(name for (name,) in found)


def columns_of_sqlite(sqlite: sqlite3.Connection, table: str) -> set[tuple[Any, ...]]:
    """Name, type, whether it may be NULL, of each column; part of the key is never NULL."""
    return {
        (name, TYPES[type_], not (not_null or key))
        for _, name, type_, not_null, _, key in sqlite.execute(f"PRAGMA table_info({table})")
    }


def columns_of_postgres(url: str, table: str) -> set[tuple[Any, ...]]:
    rows = postgres.server().execute(
        "SELECT column_name, data_type, is_nullable = 'YES', collation_name FROM information_schema.columns "
        "WHERE table_name = %s",
        postgres.name_of(url),
        table,
    )
    assert {collation for _, type_, _, collation in rows if type_ == "text"} <= {"C"}, table
    return {(name, type_, nullable) for name, type_, nullable, _ in rows}


def test_the_version_is_the_same() -> None:
    assert schema.program() == len(sqlite_migrations())


def test_tables_and_columns_are_the_same(sqlite: sqlite3.Connection, url: str) -> None:
    rows = postgres.server().execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'public'", postgres.name_of(url)
    )
    assert {name for (name,) in rows} - SHARED == set(tables(sqlite))
    for table in tables(sqlite):
        assert columns_of_postgres(url, table) == columns_of_sqlite(sqlite, table), table


def unique_of_sqlite(sqlite: sqlite3.Connection, table: str) -> set[tuple[Any, ...]]:
    """Columns of each unique index, and whether it is partial; the number of a row is left out."""
    found = set()
    for _, name, unique, _, partial in sqlite.execute(f"PRAGMA index_list({table})"):
        if unique:
            columns = tuple(column for _, _, column in sqlite.execute(f"PRAGMA index_info({name})"))
            found.add((columns, bool(partial)))
    return found


def test_what_is_unique_is_the_same(sqlite: sqlite3.Connection, url: str) -> None:
    for table in tables(sqlite):
        rows = postgres.server().execute(
            "SELECT array_agg(attname::text ORDER BY at), indpred IS NOT NULL, bool_or(attidentity <> '') "
            "FROM pg_index, unnest(indkey) WITH ORDINALITY AS key (number, at), pg_attribute "
            "WHERE indrelid = %s::regclass AND indisunique AND attrelid = indrelid AND attnum = key.number "
            "GROUP BY indexrelid, indpred IS NOT NULL",
            postgres.name_of(url),
            table,
        )
        found = {(tuple(columns), partial) for columns, partial, numbered in rows if not numbered}
        expected = {one for one in unique_of_sqlite(sqlite, table) if one != (("one",), False)}
        assert found - {(("one",), False)} == expected, table


def test_each_rule_of_a_row_and_each_trigger_is_on_both(sqlite: sqlite3.Connection, url: str) -> None:
    name = postgres.name_of(url)
    for table in tables(sqlite):
        ((sql,),) = sqlite.execute("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?", (table,))
        rows = postgres.server().execute(
            "SELECT count(*) FROM pg_constraint WHERE contype = 'c' AND conrelid = %s::regclass", name, table
        )
        assert rows == [(len(re.findall(r"\bCHECK \(", sql)),)], table
    triggers = {found for (found,) in sqlite.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")}
    rows = postgres.server().execute("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal", name)
    assert {found for (found,) in rows if not found.endswith("_truncated")} == triggers


@pytest.mark.parametrize("table", ["tasks", "leases", "approvals", "events", "late_reports"])
def test_what_is_never_deleted_is_never_truncated(url: str, table: str) -> None:
    with pytest.raises(psycopg.IntegrityError):
        postgres.server().execute(f"TRUNCATE {table} CASCADE", postgres.name_of(url))


def test_a_database_of_another_program_is_left_alone(url: str) -> None:
    postgres.server().execute("DROP TABLE schema_versions", postgres.name_of(url))
    with parse_url(url).connect("test") as connection, pytest.raises(DatabaseUnusableError, match="another program"):
        schema.migrate(connection)


def test_a_newer_database_is_used_while_it_allows_this_program(url: str) -> None:
    postgres.server().execute("INSERT INTO schema_versions VALUES (9999)", postgres.name_of(url))
    with parse_url(url).connect("test") as connection:
        assert schema.migrate(connection) == 0
        postgres.server().execute("UPDATE schema_compatibility SET oldest_program = 9999", postgres.name_of(url))
        with pytest.raises(DatabaseUnusableError, match=r"version 9999 or newer, this one .* use the newer program"):
            schema.migrate(connection)
