"""The journal: what can be written once, what never changes, and who may open it."""

import asyncio
import fcntl
import hashlib
import os
import shutil
import sqlite3
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from ordergateway.v1 import order_leases_pb2 as pb

from tests.faults.disks import MakeName, every_other_name
from tests.worker.virtual import CountedEntropy, ManualClock
from worker.gateway.wire import leased_task
from worker.journal.claims import AlreadyRecordedError
from worker.journal.connection import connect_on_thread
from worker.journal.database import Connection
from worker.journal.errors import JournalError
from worker.journal.journal import Journal
from worker.journal.lock import is_in_use
from worker.journal.records import EvidenceFile, JournalEntry, OrderStatus, Outcome, ReclaimStatus
from worker.orders.state import OrderState


def lease(task_id: str = "po-1", count: int = 1) -> pb.Lease:
    made = pb.Lease(
        task_id=task_id, site="sandbox", intent_json="{}", lease_count=count, lease_token=f"{task_id}/{count}"
    )
    made.task_created_at.FromJsonString("2026-07-27T08:00:00Z")
    return made


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[Journal]:
    journal = await Journal.open(path, clock=ManualClock(), new_id=CountedEntropy().token)
    try:
        yield journal
    finally:
        await journal.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "trading.db"


@pytest.fixture
async def journal(path: Path) -> AsyncIterator[Journal]:
    async with opened(path) as journal:
        yield journal


def execute(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(sql)


async def test_its_name_is_made_once(path: Path) -> None:
    async with opened(path) as first:
        name = first.journal_id
    other = CountedEntropy()
    other.count = 77
    again = await Journal.open(path, clock=ManualClock(), new_id=other.token)
    assert again.journal_id == name
    await again.close()


async def test_its_files_are_the_owners_alone_and_every_commit_is_flushed(path: Path, journal: Journal) -> None:
    await journal.orders.take_lease(leased_task(lease()))
    assert {file.name: oct(file.stat().st_mode & 0o777) for file in path.parent.iterdir()} == {
        "trading.db": "0o600",
        "trading.db-journal": "0o600",
        "trading.db.lock": "0o600",
    }
    pragmas = {
        name: (await journal._database.rows(f"PRAGMA {name}"))[0][0]
        for name in ("journal_mode", "synchronous", "foreign_keys")
    }
    assert pragmas == {"journal_mode": "persist", "synchronous": 2, "foreign_keys": 1}


def _overwrite(path: Path, start: int, size: int) -> None:
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"\xff" * size)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    "harm",
    [
        lambda path: _overwrite(path, 0, 16),
        lambda path: _overwrite(path, 2 * 4096, 4096),
        lambda path: os.truncate(path, path.stat().st_size // 2),
    ],
    ids=["its header", "a page", "cut in half"],
)
async def test_a_damaged_journal_is_refused_and_kept(path: Path, harm: Callable[[Path], None]) -> None:
    async with opened(path) as journal:
        await journal.orders.take_lease(leased_task(lease()))
        await journal.claims.record_click("po-1", "po-1/1")
    harm(path)
    before = _digest(path)
    with pytest.raises(JournalError, match="it is damaged"):
        await Journal.open(path, clock=ManualClock(), new_id=CountedEntropy().token)
    assert _digest(path) == before
    assert not is_in_use(path)


async def test_a_click_record_is_in_the_file_itself(path: Path, tmp_path: Path) -> None:
    async with opened(path) as journal:
        await journal.orders.take_lease(leased_task(lease()))
        await journal.claims.record_click("po-1", "po-1/1")
        copy = Path(shutil.copy(path, tmp_path / "copy.db"))
    with closing(sqlite3.connect(copy)) as alone:
        assert alone.execute("SELECT task_id FROM clicks").fetchall() == [("po-1",)]


async def test_a_journal_that_was_kept_with_a_log_is_taken_over(path: Path) -> None:
    async with opened(path) as journal:
        await journal.orders.take_lease(leased_task(lease()))
    with closing(sqlite3.connect(path)) as older:
        older.execute("PRAGMA journal_mode = WAL")
        older.execute("INSERT INTO clicks (task_id, lease_token, recorded_at) VALUES ('po-1', 'po-1/1', 'now')")
        older.commit()
    async with opened(path) as again:
        assert await again.claims.has_click("po-1")
        assert (await again._database.rows("PRAGMA journal_mode"))[0][0] == "persist"


