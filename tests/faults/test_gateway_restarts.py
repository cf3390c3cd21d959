"""The gateway is stopped and killed under load, and put back to an older backup, while the worker goes on."""

import asyncio
import os
import signal
from itertools import count
from pathlib import Path

import pytest
from grpc import StatusCode
from grpc.aio import AioRpcError
from ordergateway.v1 import operations_pb2, orders_pb2

from tests.e2e.parts import AUTHORIZED, COMMANDS
from tests.faults.chaos import SETTINGS, STALE, Siege, siege
from tests.faults.program import until
from tests.faults.promises import rows
from worker.failpoints import FailpointName

CALLERS = 4
PATIENT = {
    "RAKUTEN_LEASE_TTL_SECONDS": "60",
    "RAKUTEN_LEASE_ACK_SECONDS": "30",
    "RAKUTEN_PERMIT_TTL_SECONDS": "30",
}


@pytest.mark.extended
@pytest.mark.timeout(180)
async def test_restarts_under_load_lose_nothing_and_need_no_person(tmp_path: Path) -> None:
    async with siege(tmp_path, of_gateway=PATIENT) as besieged:
        await besieged.keep_up()

        over = asyncio.Event()
        known = besieged.promises.submits

        async def call(caller: int) -> None:
            for number in count():
                await besieged.submit(f"c{caller}-{number}")
                if over.is_set():
                    return
                await asyncio.sleep(besieged.chance.uniform(0.5, 1.5))

        async def restart() -> None:
            for number in (signal.SIGTERM, signal.SIGKILL) * 3:
                so_far = len(known)
                await until(lambda: len(known) > so_far)  # noqa: B023 -- awaited here
                await asyncio.sleep(besieged.chance.uniform(0.0, 0.8))
                besieged.gateway.send(number)
                code = await besieged.gateway.wait()
                assert code == (0 if number is signal.SIGTERM else -number)
                await besieged.gateway.end()
                await besieged.gateway.start()
            over.set()

        await asyncio.gather(restart(), *(call(caller) for caller in range(CALLERS)))
        total = len(known)
        await until(lambda: len(rows(besieged.database, "SELECT 1 FROM tasks WHERE status = 'succeeded'")) == total)
        kept = await besieged.judge_books()
        for task_id in known:
            await besieged.judge(task_id)
        assert not besieged.violations
        assert kept.counted["submits"] == kept.counted["order numbers"] == total
        assert besieged.worker.starts == 1
        assert not rows(besieged.database, "SELECT * FROM tasks WHERE lease_count <> 1"), "in one hand each"
        assert not rows(besieged.database, "SELECT * FROM events WHERE kind IN ('expire', 'requeue', 'resolve')")


async def put_back(besieged: Siege, folder: Path, backup: str) -> None:
    """Stops the gateway, restores the backup with the command for it, and starts the gateway again."""
    besieged.gateway.send(signal.SIGTERM)
    assert await besieged.gateway.wait() == 0
    await besieged.gateway.end()
    environment = {"PATH": os.environ["PATH"], **SETTINGS}
    command = (COMMANDS / "order-gateway", "restore", backup, "--yes")
    process = await asyncio.create_subprocess_exec(*command, cwd=folder, env=environment)
    assert await process.wait() == 0
    await besieged.gateway.start()


async def status(besieged: Siege, task_id: str) -> orders_pb2.TaskStatus.ValueType | None:
    """None: the gateway knows no such task."""
    request = orders_pb2.GetOrderRequest(task_id=task_id)
    try:
        answer = await besieged.orders.GetOrder(request, metadata=AUTHORIZED, timeout=30, wait_for_ready=True)
    except AioRpcError as error:
        if error.code() is StatusCode.NOT_FOUND:
            return None
        raise
    found: orders_pb2.TaskStatus.ValueType = answer.task.status
    return found


@pytest.mark.extended
@pytest.mark.timeout(120)
async def test_an_older_backup_brings_no_second_order_of_what_was_ordered_since(tmp_path: Path) -> None:
    async with siege(tmp_path, of_gateway=PATIENT) as besieged:
        await besieged.freeze_worker_at(FailpointName.CONFIRMED, "t-running")
        await besieged.submit("t-queued")
        request = operations_pb2.CreateBackupRequest()
        backup = await besieged.operations.CreateBackup(request, metadata=AUTHORIZED, timeout=30)

        besieged.worker.send(signal.SIGCONT)
        await besieged.submit("t-later")
        ordered = ("t-running", "t-queued", "t-later")
        for task_id in ordered:
            await besieged.until_ended(task_id)
            assert len(besieged.ordered(task_id)) == 1
        besieged.worker.arm(FailpointName.CLICK_RECORDED)
        await besieged.submit("t-clicked")
        assert await besieged.worker.wait() == -signal.SIGKILL
        await besieged.keep_up()

        await put_back(besieged, tmp_path, backup.file_name)
        found = [await status(besieged, task_id) for task_id in (*ordered, "t-clicked")]
        assert found == [STALE, STALE, None, None]
        health = await besieged.operations.GetHealth(operations_pb2.GetHealthRequest(), metadata=AUTHORIZED, timeout=30)
        assert [pause.site for pause in health.pauses] == [""]

        # All that a person and an upstream who do not know of it may do wrong.
        for task_id in ("t-later", "t-clicked"):
            await besieged.submit(task_id)
        for task_id in ("t-running", "t-queued"):
            again = operations_pb2.RequeueOrderRequest(task_id=task_id, reason="it seems never to have been done")
            await besieged.operations.RequeueOrder(again, metadata=AUTHORIZED, timeout=30)
        resume = operations_pb2.ResumeDispatchRequest(reason="on we go")
        await besieged.operations.ResumeDispatch(resume, metadata=AUTHORIZED, timeout=30)
        for task_id in (*ordered, "t-clicked"):
            await besieged.until_ended(task_id)

        assert [len(besieged.ordered(task_id)) for task_id in (*ordered, "t-clicked")] == [1, 1, 1, 0]
        assert not besieged.compare(besieged.database).lost["order numbers"], "the journal has told all of them again"
        assert not besieged.violations
