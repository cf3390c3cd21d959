"""`order-gateway migrate`: on the file and on a server's database, and what it says."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from common.exit_codes import Exit
from gateway.store.sqlite.engine import open_database
from gateway.store.sqlite.file_lock import FileLock
from gateway.store.sqlite.schema import migrate, migration_steps, migrations
from tests.gateway.cli.command import Commands, Ran

NEWEST = migration_steps()[-1]


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A file at the version before the newest."""
    path = tmp_path / "gateway.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrate(connection, migrations()[:-1])
    return path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    """Commands on the file of `older`."""
    monkeypatch.chdir(tmp_path)
    return Commands({"RAKUTEN_GATEWAY_DB_PATH": str(tmp_path / "gateway.db")})


def names_in(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()]


def words(ran: Ran) -> str:
    return " ".join((ran.out + ran.err).split())


async def test_a_file_is_looked_at_and_then_brought_up_once(here: Commands, older: Path) -> None:
    told = words(await here.ok("migrate", "--dry-run"))
    assert f"schema version {NEWEST.number - 1}" in told
    assert f"would run {NEWEST.name}" in told
    told = words(await here.ok("migrate"))
    assert f"{NEWEST.name}: done" in told
    assert f"1 migrations were run; the schema version is {NEWEST.number}" in told
    assert "would run nothing" in words(await here.ok("migrate", "--dry-run"))
    assert "0 migrations were run" in words(await here.ok("migrate"))


async def test_a_file_that_a_gateway_has_open_is_left_alone(here: Commands, older: Path) -> None:
    with closing(FileLock(older)):
        ran = await here.run("migrate")
    assert ran.code == Exit.DATABASE
    assert "another gateway process has it open" in words(ran)
    with closing(open_database(older)):
        assert "0 migrations were run" in words(await here.ok("migrate")), "nobody has to stop for nothing"


async def test_a_file_that_is_not_there_is_not_made(here: Commands, tmp_path: Path) -> None:
    for option in ((), ("--dry-run",)):
        ran = await here.run("migrate", *option)
        assert ran.code == Exit.DATABASE
        assert "`order-gateway serve` makes one" in words(ran)
    assert names_in(tmp_path) == []


async def test_a_file_of_a_newer_version_is_refused(here: Commands, older: Path) -> None:
    with closing(sqlite3.connect(older, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA user_version = {NEWEST.number + 1}")
    ran = await here.run("migrate")
    assert ran.code == Exit.DATABASE
    assert "use the newer program" in words(ran)


@pytest.fixture
def empty() -> Iterator[str]:
    from tests.gateway.support import postgres  # noqa: PLC0415 - needs the driver

    url = postgres.new_database("template1")
    yield url
    postgres.drop_database(url)


@pytest.mark.needs("postgresql")
async def test_a_server_s_database_is_looked_at_and_then_made(empty: str, here: Commands) -> None:
    commands = Commands({"RAKUTEN_GATEWAY_DB_URL": empty})
    told = words(await commands.ok("migrate", "--dry-run"))
    assert "schema version 0" in told
    assert "would run 0010_baseline, 0011_accounts" in told
    told = words(await commands.ok("migrate"))
    assert f"{NEWEST.name}: done in" in told
    assert f"the schema version is {NEWEST.number}" in told
    assert "0 migrations were run" in words(await commands.ok("migrate"))
