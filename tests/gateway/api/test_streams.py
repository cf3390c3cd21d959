"""Watches and the end of the process: every change is told, everything ends in time (docs/protocol.md#replies)."""

import asyncio
import itertools
from pathlib import Path
from typing import Any

import grpc
import pytest
from ordergateway.v1 import orders_pb2

from gateway.dispatch.stream import Heartbeat
from gateway.dispatch.watch import watch
from gateway.domain.refusals import Reason
from gateway.domain.states import OrderState, TaskStatus
from gateway.orders.read import get_task
from tests.gateway.support import dump
from tests.gateway.support.core import running_core
from tests.gateway.support.grpc_api import GrpcApi, RefusedCallError, connected, heartbeat_of, status_of, told
from tests.gateway.support.in_process import RunningGateway
from tests.gateway.support.process import GatewayProcess, gateway_process

S = TaskStatus


async def test_a_watch_delivers_the_task_now_and_each_change_until_the_end(api: GrpcApi) -> None:
    await api.submit()
    watch = api.watch()
    seen = []

    async def next_task() -> orders_pb2.Task:
        message = await asyncio.wait_for(watch.read(), 60)
        assert isinstance(message, orders_pb2.WatchOrderResponse)
        seen.append(status_of(message.task))
        return message.task

    await next_task()
    lease = await api.lease()
    assert lease is not None
    assert (await next_task()).lease_owner == "w1"
    await api.renew(lease)
    await next_task()
    await api.report(lease, OrderState.IN_CART, 1)
    assert [report.state for report in (await next_task()).reports] == [orders_pb2.ORDER_STATE_IN_CART]
    await api.permit(lease)
    assert (await next_task()).HasField("submit_permitted_at")
    await api.report(lease, OrderState.PAID, 2, terminal=True)
    await next_task()
    assert seen == [S.QUEUED, S.LEASED, S.LEASED, S.RUNNING, S.RUNNING, S.SUCCEEDED]
    assert (await asyncio.wait_for(watch.code(), 60)).value[0] == 0


async def test_a_watch_of_an_ended_task_brings_it_once_and_ends(api: GrpcApi) -> None:
    lease = await api.take()
    await api.report(lease, terminal=True)
    messages = [message async for message in api.watch()]
    assert [status_of(message.task) for message in messages] == [S.NEEDS_HUMAN]


async def test_a_watch_goes_on_while_a_task_is_stale(gateway: RunningGateway, api: GrpcApi) -> None:
    await api.take()
    watch = api.watch()
    await asyncio.wait_for(watch.read(), 60)
    gateway.time.advance(300)
    await api.lease("w2")
    message = await asyncio.wait_for(watch.read(), 60)
    assert status_of(message.task) is S.STALE  # type: ignore[union-attr]
    lease = await api.reclaim()
    await api.renew(lease)
    await api.report(lease, OrderState.PAID, terminal=True)
    seen = []
    while (message := await asyncio.wait_for(watch.read(), 60)) is not grpc.aio.EOF:
        seen.append(status_of(message.task))  # type: ignore[union-attr]
    assert seen[-1] is S.SUCCEEDED


async def test_a_watch_of_an_unknown_task_is_refused(api: GrpcApi) -> None:
    async def read() -> None:
        async for _ in api.watch("po-9"):
            pass

    with pytest.raises(RefusedCallError) as refused:
        await told(read())
    assert refused.value.reason is Reason.TASK_NOT_FOUND


async def test_heartbeats_come_between_changes_and_no_change_is_told_twice(tmp_path: Path) -> None:
    async with running_core(tmp_path / "gateway.db") as core:
        await core.submit()
        seen = []
        async for event in watch(core.store, core.notifier, "task:po-1", get_task, "po-1", heartbeat_seconds=0.03):
            seen.append(event)
            if len(seen) == 4:
                assert [isinstance(one, Heartbeat) for one in seen] == [False, True, True, True]
                core.notifier.publish({"task:po-1"})
            if len(seen) == 6:
                break
        assert not any(not isinstance(one, Heartbeat) for one in seen[1:])
        assert await core.store.read(get_task, "po-1") == seen[0]


