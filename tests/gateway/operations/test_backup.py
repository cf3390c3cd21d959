"""Online backups under load, verified."""

import asyncio
import json
import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.operations import BackupFacts
from gateway.domain.refusals import Reason
from gateway.restore import restore
from gateway.store.port import DatabaseUnusableError, StoreUnavailableError
from gateway.store.sqlite import backup as backups_of_sqlite
from gateway.store.sqlite.backup import BackupInterruptedError, back_up, inspect
from gateway.store.sqlite.online_backups import OnlineBackups
from tests.gateway.operations.backups import never, save
from tests.gateway.support.book import Book, reason, refused
from tests.gateway.support.dump import dump
from tests.gateway.support.grpc_api import RefusedCallError
from tests.gateway.support.in_process import running_gateway

pytestmark = pytest.mark.sqlite


def read(path: Path, sql: str) -> Any:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchone()[0]


async def test_a_backup_under_full_load_holds_one_moment(tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    async with running_gateway(tmp_path, backup_dir=folder) as gateway:
        stop, under_way = asyncio.Event(), asyncio.Event()

        async def load(number: int) -> int:
            filed = 0
            while not stop.is_set():
                await gateway.api.submit(f"po-{number}-{filed}", json.dumps({"pad": "x" * 2_000}))
                filed += 1
                if filed == 40:
                    under_way.set()
            return filed

        callers = [asyncio.create_task(load(number)) for number in range(8)]
        await asyncio.wait_for(under_way.wait(), 60)
        before = gateway.rows("SELECT count(*) AS tasks, max(row) AS last FROM tasks")[0]
        facts = await gateway.api.backup()
        after = gateway.rows("SELECT count(*) AS tasks FROM tasks")[0]
        stop.set()
        filed = sum(await asyncio.gather(*callers))
        assert before["tasks"] <= facts.task_count <= after["tasks"] <= filed

    path = folder / facts.file_name
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [entry.name for entry in folder.iterdir()] == [facts.file_name], "one plain file, nothing left beside it"
    assert path.stat().st_size == facts.size_bytes
    assert inspect(path).sha256 == facts.sha256
    assert read(path, "PRAGMA integrity_check") == "ok"
    assert read(path, "SELECT count(*) FROM tasks") == facts.task_count
    assert read(path, "SELECT max(sequence) FROM events") == facts.last_event_sequence
    assert read(path, "SELECT count(*) FROM events WHERE kind = 'submit'") == facts.task_count, "one moment, not two"

    # Put back where there was none: the same counts, the same last event before what the restore itself adds.
    target = tmp_path / "new" / "gateway.db"
    done = restore(path, target)
    assert (done.facts.task_count, done.facts.last_event_sequence) == (facts.task_count, facts.last_event_sequence)
    assert done.set_aside is None
    assert read(target, "PRAGMA integrity_check") == "ok"
    assert read(target, "SELECT count(*) FROM tasks") == facts.task_count
    old, new = dump(path), dump(target)
    assert new["reports"] == old["reports"]
    assert new["events"][: len(old["events"])] == old["events"]
    assert {event[3] for event in new["events"][len(old["events"]) :]} == {"restore"}


def test_what_is_written_during_the_copy_neither_shows_nor_begins_it_anew(
    tmp_path: Path, book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.store.sqlite.backup._PAGES_A_STEP", 8)
    for number in range(100):
        book.submit(f"po-{number}", intent_json=json.dumps({"pad": "x" * 4_000}))
    written = 0

    def meanwhile() -> bool:
        nonlocal written
        if written < 20:
            written += 1
            book.submit(f"late-{written}")
        return False

    facts = back_up(book.path, tmp_path / "b", "b.db", meanwhile)
    assert written == 20
    assert facts.task_count == 100


async def test_one_at_a_time_and_given_up_when_the_gateway_stops(
    tmp_path: Path, book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    book.submit()
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()
    backups = OnlineBackups(book.path, tmp_path / "b", lambda: "2026-11-29T15:58:22.123456Z")

    def slow(*args: Any) -> BackupFacts:
        loop.call_soon_threadsafe(begun.set)
        stopping = args[3]
        while not stopping():
            pass
        return back_up(*args)

    monkeypatch.setattr("gateway.store.sqlite.online_backups.back_up", slow)
    first = asyncio.create_task(backups.create())
    await asyncio.wait_for(begun.wait(), 60)
    assert reason(await backups.create()) is Reason.TOO_MANY
    await asyncio.wait_for(backups.close(), 60)
    assert reason(await first) is Reason.SHUTTING_DOWN
    assert reason(await backups.create()) is Reason.SHUTTING_DOWN
    assert list((tmp_path / "b").iterdir()) == []


async def test_names_are_never_used_twice(tmp_path: Path, book: Book) -> None:
    backups = OnlineBackups(book.path, tmp_path / "b", lambda: "2026-11-29T15:58:22.123456Z")
    names = []
    for _ in range(3):
        made = await backups.create()
        assert isinstance(made, BackupFacts)
        names.append(made.file_name)
    stem = "gateway-20261129T155822123456Z"
    assert names == [f"{stem}.db", f"{stem}-2.db", f"{stem}-3.db"]


async def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path, book: Book) -> None:
    (tmp_path / "file").write_text("")
    backups = OnlineBackups(book.path, tmp_path / "file", lambda: "2026-11-29T15:58:22.123456Z")
    refusal = refused(await backups.create())
    assert refusal.reason is Reason.STORE_UNAVAILABLE
    assert str(tmp_path / "file") in refusal.message


def test_a_backup_that_is_interrupted_leaves_nothing(tmp_path: Path, book: Book) -> None:
    book.submit()
    with pytest.raises(BackupInterruptedError):
        back_up(book.path, tmp_path / "b", "b.db", lambda: True)
    assert list((tmp_path / "b").iterdir()) == []


def test_what_is_no_backup_is_refused(tmp_path: Path, book: Book) -> None:
    for number in range(40):
        book.submit(f"po-{number}", intent_json=json.dumps({"pad": "x" * 4_000}))
    backup = save(book, tmp_path / "b")
    whole = backup.read_bytes()
    middle = len(whole) // 2
    damaged = {
        "cut.db": whole[: middle + 100],
        "holed.db": whole[:middle] + b"\xff" * 8_192 + whole[middle + 8_192 :],
        "text.db": b"not a database at all, but long enough to be taken for one" * 100,
        "empty.db": b"",
    }
    for name, data in damaged.items():
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(DatabaseUnusableError):
            inspect(path)
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE t (x)")
    with pytest.raises(DatabaseUnusableError, match="no backup of a gateway"):
        inspect(other)
    newer = tmp_path / "newer.db"
    newer.write_bytes(whole)
    with closing(sqlite3.connect(newer)) as connection:
        connection.execute("PRAGMA user_version = 9999")
    with pytest.raises(DatabaseUnusableError, match="9999"):
        inspect(newer)
    with pytest.raises(OSError, match=r"missing\.db"):
        inspect(tmp_path / "missing.db")
    assert inspect(backup).task_count == 40


def test_no_room_is_said_and_leaves_nothing(tmp_path: Path, book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StoreUnavailableError, match="No space left"):
        back_up(book.path, tmp_path / "b", "b.db", never)
    assert list((tmp_path / "b").iterdir()) == []


async def test_the_gateway_does_not_wait_for_a_backup_when_it_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    def endless(*args: Any) -> BackupFacts:
        loop.call_soon_threadsafe(begun.set)
        while not args[3]():
            pass
        raise BackupInterruptedError

    monkeypatch.setattr("gateway.store.sqlite.online_backups.back_up", endless)
    async with running_gateway(tmp_path) as gateway:
        asked = asyncio.create_task(gateway.api.backup())
        await asyncio.wait_for(begun.wait(), 60)
        gateway.stop.set()
        await asyncio.wait_for(gateway.ended, 60)
        with pytest.raises(RefusedCallError) as refused_call:
            await asked
    assert refused_call.value.reason is Reason.SHUTTING_DOWN


def test_a_copy_that_is_not_what_the_database_held_is_no_backup(
    tmp_path: Path, book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    book.submit()
    honest = backups_of_sqlite._one_file

    def lose_an_event(path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("DROP TRIGGER events_are_never_deleted")
            connection.execute("DELETE FROM events")
        honest(path)

    monkeypatch.setattr(backups_of_sqlite, "_one_file", lose_an_event)
    with pytest.raises(StoreUnavailableError, match="the copy is not what the database held"):
        back_up(book.path, tmp_path / "b", "b.db", never)
    assert list((tmp_path / "b").iterdir()) == []


def freelist_that_is_wrong(path: Path) -> None:
    """Every row can be read, and counted; only a look at the whole file finds it."""
    with path.open("r+b") as file:
        file.seek(36)
        file.write((5).to_bytes(4, "big"))


def reference_to_nothing(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "INSERT INTO alert_deliveries (alert_id, edge, created_us, due_us) VALUES (9, 'raised', 0, 0)"
        )


@pytest.mark.parametrize(
    ("harm", "said"), [(freelist_that_is_wrong, "it is damaged: "), (reference_to_nothing, "a row refers to another")]
)
def test_damage_that_only_a_look_at_everything_finds_is_found(
    tmp_path: Path, book: Book, harm: Callable[[Path], None], said: str
) -> None:
    book.submit()
    backup = save(book, tmp_path / "b")
    assert inspect(backup).task_count == 1
    harm(backup)
    assert read(backup, "SELECT count(*) FROM tasks") == 1
    with pytest.raises(DatabaseUnusableError, match=said):
        inspect(backup)
    before = dump(book.path)
    book.database.close()
    with pytest.raises(DatabaseUnusableError, match=said):
        restore(backup, book.path, machine=book.time.machine())
    book.restart_from_closed()
    assert dump(book.path)["tasks"] == before["tasks"]


def test_backup_and_restored_file_are_flushed_and_their_folders_after_the_name(
    tmp_path: Path, book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    fsync, rename = os.fsync, Path.rename

    def seen_fsync(descriptor: int) -> None:
        done.append("flush " + Path(f"/proc/self/fd/{descriptor}").readlink().name)
        fsync(descriptor)

    def seen_rename(source: Path, target: Path) -> Any:
        done.append(f"name {target.name}")
        return rename(source, target)

    book.submit()
    with monkeypatch.context() as watched:
        watched.setattr(os, "fsync", seen_fsync)
        watched.setattr(Path, "rename", seen_rename)
        backup = save(book, tmp_path / "b")
        assert done == ["flush .b.db.partial", "name b.db", "flush b"]
        done.clear()
        book.run(book.clock.save)
        book.database.close()
        restore(backup, book.path, machine=book.time.machine())
        assert done == [f"flush {book.path.name}.restoring", f"name {book.path.name}", f"flush {book.path.parent.name}"]
    book.restart_from_closed()
