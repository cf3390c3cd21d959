"""One process a database, whatever name leads to it, and nothing is acknowledged that went into a file that is gone."""

import asyncio
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from grpc.aio import AioRpcError

from common.exit_codes import Exit
from gateway.restore import restore
from gateway.store.port import DatabaseUnusableError
from gateway.store.sqlite.backup import back_up
from gateway.store.sqlite.engine import open_database
from gateway.store.sqlite.file_lock import FileLock
from tests.faults.disks import MakeName, every_other_name
from tests.gateway.support.grpc_api import RefusedCallError, connected
from tests.gateway.support.process import GatewayProcess, gateway_process, refused_start


@every_other_name
async def test_another_name_of_the_file_itself_is_no_way_past_the_lock(
    process: GatewayProcess, tmp_path: Path, make_name: MakeName
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with make_name(tmp_path / "gateway.db", other / "gateway.db"):
        code, said = await refused_start(other)
    assert code == 3
    assert "another gateway process has it open; stop that one first" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    "way",
    [
        "the lock is deleted",
        *(pytest.param(way, marks=pytest.mark.extended) for way in ("a symbolic link", "a linked folder")),
    ],
)
async def test_no_other_way_leads_past_it(process: GatewayProcess, tmp_path: Path, way: str) -> None:
    folder = tmp_path
    if way == "the lock is deleted":
        (tmp_path / "gateway.db.lock").unlink()
    elif way == "a symbolic link":
        folder = tmp_path / "other"
        folder.mkdir()
        (folder / "gateway.db").symlink_to(tmp_path / "gateway.db")
    else:
        folder = tmp_path / "folder"
        folder.symlink_to(tmp_path)
    code, said = await refused_start(folder)
    assert code == 3
    assert "another gateway process has it open" in said


@every_other_name
def test_no_restore_over_another_name_of_a_database_in_use(tmp_path: Path, make_name: MakeName) -> None:
    path, other = tmp_path / "gateway.db", tmp_path / "other.db"
    database = open_database(path)
    back_up(path, tmp_path / "b", "b.db", lambda: False)
    with make_name(path, other), pytest.raises(DatabaseUnusableError, match="another gateway process has it open"):
        restore(tmp_path / "b/b.db", other)
    database.close()


def test_a_restore_to_where_nothing_is_makes_nothing_before_it_counts(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "gateway.db", create=False)
    assert [entry.name for entry in tmp_path.iterdir()] == ["gateway.db.lock"]
    lock.close()


async def test_the_lock_leaves_those_of_sqlite_alone(tmp_path: Path) -> None:
    """Another program that uses SQLite as it should still waits for our transactions."""
    path = tmp_path / "gateway.db"
    database = open_database(path)
    other = (
        "import sqlite3, sys; connection = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)\n"
        "try: connection.execute('BEGIN IMMEDIATE'); print('begun')\n"
        "except sqlite3.OperationalError as error: print(error)"
    )

    async def others_begin() -> str:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-S", "-c", other, path, stdout=asyncio.subprocess.PIPE
        )
        return (await process.communicate())[0].decode().strip()

    with closing(sqlite3.connect(path)):
        pass  # SQLite itself knows of its other connections in this process; the lock's descriptor is not closed
    database.writing.execute("BEGIN IMMEDIATE")
    assert await others_begin() == "database is locked"
    database.writing.execute("ROLLBACK")
    assert await others_begin() == "begun"
    database.close()


@pytest.mark.parametrize("way", [pytest.param("deleted", marks=pytest.mark.extended), "replaced"])
async def test_what_went_into_a_file_that_is_gone_is_not_acknowledged(tmp_path: Path, way: str) -> None:
    async with gateway_process(tmp_path) as gateway, connected(gateway.port) as api:
        await api.submit("po-1")
        path = tmp_path / "gateway.db"
        if way == "replaced":
            shutil.copy(path, tmp_path / "copy.db")
            (tmp_path / "copy.db").rename(path)
        else:
            path.unlink()
        with pytest.raises((RefusedCallError, AioRpcError)):
            await api.submit("po-2")
        assert await gateway.wait() == Exit.DATABASE, "a start by itself would serve an empty database"
        assert f"{path}: the database file was deleted or replaced while the gateway ran" in gateway.log


def test_a_second_name_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "gateway.db"
    open_database(path).close()
    assert "has a second name" not in caplog.text
    (tmp_path / "link.db").hardlink_to(path)
    open_database(path).close()
    assert "has a second name (a hard link)" in caplog.text
