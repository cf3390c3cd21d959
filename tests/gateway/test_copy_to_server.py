"""Moving a file's content to a server: everything, once, and never two that are served."""

import asyncio
import sqlite3
import sys
import time as time_module
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from common.exit_codes import Exit
from gateway.domain.refusals import Reason
from gateway.domain.states import OrderState, TaskStatus
from gateway.restore import restore
from gateway.store.port import DatabaseUnusableError, StoreUnavailableError
from gateway.store.sqlite.engine import open_database
from gateway.store.sqlite.schema import migrate, migrations
from tests.gateway.cli.command import Commands
from tests.gateway.support.full_file import LARGE, fill_file
from tests.gateway.support.grpc_api import RefusedCallError
from tests.gateway.support.in_process import running_gateway
from tests.gateway.support.manual_time import ManualTime

pytestmark = [pytest.mark.needs("postgresql"), pytest.mark.sqlite]


@pytest.fixture
def empty() -> Iterator[str]:
    from tests.gateway.support import postgres  # noqa: PLC0415 - needs the driver

    url = postgres.new_database("template1")
    yield url
    postgres.drop_database(url)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "gateway.db"
    fill_file(path)
    return path


def copy(path: Path, url: str, time: ManualTime | None = None) -> Any:
    from gateway.copy_to_server import copy as copy_all  # noqa: PLC0415 - needs the driver

    return copy_all(path, url, machine=None if time is None else time.machine())


def asked(url: str, sql: str, *parameters: Any) -> list[Any]:
    from tests.gateway.support import postgres  # noqa: PLC0415 - needs the driver

    return postgres.server().execute(sql, postgres.name_of(url), *parameters)


def content_of(path: Path) -> dict[str, set[tuple[Any, ...]]]:
    """The rows of each table."""
    with closing(sqlite3.connect(path)) as connection:
        names = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'moved'"
        ).fetchall()
        return {name: set(connection.execute(f"SELECT * FROM {name}")) for (name,) in names}  # noqa: S608 - our own


def is_served(path: Path) -> bool:
    try:
        open_database(path).close()
    except DatabaseUnusableError as error:
        assert "this file is not served any more" in str(error)  # noqa: PT017 - the other way is no failure
        return False
    return True


def left_alone(url: str) -> None:
    """Wait until nobody else is connected."""
    others = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    while asked(url, others):
        time_module.sleep(0.02)


def rows_at(url: str) -> int:
    """How many tasks are there; 0 also where there is no table."""
    if not asked(url, "SELECT 1 FROM pg_tables WHERE tablename = 'tasks'"):
        return 0
    return int(asked(url, "SELECT count(*) FROM tasks")[0][0])


def test_every_row_of_every_table_comes_along(file: Path, empty: str) -> None:
    before = content_of(file)
    assert all(before.values()), [name for name, rows in before.items() if not rows]
    done = copy(file, empty)
    assert {name: held.rows for name, held in done.tables.items()} == {name: len(rows) for name, rows in before.items()}
    with closing(sqlite3.connect(file)) as connection:
        for name, rows in before.items():
            columns = ", ".join(row[1] for row in connection.execute(f"PRAGMA table_info({name})"))
            assert set(asked(empty, f"SELECT {columns} FROM {name}")) == rows, name  # noqa: S608 - our own
    assert content_of(file) == before


def test_numbers_go_on_and_rules_hold_afterwards(file: Path, empty: str) -> None:
    copy(file, empty)
    columns = "query_id, site, kind, params_json, status, lifetime_ends_us, created_at, updated_at"
    values = "'q-9', 'rakuten', 'order_list', '{}', 'queued', 1, 'now', 'now'"
    (row,) = asked(empty, f"INSERT INTO account_queries ({columns}) VALUES ({values}) RETURNING row")  # noqa: S608
    assert row == (4,), "the number of the query that is gone is not given again"
    assert asked(empty, "SELECT queued FROM query_lanes WHERE account = ''") == [(2,)], "triggers fire"
    assert asked(empty, "SELECT head_row, active_row FROM lanes WHERE account = 'a0'") == [(4, 1)]
    import psycopg  # noqa: PLC0415

    for refused in ("UPDATE events SET reason = ''", "DELETE FROM tasks", "INSERT INTO query_results VALUES ('q', '')"):
        with pytest.raises(psycopg.IntegrityError):
            asked(empty, refused)


