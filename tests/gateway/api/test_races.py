"""Races: one winner, and all others get the one named answer."""

import asyncio
import sys
from collections import Counter
from pathlib import Path

import pytest

from gateway.domain.refusals import Reason
from gateway.domain.states import OrderState, TaskStatus
from tests.gateway.support.grpc_api import GrpcApi, RefusedCallError, connected, status_of
from tests.gateway.support.in_process import RunningGateway
from tests.gateway.support.manual_time import TICK
from tests.gateway.support.process import GatewayProcess

ROUNDS = 100

RACER = """
import asyncio, sys
from gateway.domain.states import OrderState
from tests.gateway.support.grpc_api import connected

async def main(port, worker):
    async with connected(port) as api:
        while True:
            # Short waits, so that openings race as well as those who wait already.
            lease = await api.lease(worker, wait=0.01)
            if lease is not None:
                print(lease.task_id, lease.lease_count, flush=True)
                await api.renew(lease, worker)
                await api.report(lease, OrderState.PAID, worker_id=worker, terminal=True)

asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
"""


async def end_of(api: GrpcApi, task_id: str) -> TaskStatus:
    """Watch a task to its end."""
    last = None
    async for message in api.watch(task_id):
        last = message.task if message.WhichOneof("event") == "task" else last
    assert last is not None
    return status_of(last)


async def test_two_processes_race_for_one_task_a_hundred_times_with_one_winner_each(process: GatewayProcess) -> None:
    racers = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", RACER, str(process.port), f"w{number}",
            stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[3],
        )
        for number in range(2)
    ]  # fmt: skip
    try:
        async with connected(process.port) as api:
            async with asyncio.timeout(60):
                while len((await api.health()).workers) < len(racers):  # noqa: ASYNC110 - it gives no signal
                    await asyncio.sleep(0.02)
            for number in range(ROUNDS):
                await api.submit(f"po-{number}")
                assert await asyncio.wait_for(end_of(api, f"po-{number}"), 60) is TaskStatus.SUCCEEDED
    finally:
        for one in racers:
            one.kill()
    told = [(await one.communicate())[0].decode().splitlines() for one in racers]
    assert Counter(line for lines in told for line in lines) == Counter(f"po-{number} 1" for number in range(ROUNDS))
    assert all(told)


async def test_fifty_parallel_submissions_of_one_key_make_one_task(gateway: RunningGateway) -> None:
    apis = [gateway.client() for _ in range(5)]
    clients = [await api.__aenter__() for api in apis]
    answers = await asyncio.gather(*(clients[number % 5].submit("po-1", '{"a": 1}') for number in range(50)))
    assert Counter(answer.created for answer in answers) == {True: 1, False: 49}
    assert {(answer.task_id, answer.status, answer.intent_matches) for answer in answers} == {
        ("po-1", answers[0].status, True)
    }
    assert gateway.rows("SELECT count(*) AS n FROM events WHERE kind = 'submit'") == [{"n": 1}]
    for api in apis:
        await api.__aexit__(None, None, None)


async def test_fifty_workers_at_once_get_one_lease(api: GrpcApi) -> None:
    await api.submit()
    leases = await asyncio.gather(*(api.lease(f"w{number}", wait=0.1) for number in range(50)))
    assert len([lease for lease in leases if lease is not None]) == 1


async def test_a_cancel_and_a_lease_race_and_exactly_one_wins(api: GrpcApi, gateway: RunningGateway) -> None:
    winners = Counter[str]()
    for number in range(40):
        task_id = f"po-{number}"
        await api.submit(task_id)
        first, second = (api.cancel(task_id), api.lease()) if number % 2 else (api.lease(), api.cancel(task_id))
        outcomes = await asyncio.gather(first, second, return_exceptions=True)
        cancelled, lease = outcomes if number % 2 else reversed(outcomes)
        if lease is None:
            assert not isinstance(cancelled, BaseException)
            assert await api.status(task_id) is TaskStatus.FAILED
            winners["cancel"] += 1
        else:
            assert isinstance(cancelled, RefusedCallError)
            assert cancelled.reason is Reason.STATUS_CONFLICT
            assert await api.status(task_id) is TaskStatus.LEASED
            await api.renew(lease)  # type: ignore[arg-type]
            await api.report(lease, terminal=True)  # type: ignore[arg-type]
            winners["lease"] += 1
    assert winners.total() == 40


@pytest.mark.parametrize("before", [TICK, TICK * 0])
async def test_a_report_and_the_expiry_race_and_the_service_clock_decides(
    gateway: RunningGateway, api: GrpcApi, before: object
) -> None:
    lease = await api.take()
    gateway.time.advance(300 - before.total_seconds())  # type: ignore[attr-defined]
    told, taken, renewed = await asyncio.gather(
        api.report(lease, OrderState.ORDERED), api.lease("w2"), api.renew(lease), return_exceptions=True
    )
    assert taken is None
    if before:
        assert not isinstance(told, BaseException)
        assert not isinstance(renewed, BaseException)
        assert await api.status() is TaskStatus.RUNNING
    else:
        assert isinstance(told, RefusedCallError)
        assert (told.reason, told.detail.recorded_late) == (Reason.LEASE_INVALID, True)
        assert isinstance(renewed, RefusedCallError)
        assert await api.status() is TaskStatus.STALE


async def test_two_terminal_reports_that_contradict_each_other_race_and_one_wins(api: GrpcApi) -> None:
    lease = await api.take()
    outcomes = await asyncio.gather(
        api.report(lease, OrderState.PAID, 1, terminal=True),
        api.report(lease, OrderState.CANCELLED, 2, terminal=True),
        return_exceptions=True,
    )
    (lost,) = [outcome for outcome in outcomes if isinstance(outcome, RefusedCallError)]
    assert (lost.reason, lost.detail.code, lost.detail.recorded_late) == (Reason.STATUS_CONFLICT, 6003, True)


async def test_twenty_reclaims_at_once_have_one_winner(gateway: RunningGateway, api: GrpcApi) -> None:
    await api.take()
    gateway.time.advance(300)
    outcomes = await asyncio.gather(
        *(api.reclaim("po-1", f"w{number}") for number in range(20)), return_exceptions=True
    )
    lost = [outcome for outcome in outcomes if isinstance(outcome, RefusedCallError)]
    assert len(lost) == 19
    assert {(refusal.reason, refusal.detail.code) for refusal in lost} == {(Reason.STATUS_CONFLICT, 6003)}


async def test_twenty_permit_requests_at_once_make_one_permit(gateway: RunningGateway, api: GrpcApi) -> None:
    lease = await api.take()
    permits = await asyncio.gather(*(api.permit(lease) for _ in range(20)))
    assert len({permit.permitted_at.ToNanoseconds() for permit in permits}) == 1
    assert gateway.rows("SELECT count(*) AS n FROM events WHERE kind = 'permit'") == [{"n": 1}]
