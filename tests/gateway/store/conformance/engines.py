"""The engines of the store, and what the suite needs of each beside the port: a second view, and faults on command."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import psycopg
import pytest

from gateway.clock import load_clock
from gateway.store.port import Store
from gateway.store.postgres.engine import PostgresStore
from gateway.store.postgres.engine import open_database as open_postgres
from gateway.store.postgres.group_log import GroupLog
from gateway.store.postgres.session import Session
from gateway.store.sqlite.engine import SqliteStore, open_database
from tests.gateway.support import postgres
from tests.gateway.support.manual_time import ManualTime
from tests.gateway.support.template import make_ready


class Engine(Protocol):
    """An open store, seen also from beside it."""

    @property
    def store(self) -> Store:
        """The store under test."""
        ...

    @property
    def published(self) -> list[set[str]]:
        """The topics that were published after each commit."""
        ...

    @property
    def fatal(self) -> list[BaseException]:
        """What stopped the store for good."""
        ...

    @property
    def violation(self) -> type[Exception] | tuple[type[Exception], ...]:
        """What the engine raises where a rule of the schema is broken."""
        ...

    def execute(self, sql: str, parameters: Any = (), /) -> Any:
        """Run SQL of its own on a second connection, which commits each statement; return a cursor."""
        ...

    def held_commits(self) -> Any:
        """While this context is entered, commits do not end; gives an event that is set once one has begun."""
        ...

    def count_commits(self) -> Callable[[], int]:
        """Return how to ask how many commits there were since."""
        ...

    async def close(self) -> None:
        """Close the store."""
        ...


@dataclass
class SqliteEngine:
    """One file."""

    path: Path
    store: SqliteStore
    published: list[set[str]]
    fatal: list[BaseException]
    violation: type[Exception] = sqlite3.IntegrityError
    _beside: list[sqlite3.Connection] = field(default_factory=list)

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        if not self._beside:
            connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA foreign_keys = ON")
            self._beside.append(connection)
        return self._beside[0].execute(sql, parameters)

    @contextmanager
    def held_commits(self) -> Iterator[asyncio.Event]:
        writer, begun, go_on = self.store._writer, asyncio.Event(), threading.Event()
        commit, loop = writer._commit, asyncio.get_running_loop()

        def held() -> sqlite3.Error | None:
            loop.call_soon_threadsafe(begun.set)
            go_on.wait(20)
            return commit()

        writer._commit = held  # type: ignore[method-assign]
        try:
            yield begun
        finally:
            writer._commit = commit  # type: ignore[method-assign]
            go_on.set()

    def count_commits(self) -> Callable[[], int]:
        writer, commits = self.store._writer, [0]
        commit = writer._commit

        def counted() -> sqlite3.Error | None:
            commits[0] += 1
            return commit()

        writer._commit = counted  # type: ignore[method-assign]
        return lambda: commits[0]

    async def close(self) -> None:
        await self.store.close()
        for connection in self._beside:
            connection.close()


@asynccontextmanager
async def sqlite_engine(folder: Path, time: ManualTime) -> AsyncIterator[Engine]:
    """Open a store on a new file."""
    path = folder / "gateway.db"
    make_ready(path)
    database = open_database(path)
    published: list[set[str]] = []
    fatal: list[BaseException] = []
    clock = load_clock(database.transaction(), time.machine())
    engine = SqliteEngine(path, SqliteStore(database, clock, published.append, fatal.append), published, fatal)
    try:
        yield engine
    finally:
        await engine.close()


@dataclass
class PostgresEngine:
    """One database of a server."""

    url: str
    store: PostgresStore
    published: list[set[str]]
    fatal: list[BaseException]
    _beside: list[Any] = field(default_factory=list)

    @property
    def violation(self) -> tuple[type[Exception], ...]:
        return psycopg.IntegrityError, psycopg.DataError

    def execute(self, sql: str, parameters: Any = (), /) -> Any:
        if not self._beside:
            self._beside.append(postgres.Beside(self.url))
        return self._beside[0].execute(sql, parameters)

    @contextmanager
    def held_commits(self) -> Iterator[asyncio.Event]:
        log, begun, go_on = self._log, asyncio.Event(), threading.Event()
        commit, loop = log.commit, asyncio.get_running_loop()

        def held(session: Session) -> None:
            loop.call_soon_threadsafe(begun.set)
            go_on.wait(20)
            commit(session)

        log.commit = held  # type: ignore[method-assign]
        try:
            yield begun
        finally:
            log.commit = commit  # type: ignore[method-assign]
            go_on.set()

    def count_commits(self) -> Callable[[], int]:
        log, commits = self._log, [0]
        commit = log.commit

        def counted(session: Session) -> None:
            commits[0] += 1
            commit(session)

        log.commit = counted  # type: ignore[method-assign]
        return lambda: commits[0]

    @property
    def _log(self) -> GroupLog:
        return self.store._writer._attempts._groups

    async def close(self) -> None:
        await self.store.close()
        for connection in self._beside:
            connection.close()


@asynccontextmanager
async def postgres_engine(_folder: Path, time: ManualTime) -> AsyncIterator[Engine]:
    """Open a store on a new database."""
    with postgres.database() as url:
        published: list[set[str]] = []
        fatal: list[BaseException] = []
        store = PostgresStore(
            open_postgres(postgres.as_served(url), postgres.machine(time)), published.append, fatal.append
        )
        engine = PostgresEngine(url, store, published, fatal)
        try:
            yield engine
        finally:
            await engine.close()


ENGINES: Mapping[str, Callable[[Path, ManualTime], AbstractAsyncContextManager[Engine]]] = {
    "sqlite": sqlite_engine,
    "postgres": postgres_engine,
}
"""Every engine is a line here."""

PARAMETERS: Final = [
    pytest.param(name, marks=[pytest.mark.needs("postgresql")] if name == "postgres" else []) for name in ENGINES
]