@pytest.mark.parametrize("boots", [False, True])
async def test_leases_and_permits_hold_at_the_gateway_on_the_server(
    empty: str, tmp_path: Path, time: ManualTime, boots: bool
) -> None:
    folder = tmp_path / "a"
    async with running_gateway(folder, time) as before:
        lease = await before.api.take()
        await before.api.submit("po-2")
        permit = await before.api.permit(lease)
    if boots:
        time.reboot(timedelta(seconds=5))
    time.advance(5)
    await asyncio.to_thread(copy, folder / "gateway.db", empty, time)
    assert not is_served(folder / "gateway.db")
    time.advance(5)
    async with running_gateway(folder, time, gateway_db_url=empty) as after:
        assert await after.api.lease("w2") is None, "the slot is taken"
        if boots:  # as after any boot, it counts as run out
            with pytest.raises(RefusedCallError) as told:
                await after.api.permit(lease)
            assert told.value.reason is Reason.PERMIT_EXPIRED
        else:
            again = await after.api.permit(lease)
            assert again.valid_for.ToTimedelta() == permit.valid_for.ToTimedelta() - timedelta(seconds=10)
        await after.api.renew(lease)
        await after.api.report(lease, OrderState.PAID, 2, terminal=True)
        assert await after.api.status() is TaskStatus.SUCCEEDED
        second = await after.api.lease("w2")
        assert second is not None, "dispatch is not paused"
        assert second.task_id == "po-2"


@pytest.mark.parametrize("boots", [False, True])
async def test_a_lease_that_runs_out_on_the_way_is_stale(
    empty: str, tmp_path: Path, time: ManualTime, boots: bool
) -> None:
    folder = tmp_path / "a"
    async with running_gateway(folder, time) as before:
        lease = await before.api.take()
    if boots:
        time.reboot(timedelta(seconds=1))
    await asyncio.to_thread(copy, folder / "gateway.db", empty, time)
    time.advance(301)
    async with running_gateway(folder, time, gateway_db_url=empty) as after:
        with pytest.raises(RefusedCallError) as told:
            await after.api.renew(lease)
        assert told.value.reason is Reason.LEASE_INVALID
        assert await after.api.lease("w2") is None, "whoever asks for work makes it visible"
        assert await after.api.status() is TaskStatus.STALE


def test_a_target_that_is_not_empty_is_refused(file: Path, empty: str, tmp_path: Path) -> None:
    copy(file, empty)
    other = tmp_path / "other.db"
    fill_file(other)
    with pytest.raises(DatabaseUnusableError, match="it is not empty: store_groups has rows"):
        copy(other, empty)
    asked(empty, "DELETE FROM store_groups")
    with pytest.raises(DatabaseUnusableError, match="it is not empty: "):
        copy(other, empty)
    assert is_served(other)


def test_a_file_that_was_moved_is_moved_nowhere_else(file: Path, empty: str) -> None:
    from tests.gateway.support import postgres  # noqa: PLC0415 - needs the driver

    copy(file, empty)
    assert copy(file, empty).tables is None, "it is told that it was done"
    another = postgres.new_database("template1")
    try:
        with pytest.raises(DatabaseUnusableError, match="was moved to another database"):
            copy(file, another)
        assert rows_at(another) == 0
    finally:
        postgres.drop_database(another)


def test_a_file_in_use_of_another_version_or_not_there_is_refused(file: Path, empty: str, tmp_path: Path) -> None:
    with (
        closing(open_database(file)),
        pytest.raises(DatabaseUnusableError, match="another gateway process has it open"),
    ):
        copy(file, empty)
    older = tmp_path / "older.db"
    with closing(sqlite3.connect(older, isolation_level=None)) as connection:
        migrate(connection, migrations()[:-1])
    with pytest.raises(DatabaseUnusableError, match="run `order-gateway migrate` on it first"):
        copy(older, empty)
    with pytest.raises(DatabaseUnusableError, match="there is no"):
        copy(tmp_path / "none.db", empty)
    assert not (tmp_path / "none.db").exists()
    assert rows_at(empty) == 0


