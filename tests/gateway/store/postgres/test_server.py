"""What is asked of a server before it is trusted; and what becomes of those who write while it crashes."""

import asyncio
from collections.abc import Iterator

import pytest

from gateway.clock import system_time
from gateway.domain.models import Standby
from gateway.store import workers
from gateway.store.port import DatabaseUnusableError, StoreUnavailableError
from gateway.store.postgres import server as servers
from gateway.store.postgres.connection import parse_url
from gateway.store.postgres.engine import PostgresStore, open_database
from gateway.store.postgres.service_clock import Machine
from tests.gateway.support import postgres

pytestmark = pytest.mark.needs("postgresql")


def machine() -> Machine:
    clocks = system_time()
    return Machine(clocks.boot_id, clocks.boot_us)


@pytest.fixture
def restarted(own_server: postgres.Server) -> Iterator[postgres.Server]:
    """A server that a test starts with settings of its own; afterwards it is as it was."""
    yield own_server
    own_server.stop()
    own_server.start()


def test_a_sound_server_is_taken_without_a_word(url: str) -> None:
    with parse_url(url).connect("test") as connection:
        assert servers.examine(connection) == servers.Findings()


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_a_server_that_may_lose_what_it_acknowledges_is_refused(restarted: postgres.Server, setting: str) -> None:
    restarted.stop()
    restarted.start(**{setting: "off"})
    with pytest.raises(DatabaseUnusableError, match=f"its setting {setting} is off"):
        open_database(restarted.url("postgres"), machine())


def test_a_standby_is_refused(restarted: postgres.Server) -> None:
    restarted.stop()
    signal = restarted.folder / "data/standby.signal"
    signal.touch()
    restarted.start()
    try:
        with pytest.raises(DatabaseUnusableError, match="it is a standby"):
            open_database(restarted.url("postgres"), machine())
    finally:
        signal.unlink()


def test_another_encoding_is_refused() -> None:
    postgres.server().execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(DatabaseUnusableError, match="its encoding is LATIN1"):
        open_database(postgres.server().url("latin"), machine())


def test_an_old_version_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "OLDEST_VERSION", 990_000)
    with pytest.raises(DatabaseUnusableError, match="14 or newer is needed"):
        open_database(url, machine())


def test_the_collation_of_the_database_does_not_reorder_an_index(own_server: postgres.Server) -> None:
    own_server.execute("CREATE DATABASE german TEMPLATE template0 LOCALE 'C.UTF-8'")
    open_database(own_server.url("german"), machine(), wait_seconds=0)
    rows = own_server.execute(
        "SELECT DISTINCT pg_collation.collname FROM pg_index, unnest(indcollation) AS used, pg_collation, pg_class "
        "WHERE used = pg_collation.oid AND pg_class.oid = indrelid AND relnamespace = 'public'::regnamespace",
        "german",
    )
    assert rows == [("C",)]


def test_a_standby_that_is_meant_and_not_named_is_warned_of(url: str) -> None:
    with parse_url(url, Standby.SYNCHRONOUS).connect("test") as connection:
        (warning,) = servers.examine(connection, Standby.SYNCHRONOUS).warnings
    assert "synchronous_standby_names is empty" in warning


def test_commits_that_do_not_wait_for_the_disk_are_refused(url: str) -> None:
    with parse_url(url).connect("test", synchronous_commit="off") as connection:
        assert "synchronous_commit is off" in servers.examine(connection).refusals[0]


def test_commits_that_do_not_wait_for_the_standby_are_warned_of(restarted: postgres.Server) -> None:
    restarted.stop()
    restarted.start(synchronous_standby_names="a_standby")
    with parse_url(restarted.url("postgres")).connect("test", synchronous_commit="local") as connection:
        found = servers.examine(connection)
        assert found.refusals == []
        assert "synchronous_commit is local" in found.warnings[0]


def test_a_server_that_is_not_there_may_come_and_its_password_is_told_to_nobody() -> None:
    with pytest.raises(StoreUnavailableError, match=r"127\.0\.0\.1") as told:
        open_database("postgresql://gateway:the-password@127.0.0.1:1/orders", machine())
    assert "the-password" not in str(told.value)


def test_a_url_that_is_none_is_not_repeated() -> None:
    with pytest.raises(DatabaseUnusableError, match="no URL") as told:
        open_database("postgresql://gateway:the-password@[/orders", machine())
    assert "the-password" not in str(told.value)
    assert "the-password" not in repr(parse_url("postgresql://gateway:the-password@127.0.0.1/orders"))


async def test_nothing_that_was_acknowledged_is_lost_when_the_server_crashes_under_load(
    own_server: postgres.Server,
) -> None:
    store = PostgresStore(open_database(own_server.url("postgres"), machine(), wait_seconds=0), len, lambda _: None)
    acknowledged: set[str] = set()
    enough = asyncio.Event()

    async def write(caller: int) -> None:
        number = 0
        while not enough.is_set():
            number += 1
            acknowledged.add(await store.write(seen, f"w{caller}-{number}"))

    callers = [asyncio.create_task(write(caller)) for caller in range(8)]
    for _ in range(3):
        before = len(acknowledged)
        while len(acknowledged) < before + 50:  # noqa: ASYNC110 - each answer is a signal, fifty of them are none
            await asyncio.sleep(0.01)
        await asyncio.to_thread(own_server.stop, at_once=True)
        await asyncio.to_thread(own_server.start)
    enough.set()
    await asyncio.gather(*callers)
    found = await store.read(lambda tx, _now: {worker.worker_id for worker in workers.everyone(tx)})
    await store.close()
    assert found >= acknowledged
    assert len(acknowledged) >= 150


def seen(tx, now, worker_id: str) -> str:  # type: ignore[no-untyped-def]
    workers.seen(tx, now, worker_id)
    return worker_id