async def test_a_second_process_on_the_same_journal_is_refused_in_one_line(path: Path, journal: Journal) -> None:
    assert is_in_use(path)
    with pytest.raises(JournalError, match=f"another worker process .pid {os.getpid()}. is using the journal"):
        await Journal.open(path, clock=ManualClock(), new_id=CountedEntropy().token)
    beside = await Journal.open_beside(path, clock=ManualClock())
    assert beside.journal_id == journal.journal_id
    await beside.close()


async def test_another_name_of_the_journal_leads_to_the_same_lock(path: Path, journal: Journal) -> None:
    names = path.with_name("link.db"), path.parent / "folder" / path.name
    names[0].symlink_to(path)
    names[1].parent.symlink_to(path.parent)
    for name in names:
        assert is_in_use(name)
        with pytest.raises(JournalError, match="is using the journal"):
            await Journal.open(name, clock=ManualClock(), new_id=CountedEntropy().token)


@every_other_name
async def test_another_name_of_the_file_itself_is_no_way_past_the_lock(
    path: Path, journal: Journal, tmp_path: Path, make_name: MakeName
) -> None:
    other = tmp_path / "other" / "renamed.db"
    other.parent.mkdir()
    with make_name(path, other):
        assert is_in_use(other)
        with pytest.raises(JournalError, match=r"another worker process.* is using the journal"):
            await Journal.open(other, clock=ManualClock(), new_id=CountedEntropy().token)


@pytest.mark.parametrize("mode", ["PERSIST", "WAL"])
async def test_the_lock_leaves_those_of_sqlite_alone(path: Path, journal: Journal, mode: str) -> None:
    """Another program that uses SQLite as it should still waits for our transactions, and we for its."""
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

    await journal._database.rows(f"PRAGMA journal_mode = {mode}")

    async def look(connection: Connection) -> str:
        await connection.execute("UPDATE orders SET detail = detail")
        return await others_begin()

    assert await journal._database.write(look) == "database is locked"
    assert await others_begin() == "begun"


async def test_a_worker_whose_journal_was_replaced_begins_nothing_more(path: Path, journal: Journal) -> None:
    await journal.orders.take_lease(leased_task(lease()))
    path.rename(path.with_name("moved.db"))  # noqa: ASYNC240 -- a test has nothing else to do
    with pytest.raises(JournalError, match=r"the journal .*trading.db was deleted or replaced"):
        await journal.claims.record_click("po-1", "po-1/1")
    shutil.copy(path.with_name("moved.db"), path)
    with pytest.raises(JournalError, match=r"the journal .*trading.db was deleted or replaced"):
        await journal.claims.record_click("po-1", "po-1/1")
    assert not await journal.claims.has_click("po-1")


