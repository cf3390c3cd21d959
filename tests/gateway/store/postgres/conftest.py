"""Stores on one database, as several gateways have it, and a server that a test may break."""

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from gateway.clock import system_time
from gateway.store.postgres import life
from gateway.store.postgres.engine import Database, PostgresStore, open_database
from gateway.store.postgres.group_log import GroupLog
from gateway.store.postgres.service_clock import Machine
from gateway.store.postgres.transaction import PostgresTransaction
from tests.gateway.support import postgres


@dataclass
class Gateway:
    """One gateway's store; `fatal` is what stopped it for good."""

    store: PostgresStore
    published: list[set[str]] = field(default_factory=list)
    fatal: list[BaseException] = field(default_factory=list)

    @property
    def log(self) -> GroupLog:
        return self.store._writer._attempts._groups


Gateways = Callable[[], Gateway]


@pytest.fixture
def url() -> Iterator[str]:
    """A database of the test server."""
    with postgres.database() as made:
        yield made


@pytest.fixture
async def gateways(url: str) -> AsyncIterator[Gateways]:
    """Opens stores on the database; they are closed on the way out."""
    opened: list[Gateway] = []

    def start() -> Gateway:
        machine = system_time()
        database = open_database(url, Machine(machine.boot_id, machine.boot_us), wait_seconds=0)
        claim(database)
        published: list[set[str]] = []
        fatal: list[BaseException] = []
        opened.append(Gateway(PostgresStore(database, published.append, fatal.append), published, fatal))
        return opened[-1]

    yield start
    for gateway in opened:
        await gateway.store.close()


@pytest.fixture
async def one(gateways: Gateways) -> Gateway:
    """A single gateway."""
    return gateways()


@pytest.fixture(scope="module")
def own_server() -> Iterator[postgres.Server]:
    """A server that a test may stop, crash and start with other settings."""
    with postgres.own_server() as server:
        yield server


def claim(database: Database) -> None:
    """Write down which database this is, as a gateway that joins does."""
    session = database.address.open_session("test")
    GroupLog(database.clock, database.gateway_id).alone(session, lambda own: life.claim(PostgresTransaction(own)))
    session.close()


def end_sessions(url: str, purpose: str = "writer") -> int:
    """End the sessions of the gateways on a database; return how many there were."""
    rows: list[Any] = postgres.server().execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s AND datname = %s",
        "postgres",
        f"order-gateway {purpose}",
        postgres.name_of(url),
    )
    return len(rows)
