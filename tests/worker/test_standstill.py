"""A worker that cannot write its journal or its evidence takes nothing, and says why; with room again it goes on."""

import asyncio
import os
import resource
import shutil
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from ordergateway.v1 import orders_pb2

from tests.worker.conftest import Bench, eventually
from tests.worker.virtual import CountedEntropy, ManualClock
from worker.gateway.wire import leased_task
from worker.journal.journal import Journal
from worker.journal.orders import Orders
from worker.journal.records import JournalEntry
from worker.orders.state import OrderState

NEEDS_HUMAN = orders_pb2.TASK_STATUS_NEEDS_HUMAN


@asynccontextmanager
async def worker_process(bench: Bench) -> AsyncIterator[tuple[asyncio.subprocess.Process, Path]]:
    """`order-worker run` beside the bench; yields it and its log."""
    log = bench.folder / "worker.log"
    named = {
        "ORDER_GATEWAY_URL": f"grpc://{bench.target}",
        "SANDBOX_URL": bench.shop.url,
        "SCREENSHOTS": "false",
        "WORKER_ID": "worker-1",
        "MIN_FREE_DISK_MIB": "1",
        "LEASE_WAIT_SECONDS": "1",
    }
    environment = {key: value for key, value in os.environ.items() if not key.startswith("RAKUTEN_")}
    environment |= {f"RAKUTEN_{name}": value for name, value in named.items()}
    with log.open("wb") as written:
        process = await asyncio.create_subprocess_exec(
            Path(sys.executable).parent / "order-worker", "run", cwd=bench.folder, env=environment, stderr=written
        )
    try:
        yield process, log
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_a_worker_whose_files_cannot_grow_leases_nothing(bench: Bench) -> None:
    async with worker_process(bench) as (process, log):
        await bench.gateway.called("LeaseOrders")
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (4096, 4096))
        await eventually(lambda: "no new order is taken" in log.read_text(), 20)
        seen = len(bench.gateway.requests("LeaseOrders"))
        for number in range(8):
            bench.gateway.offer(f"po-{number}", bench.intent())
        process.terminate()
        assert await process.wait() == 0
        text = log.read_text()
    assert "no new order is taken: the journal cannot be written (disk I/O error, SQLITE_IOERR_WRITE)" in text
    assert "cannot rollback" not in text
    assert "Traceback" not in text
    assert bench.gateway.leases.qsize() == 8
    assert len(bench.gateway.requests("LeaseOrders")) == seen
    assert bench.gateway.requests("RenewLease") == []


async def test_with_room_again_orders_are_taken_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "worker")
    monkeypatch.setattr("worker.orders.loop.DISK_DELAY", 0.05)
    answers = iter(["the journal cannot be written (for the test)"] * 3)
    honest = Journal.why_not_writable

    async def first_not(journal: Journal) -> str | None:
        return next(answers, None) or await honest(journal)

    monkeypatch.setattr(Journal, "why_not_writable", first_not)
    end = await bench.execute()
    assert end.terminal_status == orders_pb2.TASK_STATUS_SUCCEEDED
    assert caplog.text.count("no new order is taken: the journal cannot be written (for the test)") == 1
    assert caplog.text.count("orders are taken again") == 1


async def test_a_reclaim_waits_while_the_journal_cannot_be_written(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def not_now(_journal: Journal) -> str | None:
        return "the journal cannot be written"

    monkeypatch.setattr(Journal, "why_not_writable", not_now)
    async with bench.worker():
        await eventually(lambda: "no new order is taken" in caplog.text)
        await bench.in_journal(lambda journal: journal.reclaims.file("po-1"))
    assert bench.gateway.requests("ReclaimOrder") == []


async def test_a_report_that_is_on_disk_though_its_commit_failed_is_sent(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest, failed = Orders.record, list[str]()

    async def written_all_the_same(orders: Orders, task_id: str, entry: JournalEntry) -> int:
        sequence = await honest(orders, task_id, entry)
        if entry.state is OrderState.ORDERED and not failed:
            failed.append(entry.event)
            raise sqlite3.OperationalError("disk I/O error")
        return sequence

    monkeypatch.setattr(Orders, "record", written_all_the_same)
    bench.gateway.offer("po-1", bench.intent())
    async with bench.worker():
        await bench.gateway.told("po-1", "ordered")
    assert failed == ["ordered"]


@pytest.mark.parametrize("lease_count", [1, 2])
async def test_a_task_whose_evidence_cannot_be_kept_ends_with_a_person(bench: Bench, lease_count: int) -> None:
    (bench.folder / "evidence").mkdir()
    (bench.folder / "evidence/po-1").write_text("in the way")
    end = await bench.execute(lease_count=lease_count)
    assert end.terminal_status == NEEDS_HUMAN
    assert end.detail.startswith("nothing was done by this run: no evidence can be kept in ")
    assert (await bench.shop.control.counters())["requests"] == {}


async def test_a_worker_whose_evidence_folder_is_gone_leases_nothing(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    async with bench.worker(lease_wait_seconds=0):
        await bench.gateway.called("LeaseOrders")
        (bench.folder / "evidence").rmdir()
        await eventually(lambda: "no new order is taken" in caplog.text)
        bench.gateway.offer("po-1", bench.intent())
    assert f"{bench.folder / 'evidence'} cannot be written" in caplog.text
    assert bench.gateway.leases.qsize() == 1


async def test_the_disk_of_the_journal_is_watched_for_room_too(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    apart = bench.folder / "elsewhere"
    honest = shutil.disk_usage

    def full_there(folder: Path) -> object:
        return SimpleNamespace(free=0) if folder == apart else honest(folder)

    monkeypatch.setattr("worker.evidence.store.shutil.disk_usage", full_there)
    async with bench.worker(trading_db_path=apart / "trading.db"):
        await eventually(lambda: f"no new order is taken: only 0 MiB free in {apart}" in caplog.text)


async def test_reports_of_a_former_run_are_taken_up_at_start(bench: Bench) -> None:
    former = await Journal.open(bench.folder / "trading.db", clock=ManualClock(), new_id=CountedEntropy().token)
    await former.orders.take_lease(leased_task(bench.gateway.lease("po-1", "{}")))
    await former.orders.record("po-1", JournalEntry("ordered", OrderState.ORDERED, site_order_id="7"))
    await former.close()
    async with bench.worker():
        await bench.gateway.called("ReportOrder")
    (report,) = bench.gateway.reports("po-1")
    assert report.site_order_id == "7"
