"""A full disk under the gateway, and under the worker's journal and evidence."""

import asyncio
import json
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from gateway.domain.refusals import Reason
from tests.faults.chaos import chaos_test
from tests.faults.disks import Disk, LimitedFiles, SmallDisk, every_disk
from tests.faults.program import until
from tests.faults.promises import rows
from tests.gateway.support.grpc_api import RefusedCallError, connected
from tests.gateway.support.process import gateway_process
from worker.failpoints import FailpointName

MakeDisk = Callable[[Path], AbstractContextManager[Disk]]
INTENT = json.dumps({"pad": "x" * 2_000})


@every_disk
async def test_a_gateway_without_room_refuses_loses_nothing_and_goes_on_once_there_is_room(
    tmp_path: Path, make_disk: MakeDisk
) -> None:
    with make_disk(tmp_path / "disk") as disk:
        path = disk.folder / "gateway.db"
        async with (
            gateway_process(tmp_path, gateway_db_path=str(path)) as gateway,
            connected(gateway.port) as api,
        ):
            acknowledged: set[str] = set()
            refused: dict[str, tuple[str, Reason]] = {}

            async def submit(task_id: str) -> None:
                try:
                    await api.submit(task_id, INTENT)
                except RefusedCallError as error:
                    refused[task_id] = (error.status, error.reason)
                else:
                    acknowledged.add(task_id)

            await submit("po-before")
            # Room for some more: where exactly it ends, within a transaction, is up to the callers.
            log = path.with_name("gateway.db-wal")
            disk.fill(gateway.process.pid, leave=log.stat().st_size + 40_000)
            await asyncio.gather(*(submit(f"po-{number}") for number in range(60)))
            for number in range(60, 70):
                await submit(f"po-{number}")
            assert set(refused.values()) == {("UNAVAILABLE", Reason.STORE_UNAVAILABLE)}
            assert {task.task_id for task in (await api.list(page_size=200)).tasks} == acknowledged

            disk.make_room(gateway.process.pid)
            for task_id in sorted(refused):
                await submit(task_id)
            assert len(acknowledged) == 71
            gateway.kill()
            await gateway.wait()
        assert {row["task_id"] for row in rows(path, "SELECT task_id FROM tasks")} == acknowledged
        assert [row["integrity_check"] for row in rows(path, "PRAGMA integrity_check")] == ["ok"]


def of_worker(disk: Disk) -> dict[str, str]:
    return {
        "RAKUTEN_TRADING_DB_PATH": str(disk.folder / "trading.db"),
        "RAKUTEN_EVIDENCE_DIR": str(disk.folder / "evidence"),
        "RAKUTEN_MIN_FREE_DISK_MIB": "20",
    }


@pytest.mark.extended
@pytest.mark.timeout(120)
@every_disk
@pytest.mark.parametrize(("at", "permit_seconds"), [(FailpointName.PERMITTED, 4), (FailpointName.CLICK_RECORDED, 30)])
async def test_a_worker_without_room_makes_no_click_without_a_record_and_goes_on_once_there_is_room(
    tmp_path: Path, make_disk: MakeDisk, at: FailpointName, permit_seconds: int
) -> None:
    times = {"RAKUTEN_PERMIT_TTL_SECONDS": str(permit_seconds), "RAKUTEN_LEASE_TTL_SECONDS": "5"}
    with make_disk(tmp_path / "disk") as disk:
        async with chaos_test(tmp_path, 2, of_gateway=times, of_worker=of_worker(disk)) as chaos:
            await chaos.freeze_worker_at(at, "t-1")
            disk.fill(chaos.worker.pid)
            chaos.worker.send(signal.SIGCONT)
            await until(
                lambda: (
                    "stale" in [row["status"] for row in rows(chaos.database, "SELECT status FROM tasks")]
                    or chaos.ordered("t-1")
                )
            )
            ordered, clicks = len(chaos.ordered("t-1")), len(rows(chaos.journal, "SELECT * FROM clicks"))
            assert ordered <= clicks <= 1  # the journal keeps room of its own, so the record may fit
            if at is FailpointName.CLICK_RECORDED:
                assert ordered == 1
            elif isinstance(disk, LimitedFiles):
                assert clicks == 0

            disk.make_room(chaos.worker.pid)
            await chaos.until_ended("t-1")
            await chaos.submit("t-2")
            await chaos.until_ended("t-2")
            kept = await chaos.judge_books()
            assert not chaos.violations
            assert chaos.worker.starts == 1
            if isinstance(disk, SmallDisk) and at is FailpointName.CLICK_RECORDED:
                asked = kept.counted["decisions"] + kept.counted["reclaim requests"]
                assert asked == 0, "the room reserved before the click is enough for what comes after it"


@pytest.mark.extended
@every_disk
async def test_a_worker_that_can_reserve_no_room_stops_before_the_click_and_says_so(
    tmp_path: Path, make_disk: MakeDisk
) -> None:
    with make_disk(tmp_path / "disk") as disk:
        async with chaos_test(
            tmp_path, of_gateway={"RAKUTEN_LEASE_TTL_SECONDS": "60"}, of_worker=of_worker(disk)
        ) as chaos:
            await chaos.freeze_worker_at(FailpointName.CONFIRMED, "t-1")
            disk.fill(chaos.worker.pid, leave=4 * 1024 * 1024)
            chaos.worker.send(signal.SIGCONT)
            await until(lambda: rows(chaos.database, "SELECT * FROM tasks WHERE status = 'needs_human'"))
            (told,) = rows(chaos.database, "SELECT detail FROM reports WHERE detail <> ''")
            assert "no disk space could be reserved" in told["detail"]
            assert not chaos.ordered("t-1")
            assert not rows(chaos.journal, "SELECT * FROM clicks")
