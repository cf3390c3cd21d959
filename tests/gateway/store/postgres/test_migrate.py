"""Migrations beside gateways that run: once, patiently, whole or not at all, and none is shut out unasked."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from gateway.domain.models import Actor
from gateway.orders.history import record_general
from gateway.store import workers
from gateway.store.migration_files import Migration
from gateway.store.port import DatabaseUnusableError, StoreUnavailableError
from gateway.store.postgres import schema
from gateway.store.postgres.connection import parse_url
from gateway.store.postgres.engine import connected
from gateway.store.postgres.gateways import SharedGateways
from tests.gateway.store.postgres.conftest import Gateway, Gateways, end_sessions
from tests.gateway.support import postgres

pytestmark = pytest.mark.needs("postgresql")

NEXT = schema.program() + 1
WIDEN = "ALTER TABLE workers ADD COLUMN later bigint;"
SHUT_OUT = f"ALTER TABLE workers DROP COLUMN sites; UPDATE schema_compatibility SET oldest_program = {NEXT};"  # noqa: S608


@pytest.fixture
def empty() -> Iterator[str]:
    """The URL of a database without a table."""
    url = postgres.new_database("template1")
    yield url
    postgres.drop_database(url)


def with_step(sql: str) -> Sequence[Migration]:
    """This program's migrations and one more."""
    return [*schema.migrations(), Migration(NEXT, f"{NEXT:04d}_of_a_test", sql)]


def migrate(url: str, steps: Sequence[Migration] | None = None, *, stop_older: bool = False) -> tuple[int, list[str]]:
    """Migrate on a connection as the command's; return how many ran, and what was told."""
    told: list[str] = []
    with connected(url) as (_, connection):
        return schema.migrate(connection, told.append, stop_older=stop_older, steps=steps), told


def version(url: str) -> int:
    with parse_url(url).connect("test") as connection:
        return schema.state_of(connection).version


async def start(gateways: Gateways) -> Gateway:
    """A gateway that has told the others of itself."""
    gateway = gateways()
    fellow = SharedGateways(gateway.store._gateway_id, "a", {}, lambda: 0)
    assert await gateway.store.write(fellow.join) is None
    return gateway


def test_two_who_start_at_once_do_it_once(empty: str) -> None:
    together = threading.Barrier(2)

    def run() -> int:
        together.wait(30)
        return migrate(empty)[0]

    with ThreadPoolExecutor(2) as pool:
        ran = [done.result(60) for done in (pool.submit(run), pool.submit(run))]
    assert sorted(ran) == [0, len(schema.migrations())]
    assert version(empty) == schema.program()


def test_who_comes_second_is_told_and_waits_for_longer_than_a_lock_may_take(empty: str) -> None:
    told: list[str] = []
    with connected(empty) as (_, first), connected(empty) as (_, second), ThreadPoolExecutor(1) as pool:
        second.execute("SET lock_timeout = '50ms'")
        with schema.migration_lock(first, told.append):
            waiting = pool.submit(schema.migrate, second, told.append)
            while not postgres.server().execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"):
                assert not waiting.done(), waiting.result()
            assert schema.migrate(first, told.append) > 0
        assert waiting.result(30) == 0
    assert told[0] == "somebody else is migrating this database; waiting for the end of it"


def test_each_is_told_and_a_second_time_there_is_nothing_to_do(empty: str) -> None:
    ran, told = migrate(empty)
    assert [line.partition(":")[0] for line in told] == [step.name for step in schema.migrations()]
    assert ran == len(told)
    assert migrate(empty) == (0, [])


def test_one_that_fails_leaves_the_version_before_it(url: str) -> None:
    with pytest.raises(DatabaseUnusableError, match="division by zero"):
        migrate(url, with_step(f"{WIDEN} SELECT 1 / 0;"))
    assert version(url) == schema.program()
    assert migrate(url, with_step(WIDEN))[0] == 1


