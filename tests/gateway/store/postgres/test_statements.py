"""PostgreSQL prepares every named statement; an override asks what the common one asks, and gives the same columns."""

from collections.abc import Iterator

import psycopg
import pytest

from gateway.store import named_sql
from gateway.store.postgres.connection import parse_url
from gateway.store.postgres.statements import numbered, own, statements
from tests.gateway.support import postgres


@pytest.fixture
def connection() -> Iterator[psycopg.Connection]:
    with postgres.database() as url, parse_url(url).connect("test") as opened:
        yield opened


def columns(connection: psycopg.Connection, name: str, sql: bytes) -> list[bytes | None]:
    """The columns of a statement's result, as PostgreSQL describes them."""
    connection.pgconn.prepare(name.encode(), sql)
    described = connection.pgconn.describe_prepared(name.encode())
    assert not described.error_message, described.error_message
    return [described.fname(at) for at in range(described.nfields)]


@pytest.mark.needs("postgresql")
def test_postgresql_takes_every_statement(connection: psycopg.Connection) -> None:
    refused = {}
    for name, statement in statements().items():
        result = connection.pgconn.prepare(statement.name, statement.sql)
        if result.error_message:
            refused[name] = result.error_message.decode()
    assert refused == {}
    assert len(statements()) > 150


@pytest.mark.needs("postgresql")
def test_an_override_has_a_reason_and_the_same_parameters_and_columns(connection: psycopg.Connection) -> None:
    for name in own().keys() & named_sql.statements().keys():
        common, override = numbered(name, named_sql.statements()[name]), statements()[name]
        assert own()[name].startswith("-- "), name
        assert set(override.parameters) == set(common.parameters), name
        assert columns(connection, f"{name}_common", common.sql) == columns(connection, name, override.sql), name


def test_parameters_are_numbered_as_they_come() -> None:
    statement = numbered("x", "-- Of :none.\nSELECT a::text FROM t WHERE b = :b AND c = :a OR c = :b")
    assert statement.sql == b"SELECT a::text FROM t WHERE b = $1 AND c = $2 OR c = $1"
    assert statement.parameters == ("b", "a")
