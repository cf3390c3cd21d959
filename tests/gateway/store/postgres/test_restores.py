"""Databases that PostgreSQL's own tools have put back or copied: which start paused, and which do not.

The commands are those that docs/postgresql-backup.md prints.
"""

import asyncio
import logging
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from gateway.domain.models import Standby
from gateway.domain.states import TaskStatus
from tests.deploy.printed import blocks
from tests.gateway.cli.command import Commands
from tests.gateway.support import postgres
from tests.gateway.support.in_process import RunningGateway, running_gateway

PAGE = "postgresql-backup.md"

pytestmark = [pytest.mark.needs("postgresql"), pytest.mark.timeout(180)]


@contextmanager
def a_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="postgresql-", dir=postgres.FAST_FOLDER) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def archive() -> Iterator[Path]:
    """Where the server puts its log."""
    with a_folder() as folder:
        folder.chmod(0o777)  # the server's account writes here
        yield folder


@pytest.fixture(scope="module")
def origin(archive: Path) -> Iterator[postgres.Server]:
    """A server that archives its log, with an order in the database `orders` that was filed while a gateway ran."""
    with a_folder() as folder:
        server = postgres.Server(folder)
        server.follow(blocks(PAGE, "Point in time")[0], ARCHIVE=archive)
        server.stop()
        server.start()
        try:
            yield server
        finally:
            server.stop(at_once=True)


@pytest.fixture
async def orders(origin: postgres.Server, tmp_path: Path) -> str:
    """A database in which a gateway has left an order in the queue; its name."""
    origin.execute("DROP DATABASE IF EXISTS orders WITH (FORCE)")
    origin.execute("CREATE DATABASE orders TEMPLATE template0")
    async with gateway_on(origin, "orders", tmp_path) as gateway:
        await gateway.api.submit("po-1")
    return "orders"


@asynccontextmanager
async def gateway_on(
    server: postgres.Server, database: str, folder: Path, standby: Standby = Standby.NONE
) -> AsyncIterator[RunningGateway]:
    url = server.url(database)
    async with running_gateway(folder, gateway_db_url=url, database_standby=standby) as running:
        yield running


async def is_paused(gateway: RunningGateway) -> bool:
    """Whether nothing is leased though an order waits or has waited."""
    health = await gateway.api.health()
    return bool(health.pauses) and await gateway.api.lease() is None


async def starts_as_restored(
    server: postgres.Server,
    database: str,
    folder: Path,
    said: pytest.LogCaptureFixture,
    words: str,
    standby: Standby = Standby.NONE,
) -> None:
    said.clear()
    with said.at_level(logging.WARNING, "gateway.joining"):
        async with gateway_on(server, database, folder, standby) as gateway:
            assert await gateway.api.status("po-1") is TaskStatus.STALE
            assert await is_paused(gateway)
            alerts = server.execute("SELECT kind FROM alerts WHERE cleared_at IS NULL", database)
            assert alerts, "a person is told"
    assert f"restored from {words}: dispatch is paused, and 1 open tasks count as permitted" in said.text
    assert "next: look at `order-gateway decisions`" in said.text
    async with gateway_on(server, database, folder) as again:
        assert len((await again.api.health()).pauses) == 1
    assert server.execute("SELECT count(*) FROM restores", database) == [(1,)], "it was restored once"


async def starts_as_it_was(server: postgres.Server, database: str, folder: Path) -> None:
    async with gateway_on(server, database, folder) as gateway:
        assert await gateway.api.status("po-1") is TaskStatus.QUEUED
        assert not await is_paused(gateway)


@contextmanager
def started_elsewhere(make: Callable[[postgres.Server], object]) -> Iterator[postgres.Server]:
    """A server whose data `make` puts into a new folder."""
    with a_folder() as folder:
        server = postgres.Server(folder, make)
        # The original goes on, unlike in life, so its archive must not hold another timeline as well.
        server.start(archive_mode="off")
        try:
            while server.execute("SELECT pg_is_in_recovery()") != [(False,)]:
                time.sleep(0.05)
            yield server
        finally:
            server.stop(at_once=True)


