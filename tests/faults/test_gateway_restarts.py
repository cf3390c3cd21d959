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
from tests.faults.chaos import SETTINGS, STALE, ChaosTest, chaos_test
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
    async with chaos_test(tmp_path, of_gateway=PATIENT) as chaos:
        await chaos.keep_up()

        over = asyncio.Event()
        known = chaos.promises.submits

        async def call(caller: int) -> None:
            for number in count():
                await chaos.submit(f"c{caller}-{number}")
                if over.is_set():
                    return
                await asyncio.sleep(chaos.chance.uniform(0.5, 1.5))

        async def restart() -> None:
            for number in (signal.SIGTERM, signal.SIGKILL) * 3:
                so_far = len(known)
                await until(lambda: len(known) > so_far)  # noqa: B023 -- awaited here
                await asyncio.sleep(chaos.chance.uniform(0.0, 0.8))
                chaos.gateway.send(number)
                code = await chaos.gateway.wait()
                assert code == (0 if number is signal.SIGTERM else -number)
                await chaos.gateway.end()
                await chaos.gateway.start()
            over.set()

        await asyncio.gather(restart(), *(call(caller) for caller in range(CALLERS)))
        total = len(known)
        await until(lambda: len(rows(chaos.database, "SELECT 1 FROM tasks WHERE status = 'succeeded'")) == total)
        kept = await chaos.judge_books()
        for task_id in known:
            await chaos.judge(task_id)
        assert not chaos.violations
        assert kept.counted["submits"] == kept.counted["order numbers"] == total
        assert chaos.worker.starts == 1
        assert not rows(chaos.database, "SELECT * FROM tasks WHERE lease_count <> 1"), "in one hand each"
        assert not rows(chaos.database, "SELECT * FROM events WHERE kind IN ('expire', 'requeue', 'resolve')")


async def put_back(chaos: ChaosTest, folder: Path, backup: str) -> None:
    """Stops the gateway, restores the backup with the command for it, and starts the gateway again."""
    chaos.gateway.send(signal.SIGTERM)
    assert await chaos.gateway.wait() == 0
    await chaos.gateway.end()
    environment = {"PATH": os.environ["PATH"], **SETTINGS}
    command = (COMMANDS / "order-gateway", "restore", backup, "--yes")
    process = await asyncio.create_subprocess_exec(*command, cwd=folder, env=environment)
    assert await process.wait() == 0
    await chaos.gateway.start()


async def status(chaos: ChaosTest, task_id: str) -> orders_pb2.TaskStatus.ValueType | None:
    """None: the gateway knows no such task."""
    request = orders_pb2.GetOrderRequest(task_id=task_id)
    try:
        answer = await chaos.orders.GetOrder(request, metadata=AUTHORIZED, timeout=30, wait_for_ready=True)
    except AioRpcError as error:
        if error.code() is StatusCode.NOT_FOUND:
            return None
        raise
    found: orders_pb2.TaskStatus.ValueType = answer.task.status
    return found


@pytest.mark.extended
@pytest.mark.timeout(120)
async def test_an_older_backup_brings_no_second_order_of_what_was_ordered_since(tmp_path: Path) -> None:
    async with chaos_test(tmp_path, of_gateway=PATIENT) as chaos:
        await chaos.freeze_worker_at(FailpointName.CONFIRMED, "t-running")
        await chaos.submit("t-queued")
        request = operations_pb2.CreateBackupRequest()
        backup = await chaos.operations.CreateBackup(request, metadata=AUTHORIZED, timeout=30)

        chaos.worker.send(signal.SIGCONT)
        await chaos.submit("t-later")
        ordered = ("t-running", "t-queued", "t-later")
        for task_id in ordered:
            await chaos.until_ended(task_id)
            assert len(chaos.ordered(task_id)) == 1
        chaos.worker.arm(FailpointName.CLICK_RECORDED)
        await chaos.submit("t-clicked")
        assert await chaos.worker.wait() == -signal.SIGKILL
        await chaos.keep_up()

        await put_back(chaos, tmp_path, backup.file_name)
        found = [await status(chaos, task_id) for task_id in (*ordered, "t-clicked")]
        assert found == [STALE, STALE, None, None]
        health = await chaos.operations.GetHealth(operations_pb2.GetHealthRequest(), metadata=AUTHORIZED, timeout=30)
        assert [pause.site for pause in health.pauses] == [""]

        # All that a person and an upstream who do not know of it may do wrong.
        for task_id in ("t-later", "t-clicked"):
            await chaos.submit(task_id)
        for task_id in ("t-running", "t-queued"):
            again = operations_pb2.RequeueOrderRequest(task_id=task_id, reason="it seems never to have been done")
            await chaos.operations.RequeueOrder(again, metadata=AUTHORIZED, timeout=30)
        resume = operations_pb2.ResumeDispatchRequest(reason="on we go")
        await chaos.operations.ResumeDispatch(resume, metadata=AUTHORIZED, timeout=30)
        for task_id in (*ordered, "t-clicked"):
            await chaos.until_ended(task_id)

        assert [len(chaos.ordered(task_id)) for task_id in (*ordered, "t-clicked")] == [1, 1, 1, 0]
        assert not chaos.compare(chaos.database).lost["order numbers"], "the journal has told all of them again"
        assert not chaos.violations
