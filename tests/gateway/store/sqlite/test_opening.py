"""Opening the file: made, migrated, refused with a clear line (docs/cli.md#exit-codes)."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from gateway.store.port import DatabaseUnusableError
from gateway.store.sqlite import schema
from gateway.store.sqlite.engine import open_database
from gateway.store.sqlite.schema import APPLICATION_ID, migrate, migrations
from tests.gateway.support.process import refused_start


def tables(path: Path) -> dict[str, str]:
    with closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL"))


def pragma(path: Path, name: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def test_an_empty_place_gets_the_newest_schema_in_a_file_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "gateway.db"
    open_database(path).close()
    assert pragma(path, "user_version") == len(migrations())
    assert pragma(path, "application_id") == APPLICATION_ID
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.with_name(path.name + ".lock").stat().st_mode & 0o777 == 0o600


def test_an_empty_file_is_taken_as_a_new_database(tmp_path: Path) -> None:
    path = tmp_path / "gateway.db"
    path.touch()
    open_database(path).close()
    assert pragma(path, "user_version") == len(migrations())


def test_a_second_start_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "gateway.db"
    open_database(path).close()
    before = tables(path)
    database = open_database(path)
    assert migrate(database.writing) == 0
    database.close()
    assert tables(path) == before


def test_each_older_version_is_brought_to_the_same_schema(tmp_path: Path) -> None:
    newest = tmp_path / "newest.db"
    open_database(newest).close()
    for version in range(1, len(migrations())):
        path = tmp_path / f"v{version}.db"
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            migrate(connection, migrations()[:version])
        assert pragma(path, "user_version") == version
        open_database(path).close()
        assert tables(path) == tables(newest)


def test_a_migration_that_fails_leaves_the_version_before_it(tmp_path: Path) -> None:
    path = tmp_path / "gateway.db"
    steps = [*migrations(), "CREATE TABLE half (x) STRICT; INSERT INTO nowhere VALUES (1);"]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        with pytest.raises(sqlite3.Error):
            migrate(connection, steps)
        assert not connection.in_transaction
    assert pragma(path, "user_version") == len(migrations())
    assert "half" not in tables(path)


def test_migrations_are_numbered_without_a_gap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert len(migrations()) >= 1
    (tmp_path / "migrations").mkdir()
    for name in ("0001_a.sql", "0003_b.sql"):
        (tmp_path / "migrations" / name).write_text("SELECT 1;")
    monkeypatch.setattr(schema, "files", lambda _package: tmp_path)
    with pytest.raises(ValueError, match="should have the number 0002"):
        migrations()


def newer(path: Path) -> str:
    open_database(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA user_version = {len(migrations()) + 1}")
    return f"it has schema version {len(migrations()) + 1}"


def of_another_program(path: Path) -> str:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE notes (text)")
    return "another program"


def with_another_mark(path: Path) -> str:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA application_id = 7")
    return "another program"


def no_database(path: Path) -> str:
    path.write_bytes(b"this is a text of some length, and no database at all\n" * 100)
    return "not a database"


def overwritten(path: Path) -> str:
    open_database(path).close()
    data = bytearray(path.read_bytes())
    data[100:4096] = b"\xff" * 3996
    path.write_bytes(data)
    return "malformed"


def cut_off(path: Path) -> str:
    open_database(path).close()
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    return "malformed"


def a_folder(path: Path) -> str:
    path.mkdir()
    return "Is a directory"


BROKEN = [newer, of_another_program, with_another_mark, no_database, overwritten, cut_off, a_folder]


@pytest.mark.parametrize("make", BROKEN)
def test_a_file_that_can_not_serve_is_refused_and_left_as_it_is(tmp_path: Path, make: Callable[[Path], str]) -> None:
    path = tmp_path / "gateway.db"
    says = make(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(DatabaseUnusableError, match=says) as refused:
        open_database(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert (path.read_bytes() if path.is_file() else b"") == before


async def test_the_program_says_so_in_one_line_and_ends_with_code_3(tmp_path: Path) -> None:
    path = tmp_path / "gateway.db"
    newer(path)
    code, said = await refused_start(tmp_path)
    assert code == 3, said
    assert said.startswith(f"order-gateway: the database cannot be used: {path}: it has schema version")
    assert len(said.splitlines()) == 1


def test_a_folder_that_can_not_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DatabaseUnusableError, match="cannot be opened"):
        open_database(tmp_path / "file" / "gateway.db")


async def test_a_second_process_on_the_same_file_is_refused_also_by_another_name(tmp_path: Path) -> None:
    other_name = tmp_path / "link.db"
    other_name.symlink_to(tmp_path / "gateway.db")
    database = open_database(tmp_path / "gateway.db")
    code, said = await refused_start(tmp_path, gateway_db_path=str(other_name))
    database.close()
    assert code == 3, said
    assert f"another gateway process has it open (pid {os.getpid()}); stop that one first" in said
    open_database(other_name).close()


def test_a_name_with_signs_of_a_uri_is_taken_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "50%20 ?mode=memory#x.db"
    open_database(path).close()
    assert path.stat().st_size > 0