async def test_a_table_in_use_is_waited_for_in_short_turns_between_which_others_pass(
    gateways: Gateways, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "LOCK_SECONDS", 0.2)
    monkeypatch.setattr(schema, "AGAIN_SECONDS", 0.1)
    gateway, told = await start(gateways), asyncio.Event()
    loop = asyncio.get_running_loop()

    def run() -> int:
        with connected(url) as (_, connection):
            return schema.migrate(connection, lambda _line: loop.call_soon_threadsafe(told.set), steps=with_step(WIDEN))

    with psycopg.connect(url) as dump:
        dump.execute("SELECT * FROM workers")
        migrating = asyncio.create_task(asyncio.to_thread(run))
        await asyncio.wait_for(told.wait(), 30)
        await gateway.store.write(workers.seen, "w1")
        assert version(url) == schema.program()
    assert await migrating == 1


def test_a_table_that_stays_in_use_is_said_and_nothing_is_changed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "LOCK_SECONDS", 0.05)
    monkeypatch.setattr(schema, "AGAIN_SECONDS", 0.01)
    with psycopg.connect(url) as dump:
        dump.execute("SELECT * FROM workers")
        with pytest.raises(StoreUnavailableError, match="a dump or a long transaction"):
            migrate(url, with_step(WIDEN))
    assert version(url) == schema.program()


async def test_gateways_go_on_beside_one_that_only_adds(gateways: Gateways, url: str) -> None:
    running = await start(gateways)
    await running.store.write(workers.seen, "w1")
    assert (await asyncio.to_thread(migrate, url, with_step(WIDEN)))[0] == 1
    await running.store.write(workers.seen, "w2")
    assert len(await running.store.read(lambda tx, _now: workers.everyone(tx))) == 2
    end_sessions(url)
    await running.store.write(workers.seen, "w3")
    another = await start(gateways)
    assert len(await another.store.read(lambda tx, _now: workers.everyone(tx))) == 3
    assert running.fatal == another.fatal == []


async def test_one_that_a_running_gateway_could_not_go_on_with_is_refused(gateways: Gateways, url: str) -> None:
    running = await start(gateways)
    with pytest.raises(
        DatabaseUnusableError, match=f"{running.store._gateway_id}, which runs .* stop it first, or let"
    ):
        await asyncio.to_thread(migrate, url, with_step(SHUT_OUT))
    assert version(url) == schema.program()
    await running.store.write(workers.seen, "w1")
    await running.store.leave()
    assert (await asyncio.to_thread(migrate, url, with_step(SHUT_OUT)))[0] == 1


async def test_where_it_is_wanted_a_gateway_that_is_too_old_ends_and_stores_nothing(
    gateways: Gateways, url: str
) -> None:
    running = await start(gateways)
    await asyncio.to_thread(lambda: migrate(url, with_step(SHUT_OUT), stop_older=True))
    with pytest.raises(StoreUnavailableError, match=f"version {NEXT} or newer"):
        await running.store.write(record_general, "pause", Actor("operator"), reason="too late")
    assert [type(error) for error in running.fatal] == [DatabaseUnusableError]
    assert postgres.server().execute("SELECT count(*) FROM events", postgres.name_of(url)) == [(0,)]
    with pytest.raises(DatabaseUnusableError, match="use the newer program"):
        gateways()


async def test_a_gateway_that_never_looks_is_not_ended_by_wanting_it(gateways: Gateways, url: str) -> None:
    running = await start(gateways)
    postgres.server().execute("UPDATE gateways SET program = DEFAULT", postgres.name_of(url))
    with pytest.raises(DatabaseUnusableError, match="it does not stop by itself"):
        await asyncio.to_thread(lambda: migrate(url, with_step(SHUT_OUT), stop_older=True))
    await running.store.write(workers.seen, "w1")


async def test_what_a_gateway_knows_stands_in_its_row(gateways: Gateways, url: str) -> None:
    gateway = await start(gateways)
    rows = postgres.server().execute("SELECT gateway_id, program FROM gateways", postgres.name_of(url))
    assert rows == [(gateway.store._gateway_id, schema.program())]
