"""The database of a test on the engine that was asked for: `pytest --engine=postgres`, else a SQLite file.

A test names a file; with PostgreSQL the file's path stands for a database of the test server, made when it is first
asked for and dropped after the test.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

from gateway.clock import KeptClock, load_clock
from gateway.domain.instant import Instant
from gateway.store.gathering import OnCommit, ignore_commit
from gateway.store.port import Store, Transaction
from gateway.store.sqlite.engine import Database, SqliteStore, open_database
from gateway.store.sqlite.transaction import SqliteTransaction
from tests.gateway.support.manual_time import ManualTime
from tests.gateway.support.template import make_ready as make_file_ready

VARIABLE: Final = "ORDER_GATEWAY_TEST_ENGINE"
"""Hands the option on to the processes of xdist."""


def is_postgres() -> bool:
    """Whether the tests run on PostgreSQL."""
    return os.environ.get(VARIABLE) == "postgres"


class BookClock(KeptClock, Protocol):
    """A clock that a test may read."""

    def now(self) -> Instant: ...


class BookDatabase(Protocol):
    """What the book of the use cases needs of a database."""

    @property
    def connection(self) -> Any:
        """For SQL of the tests, each statement committed by itself."""
        ...

    @property
    def clock(self) -> BookClock: ...

    def run(self, operation: Callable[[Transaction, Instant], Any]) -> tuple[Any, set[str]]:
        """Run one operation in one transaction; return its result and what it notified."""
        ...

    def close(self) -> None: ...


class FileDatabase:
    """A SQLite file."""

    def __init__(self, path: Path, time: ManualTime) -> None:
        make_ready(path)
        self._database: Database = open_database(path)
        self.connection: sqlite3.Connection = self._database.writing
        self.clock = load_clock(self._database.transaction(), time.machine())

    def run(self, operation: Callable[[Transaction, Instant], Any]) -> tuple[Any, set[str]]:
        tx = self._database.transaction()
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            result = operation(tx, self.clock.now())
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")
        return result, tx.notified  # type: ignore[attr-defined]

    def close(self) -> None:
        self._database.close()


def open_book(path: Path, time: ManualTime) -> BookDatabase:
    """Open the database that the book runs on."""
    if not is_postgres():
        return FileDatabase(path, time)
    from tests.gateway.support.server_book import ServerDatabase  # noqa: PLC0415 - needs the driver

    return ServerDatabase(url_of(path), time)


def open_store(
    path: Path,
    time: ManualTime,
    publish: Callable[[set[str]], None],
    on_fatal: Callable[[BaseException], None],
    on_commit: OnCommit = ignore_commit,
) -> tuple[Store, KeptClock]:
    """Open a store, and the clock that goes with it."""
    make_ready(path)
    if is_postgres():
        from gateway.store.postgres import engine  # noqa: PLC0415 - needs the driver
        from tests.gateway.support import postgres  # noqa: PLC0415

        served = engine.open_database(url_of(path), postgres.machine(time), wait_seconds=0)
        return engine.PostgresStore(served, publish, on_fatal, on_commit), served.clock
    database = open_database(path)
    clock = load_clock(database.transaction(), time.machine())
    return SqliteStore(database, clock, publish, on_fatal, on_commit), clock


def transaction_class() -> type[Any]:
    """What use cases are given."""
    if is_postgres():
        from gateway.store.postgres.transaction import PostgresTransaction  # noqa: PLC0415 - needs the driver

        return PostgresTransaction
    return SqliteTransaction


def violations() -> tuple[type[Exception], ...]:
    """What is raised where a rule of the schema is broken."""
    if is_postgres():
        import psycopg  # noqa: PLC0415

        return psycopg.IntegrityError, psycopg.DataError
    return (sqlite3.IntegrityError,)


def make_ready(path: Path) -> None:
    """Make an empty database at the newest schema, unless there is one."""
    if is_postgres():
        url_of(path)
    else:
        make_file_ready(path)


def settings_of(path: Path) -> dict[str, Any]:
    """The settings that name the database of this path."""
    return {"gateway_db_url": url_of(path)} if is_postgres() else {"gateway_db_path": path}


_made: dict[Path, str] = {}


def url_of(path: Path) -> str:
    """The URL of the database that a path stands for."""
    from tests.gateway.support import postgres  # noqa: PLC0415 - needs the driver

    if path not in _made:
        for gone in [other for other in _made if not other.parent.exists()]:
            postgres.drop_database(_made.pop(gone))
        _made[path] = postgres.new_database()
    return _made[path]


def drop_below(folder: Path) -> None:
    """Drop the databases of paths in a folder."""
    for path in [path for path in _made if folder in path.parents]:
        from tests.gateway.support import postgres  # noqa: PLC0415 - needs the driver

        postgres.drop_database(_made.pop(path))


@contextmanager
def beside(path: Path) -> Iterator[Any]:
    """A connection of its own for SQL with `?`, beside whoever has the database open; it commits at the end."""
    if is_postgres():
        from tests.gateway.support import postgres  # noqa: PLC0415 - needs the driver

        with postgres.Beside(url_of(path)) as connection:
            yield connection
    else:
        connection = sqlite3.connect(path, timeout=10)
        try:
            connection.row_factory = sqlite3.Row
            with connection:
                yield connection
        finally:
            connection.close()


def tables(path: Path) -> list[str]:
    """The names of all tables."""
    with beside(path) as connection:
        if is_postgres():
            found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        else:
            found = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        return sorted(row[0] for row in found)