async def test_a_lost_hint_costs_a_watch_no_more_than_the_poll(gateway: RunningGateway, api: GrpcApi) -> None:
    await api.submit()
    watch = api.watch()
    await asyncio.wait_for(watch.read(), 60)
    await asyncio.sleep(1.1)
    dump.execute(gateway.path, "UPDATE tasks SET callback_url = 'https://changed.example/'")
    dump.execute(
        gateway.path,
        "INSERT INTO events (occurred_at, subject, kind, actor) VALUES ('2026', 'po-1', 'from outside', 'nobody')",
    )
    message = await asyncio.wait_for(watch.read(), 60)
    assert message.task.callback_url == "https://changed.example/"  # type: ignore[union-attr]


async def test_the_end_of_the_process_ends_a_hundred_streams_in_time_and_leases_nothing(
    process: GatewayProcess, tmp_path: Path
) -> None:
    async with connected(process.port) as api:
        await api.submit("held")
        lease = await api.lease("w0")
        assert lease is not None
        await api.renew(lease, "w0")
        await api.submit("po-1")
        leases = [api.stream(f"w{number}", wait=60) for number in range(50)]
        watches = [api.watch("po-1") for _ in range(50)]
        for stream in leases:
            await heartbeat_of(stream)
        for watch in watches:
            await asyncio.wait_for(watch.read(), 60)
        clock = asyncio.get_running_loop().time
        begun = clock()
        ending = asyncio.create_task(process.terminate())
        # The slot becomes free just as the process stops: who waits must not get the next order any more.
        freed, *ends = await asyncio.gather(
            api.report(lease, OrderState.PAID, worker_id="w0", terminal=True),
            *(told(_drain(stream)) for stream in [*leases, *watches]),
            return_exceptions=True,
        )
        assert await ending == 0
        assert clock() - begun < 20
    refused = [end for end in ends if isinstance(end, RefusedCallError)]
    assert len(refused) >= 99
    assert {(end.status, end.reason) for end in refused} == {("UNAVAILABLE", Reason.SHUTTING_DOWN)}
    (row,) = dump.rows(tmp_path / "gateway.db", "SELECT * FROM tasks WHERE task_id = 'po-1'")
    if not isinstance(freed, Exception) and row["status"] == "leased":
        assert len(refused) == 99, "a lease went out before the stop, so its stream has it"
    else:
        assert (row["status"], row["lease_count"]) == ("queued", 0)
    assert "Traceback" not in process.log
    assert "gateway stopped" in process.log


async def _drain(stream: Any) -> None:
    while await stream.read() is not grpc.aio.EOF:
        pass


@pytest.mark.sqlite
async def test_every_acknowledged_submission_is_there_after_a_kill_in_the_middle_of_a_burst(tmp_path: Path) -> None:
    acknowledged: list[str] = []
    numbers = itertools.count()

    async def submit_until_it_ends(api: GrpcApi, process: GatewayProcess) -> None:
        while True:
            task_id = f"po-{next(numbers)}"
            await api.submit(task_id)
            acknowledged.append(task_id)
            if len(acknowledged) == 250:
                process.kill()

    async with gateway_process(tmp_path) as process, connected(process.port) as api:
        ended = await asyncio.gather(*(submit_until_it_ends(api, process) for _ in range(128)), return_exceptions=True)
        assert all(isinstance(error, RefusedCallError | grpc.aio.AioRpcError) for error in ended), ended
        await process.wait()
    assert len(acknowledged) >= 250
    async with gateway_process(tmp_path) as process, connected(process.port) as api:
        stored = {row["task_id"] for row in dump.rows(tmp_path / "gateway.db", "SELECT task_id FROM tasks")}
        assert set(acknowledged) <= stored
        again = await api.submit(acknowledged[-1])
        assert not again.created
        assert await process.terminate() == 0
    assert dump.rows(tmp_path / "gateway.db", "PRAGMA integrity_check") == [{"integrity_check": "ok"}]


async def test_a_lease_survives_a_kill_of_the_gateway(tmp_path: Path) -> None:
    async with gateway_process(tmp_path) as process, connected(process.port) as api:
        lease = await api.take()
        process.kill()
        await process.wait()
    async with gateway_process(tmp_path) as process, connected(process.port) as api:
        assert (await api.renew(lease)).lease_count == 1
        await api.submit("po-2")
        assert await api.lease("w2") is None
        await api.report(lease, OrderState.PAID, terminal=True)
        assert (await api.lease("w2")) is not None
        assert await process.terminate() == 0