async def test_a_dump_starts_paused_and_the_original_does_not(
    origin: postgres.Server, orders: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for block in blocks(PAGE, "Dump"):
        origin.follow(block, BACKUP=origin.folder)
    await starts_as_restored(origin, "restored", tmp_path, caplog, "a dump")
    await starts_as_it_was(origin, orders, tmp_path)


async def test_a_clone_starts_paused_and_the_original_does_not(
    origin: postgres.Server, orders: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    origin.follow("createdb -T orders cloned")
    await starts_as_restored(origin, "cloned", tmp_path, caplog, "a clone of another database")
    await starts_as_it_was(origin, orders, tmp_path)


async def test_a_restart_in_place_is_no_restore(origin: postgres.Server, orders: str, tmp_path: Path) -> None:
    for at_once in (False, True):
        origin.stop(at_once=at_once)
        origin.start()
        await starts_as_it_was(origin, orders, tmp_path)
    origin.execute("VACUUM (FREEZE)", orders)
    origin.execute("VACUUM FULL database_life", orders)
    await starts_as_it_was(origin, orders, tmp_path)


@pytest.mark.parametrize("standby", Standby)
async def test_a_point_in_time_starts_paused_without_what_came_later(
    origin: postgres.Server,
    orders: str,
    archive: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    standby: Standby,
) -> None:
    monkeypatch.setattr("gateway.joining.WITNESS_SECONDS", 0.1)
    _, base_backup, put_back = blocks(PAGE, "Point in time")
    with a_folder() as backup:
        backup.chmod(0o777)
        origin.follow(base_backup, BACKUP=backup)
        ((moment,),) = origin.execute("SELECT CAST(clock_timestamp() AS text)")
        origin.execute("CREATE TABLE later ()", orders)
        await asyncio.to_thread(wait_for_the_archive, origin)
        with started_elsewhere(
            lambda server: server.follow(
                put_back, BACKUP=backup, ARCHIVE=archive, MOMENT=moment, PGDATA=server.folder / "data"
            )
        ) as server:
            assert server.execute("SELECT 1 FROM pg_tables WHERE tablename = 'later'", orders) == []
            what = "a point in time, or a standby that was promoted"
            await starts_as_restored(server, orders, tmp_path, caplog, what, standby)


def wait_for_the_archive(origin: postgres.Server) -> None:
    """Let the server archive all that it has logged."""
    ((file,),) = origin.execute("SELECT pg_walfile_name(pg_switch_wal())")
    while origin.execute("SELECT coalesce(last_archived_wal, '') < %s FROM pg_stat_archiver", "postgres", file)[0][0]:
        time.sleep(0.05)


async def test_a_copy_that_nothing_tells_from_the_original_is_marked_by_hand(
    origin: postgres.Server, orders: str, tmp_path: Path
) -> None:
    with started_elsewhere(lambda server: server.copy_of(origin)) as server:
        await starts_as_it_was(server, orders, tmp_path)
        commands = Commands({"RAKUTEN_GATEWAY_DB_URL": server.url(orders)})
        ran = await commands.ok("database", "restored", "--reason", "the disk of db1 died", "--yes")
        assert "the database counts as restored: dispatch is paused, 1 tasks were open" in ran.out
        assert "Next: look at `order-gateway decisions`" in ran.out
        async with gateway_on(server, orders, tmp_path) as gateway:
            assert await gateway.api.status("po-1") is TaskStatus.STALE
            (pause,) = (await gateway.api.health()).pauses
            assert pause.reason.startswith("restored from a copy in place (the disk of db1 died)")


async def test_a_planned_move_is_adopted(origin: postgres.Server, orders: str, tmp_path: Path) -> None:
    origin.follow("createdb -T orders moved")
    commands = Commands({"RAKUTEN_GATEWAY_DB_URL": origin.url("moved")})
    ran = await commands.ok("database", "adopt", "--reason", "a larger machine", "--yes")
    assert ran.out == (
        "the database, which looked like a clone of another database, counts as the one it was; start the gateways\n"
    )
    ran = await commands.ok("database", "adopt", "--reason", "a larger machine", "--yes")
    assert ran.out == "nothing to adopt: this is the database that it was\n"
    await starts_as_it_was(origin, "moved", tmp_path)


async def test_who_does_not_agree_changes_nothing(origin: postgres.Server, orders: str, tmp_path: Path) -> None:
    url = origin.url(orders).replace("gateway@", "gateway:the-password@")
    commands = Commands({"RAKUTEN_GATEWAY_DB_URL": url})
    ran = await commands.run("database", "restored", "--reason", "x", given="n\n")
    assert ran.code == 1
    assert "nothing was changed" in ran.err
    assert "dbname=orders user=gateway" in ran.err
    assert "the-password" not in ran.err + ran.out
    await starts_as_it_was(origin, orders, tmp_path)


async def test_a_file_is_restored_by_another_command(tmp_path: Path) -> None:
    commands = Commands({"RAKUTEN_GATEWAY_DB_PATH": str(tmp_path / "gateway.db")})
    ran = await commands.run("database", "adopt", "--reason", "x", "--yes")
    assert ran.code == 2
    assert "order-gateway restore" in ran.err
