"""What the role of the gateways may do, where another role owns the tables (docs/postgresql.md#roles)."""

from importlib.resources import files

import psycopg
from psycopg import sql

from gateway.store.port import DatabaseUnusableError


def statements(connection: psycopg.Connection, role: str) -> str:
    """Return the SQL that gives a role what a gateway needs, and takes from it whatever else it has."""
    (schema,) = connection.execute("SELECT current_schema()").fetchone() or ("public",)
    text = files(__package__).joinpath("rights.sql").read_text("utf-8")
    composed = sql.SQL(text).format(role=sql.Identifier(role), schema=sql.Identifier(schema))
    return composed.as_string(connection)


def grant(connection: psycopg.Connection, role: str) -> None:
    """Give a role exactly what a gateway needs, in one transaction: gateways that run notice nothing.

    Raises DatabaseUnusableError where the role is the one that owns the tables, or there is none of that name,
    psycopg.Error.
    """
    owns = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tableowner = %s)", (role,)
    ).fetchone()
    if owns == (True,):
        raise DatabaseUnusableError(f"the role {role} owns tables here, so it may do everything; name another one")
    with connection.transaction():
        connection.execute(statements(connection, role).encode())
