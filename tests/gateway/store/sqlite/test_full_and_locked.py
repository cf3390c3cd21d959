"""A disk that is full, a file that is locked, a fault beside the writer (docs/adr/0003-group-commit.md)."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.domain.instant import Instant
from gateway.domain.models import Submitted
from gateway.store.port import StoreUnavailableError, Transaction
from tests.gateway.support.core import Core, running_core


@pytest.fixture
async def core(tmp_path: Path) -> AsyncIterator[Core]:
    async with running_core(tmp_path / "gateway.db") as running:
        yield running


def seen(tx: Transaction, now: Instant, worker_id: str) -> str:
    tx.change("worker_seen", worker_id=worker_id, at=now.utc, elapsed_us=now.elapsed_us)
    return worker_id


def workers(core: Core) -> set[str]:
    return {row["worker_id"] for row in core.rows("SELECT worker_id FROM workers")}


async def test_cancelling_a_caller_at_any_point_leaves_no_transaction_behind(core: Core) -> None:
    for turns in range(12):
        writing = [asyncio.create_task(core.store.write(seen, f"w{number}")) for number in range(3)]
        for _ in range(turns):
            await asyncio.sleep(0)
        for one in writing:
            one.cancel()
        await asyncio.wait(writing)
    await core.store.write(seen, "last")
    assert "last" in workers(core)
    assert not core.store._writer._connection.in_transaction


async def test_a_full_disk_refuses_loses_nothing_acknowledged_and_recovers(core: Core) -> None:
    await core.submit("po-0")
    connection = core.store._writer._connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages + 4}")
    intent = '{"note": "' + "x" * 2_000 + '"}'
    outcomes = {}
    for number in range(1, 30):
        writing = core.submit(f"po-{number}", intent_json=intent)
        (outcomes[f"po-{number}"],) = await asyncio.gather(writing, return_exceptions=True)
    refused = [outcome for outcome in outcomes.values() if isinstance(outcome, Exception)]
    assert refused
    assert {type(outcome) for outcome in refused} == {StoreUnavailableError}
    assert all("full" in str(outcome) for outcome in refused)
    acknowledged = [task_id for task_id, outcome in outcomes.items() if isinstance(outcome, Submitted)]
    assert acknowledged
    assert {row["task_id"] for row in core.rows("SELECT task_id FROM tasks")} == {"po-0", *acknowledged}
    connection.execute(f"PRAGMA max_page_count = {pages + 10_000}")
    assert (await core.submit("po-99")).created
    assert core.rows("PRAGMA integrity_check") == [{"integrity_check": "ok"}]
    assert not core.fatal


async def test_a_group_on_a_full_disk_is_refused_as_a_whole(core: Core) -> None:
    connection = core.store._writer._connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    outcomes = await asyncio.gather(*(core.submit(f"po-{number}") for number in range(100)), return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {StoreUnavailableError}
    assert core.rows("SELECT * FROM tasks") == []


async def test_a_file_locked_by_another_program_refuses_and_recovers(
    core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.store.sqlite.writer.BUSY_SECONDS", 0.2)
    other = sqlite3.connect(core.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailableError, match="locked"):
        await core.submit("po-1")
    monkeypatch.setattr("gateway.store.sqlite.writer.BUSY_SECONDS", 20)
    waiting = asyncio.create_task(core.submit("po-2"))
    assert await core.store.read(lambda tx, _now: len(tx.all("tasks_active", count=1))) == 0
    other.execute("ROLLBACK")
    other.close()
    assert (await waiting).created
    assert [row["task_id"] for row in core.rows("SELECT task_id FROM tasks")] == ["po-2"]


async def test_a_fault_of_those_who_wait_does_not_stop_the_writer(core: Core) -> None:
    def fault(_notifications: set[str]) -> None:
        raise RuntimeError("on purpose")

    core.store._writer._publish = fault
    for number in range(3):
        await core.submit(f"po-{number}")
    assert len(core.rows("SELECT * FROM tasks")) == 3