def test_a_text_that_the_server_cannot_hold_leaves_both_as_they_were(file: Path, empty: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("INSERT INTO restores (restored_at, reason) VALUES ('now', ?)", ("a\0b",))
    with pytest.raises(DatabaseUnusableError, match="NUL"):
        copy(file, empty)
    assert is_served(file)
    assert rows_at(empty) == 0


def test_what_is_read_back_must_be_what_was_read(file: Path, empty: str) -> None:
    from gateway.store.postgres import schema  # noqa: PLC0415 - needs the driver
    from gateway.store.postgres.engine import connected  # noqa: PLC0415

    with connected(empty) as (_, connection):
        schema.migrate(connection)
        connection.execute('ALTER TABLE restores ALTER COLUMN reason TYPE char(300) COLLATE "C"')
    with pytest.raises(DatabaseUnusableError, match="what was read back differs in restores; nothing was changed"):
        copy(file, empty)
    assert is_served(file)
    assert rows_at(empty) == 0


KILLED = {
    "while it fills": ("gateway.store.postgres.filling", "set_sequences", True),
    "when the file is marked": ("gateway.store.sqlite.moved", "mark", True),
    "before the answer to the COMMIT": ("gateway.store.postgres.moving", "_take_over", True),
    "after the COMMIT": ("gateway.store.postgres.moving", "take_over", False),
}
SCRIPT = """
import importlib, os, signal, sys
from pathlib import Path
import gateway.copy_to_server as main
module, name, inside = sys.argv[3], sys.argv[4], sys.argv[5] == "True"
module = importlib.import_module(module)
run = getattr(module, name)
def killed(*arguments, **more):
    result = run(*arguments, **more)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(module, name, killed)
if not inside:
    main.take_over = killed
main.copy(Path(sys.argv[1]), sys.argv[2])
"""


@pytest.mark.parametrize("moment", KILLED)
async def test_killed_at_any_moment_it_leaves_one_that_is_served_and_can_be_run_again(
    file: Path, empty: str, moment: str
) -> None:
    before = content_of(file)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SCRIPT, str(file), empty, *map(str, KILLED[moment])
    )
    assert await asyncio.wait_for(process.wait(), 60) == -9
    committed = moment == "after the COMMIT"
    in_doubt = moment == "before the answer to the COMMIT"
    await asyncio.to_thread(left_alone, empty)
    assert (rows_at(empty) > 0) == committed
    assert is_served(file) == (not committed and not in_doubt)
    done = copy(file, empty)
    assert (done.tables is None) == committed
    assert rows_at(empty) == len(before["tasks"])
    assert not is_served(file)
    assert content_of(file) == before


def test_a_refused_commit_gives_the_file_back_and_a_lost_answer_does_not(
    file: Path, empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg  # noqa: PLC0415

    from gateway.store.postgres import moving  # noqa: PLC0415

    take_over = moving._take_over

    def refused(source: Any, target: Any, *more: Any) -> Any:
        take_over(source, target, *more)
        target.execute("SELECT 1 / 0")

    monkeypatch.setattr(moving, "_take_over", refused)
    with pytest.raises(DatabaseUnusableError, match="division by zero"):
        copy(file, empty)
    assert is_served(file)

    def lost(source: Any, target: psycopg.Connection, *more: Any) -> Any:
        take_over(source, target, *more)
        asked(empty, "SELECT pg_terminate_backend(%s)", target.info.backend_pid)

    monkeypatch.setattr(moving, "_take_over", lost)
    with pytest.raises(StoreUnavailableError, match="run the same command again"):
        copy(file, empty)
    assert not is_served(file)
    monkeypatch.undo()
    assert copy(file, empty).tables is not None


def test_a_file_that_was_moved_is_a_backup_like_any_other(file: Path, empty: str, tmp_path: Path) -> None:
    copy(file, empty)
    back = tmp_path / "back" / "gateway.db"
    back.parent.mkdir()
    assert restore(file, back).open_tasks == 40
    assert is_served(back)
    with closing(sqlite3.connect(back)) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'moved'").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM pauses WHERE site = ''").fetchone() == (1,)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    monkeypatch.chdir(tmp_path)
    return Commands({"RAKUTEN_GATEWAY_DB_PATH": str(tmp_path / "gateway.db")})


async def test_the_command_tells_what_it_copied(here: Commands, file: Path, empty: str) -> None:
    done = (await here.ok("copy", "--from", f"sqlite:{file}", "--to", empty, "--json")).json
    assert done["tables"]["tasks"]["rows"] == 40
    assert len(done["tables"]["tasks"]["sha256"]) == 64
    environment = replace(here, environment={**here.environment, "RAKUTEN_GATEWAY_DB_URL": empty})
    assert "has everything already" in " ".join((await environment.ok("copy")).out.split())


async def test_the_command_takes_no_password_where_everybody_sees_it(here: Commands, file: Path) -> None:
    for url in ("postgresql://gateway:hidden@db/orders", "postgresql://gateway@db/orders?password=hidden"):
        ran = await here.run("copy", "--to", url)
        assert ran.code == Exit.USAGE
        assert "PGPASSWORD" in ran.err
        assert "hidden" not in ran.err + ran.out


@pytest.mark.parametrize(
    "words", [("--from", "gateway.db"), ("--from", "sqlite://gateway.db"), ("--to", "mysql://a"), ()]
)
async def test_the_command_says_what_it_needs(here: Commands, file: Path, words: tuple[str, ...]) -> None:
    assert (await here.run("copy", *words)).code == Exit.USAGE
    assert is_served(file)
    assert LARGE
