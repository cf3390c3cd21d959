"""Connecting: what the URL names, and the settings that every session must have from its first moment."""

from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg import conninfo

from gateway.store.port import DatabaseUnusableError
from gateway.store.postgres.session import Session
from gateway.store.postgres.statements import statements

_OPTIONS: Final = {
    "synchronous_commit": "on",
    # A process that stands still in a transaction holds up every other gateway for no longer than this.
    "idle_in_transaction_session_timeout": "2s",
    "lock_timeout": "6s",
    "statement_timeout": "8s",
    "timezone": "UTC",
}
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
    """Where the database is. `repr` shows no password."""

    _parameters: dict[str, Any]

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
        return psycopg.connect(self._conninfo(purpose, options), autocommit=True)

    async def connect_async(self, purpose: str, **options: str) -> psycopg.AsyncConnection:
        """Open a connection for the event loop, as `connect` does."""
        return await psycopg.AsyncConnection.connect(self._conninfo(purpose, options), autocommit=True)

    def _conninfo(self, purpose: str, options: dict[str, str]) -> str:
        wanted = dict(self._parameters)
        settings = " ".join(f"-c {name}={value}" for name, value in (_OPTIONS | options).items())
        # Startup options: a SET could be lost behind a pool, and comes too late for the first statement.
        wanted["options"] = f"{wanted.get('options', '')} {settings}".strip()
        wanted["application_name"] = f"order-gateway {purpose}"
        return conninfo.make_conninfo(**wanted)

    def open_session(self, purpose: str, **options: str) -> Session:
        """Open a connection on which all named statements are prepared. Raises psycopg.Error."""
        connection = self.connect(purpose, **options)
        try:
            return Session(connection, statements())
        except BaseException:
            connection.close()
            raise


def parse_url(url: str) -> Address:
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
    return Address({**_CONNECTION, **several, **given})
