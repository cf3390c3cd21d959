"""Connecting: what the URL names, and the settings that every session must have."""

from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg import conninfo

from gateway.domain.models import Standby
from gateway.store.port import DatabaseUnusableError
from gateway.store.postgres.session import Session
from gateway.store.postgres.statements import statements

STANDBY_SETTING: Final = "order_gateway.standby"
"""RAKUTEN_DATABASE_STANDBY as a setting of our sessions, for the statement that withholds leases and permits by it."""

_OPTIONS: Final = {
    "synchronous_commit": "on",
    # A process that stands still in a transaction holds up every other gateway for no longer than this.
    "idle_in_transaction_session_timeout": "2s",
    "lock_timeout": "6s",
    "statement_timeout": "8s",
    "timezone": "UTC",
}
_SET: Final = b"SELECT set_config(name, value, false) FROM unnest(%s::text[], %s::text[]) AS wanted (name, value)"

_CONNECTION: Final[dict[str, Any]] = {
    "client_encoding": "UTF8",
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 8_000,
}


@dataclass(frozen=True, slots=True)
class Address:
    """Where the database is, and what its server's standby is good for. `repr` shows no password."""

    _parameters: dict[str, Any]
    standby: Standby = Standby.NONE

    def __repr__(self) -> str:
        return f"Address({self.shown})"

    @property
    def shown(self) -> str:
        """The address for people: without password, and without what they have not written."""
        wanted = ("host", "port", "dbname", "user")
        return " ".join(f"{name}={self._parameters[name]}" for name in wanted if name in self._parameters)

    @property
    def has_password(self) -> bool:
        """Whether the address itself holds one, and not the environment or a file."""
        return "password" in self._parameters

    def connect(self, purpose: str, **options: str) -> psycopg.Connection:
        """Open a connection in autocommit mode. `options` are settings of the session. Raises psycopg.Error."""
        connection = psycopg.connect(self._conninfo(purpose), autocommit=True)
        try:
            connection.execute(_SET, self._settings(options))
        except BaseException:
            connection.close()
            raise
        return connection

    async def connect_async(self, purpose: str, **options: str) -> psycopg.AsyncConnection:
        """Open a connection for the event loop, as `connect` does."""
        connection = await psycopg.AsyncConnection.connect(self._conninfo(purpose), autocommit=True)
        try:
            await connection.execute(_SET, self._settings(options))
        except BaseException:
            await connection.close()
            raise
        return connection

    def _conninfo(self, purpose: str) -> str:
        return conninfo.make_conninfo(**self._parameters | {"application_name": f"order-gateway {purpose}"})

    def _settings(self, options: dict[str, str]) -> tuple[list[str], list[str]]:
        """Return names and values. They are set by a statement: PgBouncer takes no start-up options."""
        wanted = {**_OPTIONS, STANDBY_SETTING: self.standby.value, **options}
        return list(wanted), list(wanted.values())

    def open_session(self, purpose: str, **options: str) -> Session:
        """Open a connection on which all named statements are prepared. Raises psycopg.Error."""
        connection = self.connect(purpose, **options)
        try:
            return Session(connection, statements())
        except BaseException:
            connection.close()
            raise


def parse_url(url: str, standby: Standby = Standby.NONE) -> Address:
    """Read RAKUTEN_GATEWAY_DB_URL. Raises DatabaseUnusableError, without the URL, which may hold a password."""
    try:
        given = conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        raise DatabaseUnusableError(
            "RAKUTEN_GATEWAY_DB_URL is no URL that PostgreSQL's library understands: "
            "postgresql://USER@HOST:PORT/DATABASE, with what is special in a password written as %XX"
        ) from None
    # Of several servers the one that takes writes is meant; a single one that takes none is refused in words of ours.
    several = {"target_session_attrs": "read-write"} if "," in str(given.get("host", "")) else {}
    return Address({**_CONNECTION, **several, **given}, standby)