async def test_a_second_name_is_told(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with opened(path):
        assert "has a second name" not in caplog.text
    path.with_name("link.db").hardlink_to(path)
    async with opened(path):
        assert "has a second name (a hard link)" in caplog.text


async def test_a_worker_whose_lock_was_deleted_begins_nothing_more(path: Path, journal: Journal) -> None:
    await journal.orders.take_lease(leased_task(lease()))
    await journal.claims.record_click("po-1", "po-1/1")
    lock = path.with_name(path.name + ".lock")
    lock.unlink()
    with pytest.raises(JournalError, match="was deleted or replaced"):
        await journal.claims.record_payment("po-1", "1")
    for begin in (
        journal.orders.take_lease(leased_task(lease("po-2"))),
        journal.claims.record_click("po-1", "po-1/1"),
        journal.claims.record_payment("po-1", "1"),
    ):
        with pytest.raises(JournalError, match="was deleted or replaced"):
            await begin
    await journal.orders.record("po-1", JournalEntry("ordered", OrderState.ORDERED))  # what it did is written down
    with pytest.raises(JournalError, match="another worker process is using the journal"):
        await Journal.open(path, clock=ManualClock(), new_id=CountedEntropy().token)


async def test_a_lock_that_is_deleted_while_it_is_taken_is_no_lock(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = path.with_name(path.name + ".lock")
    flock, deletions = fcntl.flock, iter([lock])

    def delete_first(descriptor: int, operation: int) -> None:
        for file in deletions:
            file.unlink()
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", delete_first)
    async with opened(path) as journal:
        assert lock.exists()
        await journal.orders.take_lease(leased_task(lease()))


async def test_the_lock_goes_with_its_process(path: Path) -> None:
    script = (
        "import asyncio, os, sys, pathlib; from worker.clock import *; from worker.journal.journal import Journal\n"
        "async def main():\n"
        "    await Journal.open(pathlib.Path(sys.argv[1]), clock=SystemClock(), new_id=SystemEntropy().token)\n"
        "    print('locked', flush=True); await asyncio.Event().wait()\n"
        "asyncio.run(main())"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, str(path), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"locked\n"
        with pytest.raises(JournalError):
            await Journal.open(path, clock=ManualClock(), new_id=CountedEntropy().token)
    finally:
        process.kill()
        await process.communicate()
    async with opened(path):
        assert is_in_use(path)
    assert not is_in_use(path)


async def test_a_journal_of_a_newer_version_is_refused(path: Path) -> None:
    async with opened(path):
        pass
    execute(path, "PRAGMA user_version = 99")
    with pytest.raises(JournalError, match="newer version"):
        await Journal.open(path, clock=ManualClock(), new_id=CountedEntropy().token)


@pytest.fixture
def no_journal(path: Path) -> Path:
    path.parent.mkdir()
    path.write_text("this is not a database, however long it may be" * 100)
    return path


async def test_what_is_no_journal_is_refused(no_journal: Path) -> None:
    path = no_journal
    with pytest.raises(JournalError, match="cannot be used as a journal"):
        await Journal.open(path, clock=ManualClock(), new_id=CountedEntropy().token)
    with pytest.raises(JournalError, match="there is no journal"):
        await Journal.open_beside(path.with_name("other.db"), clock=ManualClock())


async def test_a_lease_is_taken_once_by_its_token(journal: Journal) -> None:
    first = await journal.orders.take_lease(leased_task(lease()))
    assert first is not None
    assert not first.known
    assert await journal.orders.take_lease(leased_task(lease())) is None
    again = await journal.orders.take_lease(leased_task(lease(count=2)))
    assert again is not None
    assert again.known
    assert again.order.lease_token == "po-1/2"


async def test_the_click_can_be_recorded_once_by_anyone(path: Path, journal: Journal) -> None:
    await journal.orders.take_lease(leased_task(lease()))
    claims = await asyncio.gather(
        *(journal.claims.record_click("po-1", "po-1/1") for _ in range(20)), return_exceptions=True
    )
    assert sorted(type(claim).__name__ for claim in claims) == ["AlreadyRecordedError"] * 19 + ["NoneType"]
    with pytest.raises(sqlite3.IntegrityError):
        execute(path, "INSERT INTO clicks VALUES ('po-1', 'po-1/1', 'now')")
    assert await journal.claims.has_click("po-1")
    assert not await journal.claims.has_payment("po-1")


async def test_the_payment_can_be_recorded_once_and_only_after_a_click(journal: Journal) -> None:
    await journal.orders.take_lease(leased_task(lease()))
    with pytest.raises(AlreadyRecordedError):
        await journal.claims.record_payment("po-1", "1")
    await journal.claims.record_click("po-1", "po-1/1")
    await journal.claims.record_payment("po-1", "1")
    with pytest.raises(AlreadyRecordedError):
        await journal.claims.record_payment("po-1", "1")


async def test_one_number_is_the_target_of_one_tasks_payment(journal: Journal) -> None:
    for task_id in ("po-1", "po-2", "po-3"):
        await journal.orders.take_lease(leased_task(lease(task_id)))
        await journal.claims.record_click(task_id, lease(task_id).lease_token)
    await journal.orders.record("po-1", JournalEntry("ordered", OrderState.ORDERED, site_order_id="1"))
    with pytest.raises(AlreadyRecordedError):
        await journal.claims.record_payment("po-2", "1")
    await journal.claims.record_payment("po-2", "2")
    with pytest.raises(AlreadyRecordedError):
        await journal.claims.record_payment("po-3", "2")
    await journal.claims.record_payment("po-1", "1")


async def test_evidence_that_comes_after_its_report_goes_with_it_while_it_waits(journal: Journal) -> None:
    await journal.orders.take_lease(leased_task(lease()))
    early = await journal.orders.record("po-1", JournalEntry("ordered", OrderState.ORDERED, site_order_id="1"))
    waiting = await journal.orders.record("po-1", JournalEntry("ordered", OrderState.ORDERED))
    await journal.reports.acknowledge(early, Outcome.ACCEPTED, "")
    for sequence in (early, waiting):
        await journal.reports.complete(sequence, "po-1/04-order-submit")
    assert [report.evidence_ref for report in await journal.reports.of_task("po-1")] == [None, "po-1/04-order-submit"]
    order = await journal.orders.find("po-1")
    assert order is not None
    assert order.evidence_ref == "po-1/04-order-submit"


async def test_records_and_history_never_change(path: Path, journal: Journal) -> None:
    await journal.orders.take_lease(leased_task(lease()))
    await journal.claims.record_click("po-1", "po-1/1")
    await journal.claims.record_payment("po-1", "1")
    await journal.evidence.add("po-1", [EvidenceFile("po-1/a.html", "po-1/a", "0" * 64, 1)])
    sequence = await journal.orders.record("po-1", JournalEntry("begun", OrderState.CREATED))
    await journal.reports.acknowledge(sequence, Outcome.ACCEPTED, "")
    for change in (
        "DELETE FROM journal",
        "DELETE FROM orders",
        "DELETE FROM transitions",
        "DELETE FROM evidence",
        "DELETE FROM clicks",
        "DELETE FROM payments",
        "DELETE FROM outbox",
        "UPDATE journal SET journal_id = 'another-name-of-this'",
        "UPDATE transitions SET event = 'x'",
        "UPDATE evidence SET bytes = 2",
        "UPDATE clicks SET recorded_at = 'x'",
        "UPDATE payments SET recorded_at = 'x'",
        "UPDATE outbox SET outcome = 'refused'",
    ):
        with pytest.raises(sqlite3.IntegrityError):
            execute(path, change)


async def test_a_placed_order_cannot_be_told_as_failed_and_an_end_cannot_change(path: Path, journal: Journal) -> None:
    await journal.orders.take_lease(leased_task(lease()))
    with pytest.raises(sqlite3.IntegrityError):
        await journal.orders.record("po-1", JournalEntry("ended", OrderState.ORDERED, status=OrderStatus.FAILED))
    assert await journal.reports.of_task("po-1") == []
    await journal.orders.record(
        "po-1", JournalEntry("ended", OrderState.ORDERED, status=OrderStatus.NEEDS_HUMAN, detail="why")
    )
    await journal.orders.record("po-1", JournalEntry("moved on", OrderState.PAID))
    with pytest.raises(sqlite3.IntegrityError):
        execute(path, "UPDATE orders SET status = 'succeeded'")
    order = await journal.orders.find("po-1")
    assert order is not None
    assert (order.status, order.state, order.detail) == (OrderStatus.NEEDS_HUMAN, OrderState.PAID, "why")


async def test_a_report_brings_only_what_is_new_and_the_order_keeps_the_rest(journal: Journal) -> None:
    await journal.orders.take_lease(leased_task(lease()))
    await journal.orders.record(
        "po-1", JournalEntry("confirmed", OrderState.IN_CART, payable_yen=1200, evidence_ref="po-1/03")
    )
    await journal.orders.record("po-1", JournalEntry("ordered", OrderState.ORDERED, site_order_id="7"))
    order = await journal.orders.find("po-1")
    assert order is not None
    assert (order.payable_yen, order.evidence_ref, order.site_order_id) == (1200, "po-1/03", "7")
    reports = await journal.reports.of_task("po-1")
    assert [(report.payable_yen, report.site_order_id) for report in reports] == [(1200, None), (None, "7")]
    assert [report.sequence for report in reports] == [1, 2]


async def test_a_cancelled_writer_leaves_its_transaction_whole(journal: Journal) -> None:
    await journal.orders.take_lease(leased_task(lease()))
    writing = asyncio.ensure_future(journal.orders.record("po-1", JournalEntry("begun", OrderState.CREATED)))
    await asyncio.sleep(0)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert [entry.event for entry in await journal.orders.history("po-1")] == ["leased", "begun"]
    assert len(await journal.reports.of_task("po-1")) == 1


async def test_a_wish_is_filed_once_and_found_by_the_resident_process(path: Path, journal: Journal) -> None:
    beside = await Journal.open_beside(path, clock=ManualClock())
    number = await beside.reclaims.file("po-1")
    assert await beside.reclaims.file("po-1") == number
    reclaim_request = await journal.reclaims.next()
    assert reclaim_request is not None
    assert (reclaim_request.id, reclaim_request.task_id) == (number, "po-1")
    await journal.reclaims.move(number, ReclaimStatus.TAKEN, "in execution")
    assert await beside.reclaims.file("po-1") == number
    await journal.reclaims.interrupt_taken()
    assert await beside.reclaims.file("po-1") != number
    await beside.close()


async def test_a_file_that_cannot_be_opened_leaves_no_thread_behind(tmp_path: Path) -> None:
    """It would answer once more, to a loop that is closed by then: a traceback behind the one line."""
    with pytest.raises(sqlite3.OperationalError):
        await connect_on_thread(tmp_path)
    assert [thread.name for thread in threading.enumerate() if "connection_worker" in thread.name] == []
