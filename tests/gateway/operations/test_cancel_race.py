"""A cancel raced against a lease, and against a permit: the database lets exactly one of them win."""

import asyncio
from collections import Counter

import pytest

from gateway.api.codec.orders import task_status_to
from gateway.domain.refusals import Reason
from gateway.domain.states import TaskStatus
from tests.gateway.support.grpc_api import RefusedCallError, status_of
from tests.gateway.support.in_process import RunningGateway

ROUNDS = 500


@pytest.mark.extended
async def test_five_hundred_races_have_one_winner_each(gateway: RunningGateway) -> None:
    winners = Counter[str]()
    async with gateway.client() as person, gateway.client() as worker:
        for number in range(ROUNDS):
            task_id = f"po-{number}"
            await person.submit(task_id)
            # Two connections, and which of them sends first changes from round to round.
            rivals = [worker.lease(), person.cancel(task_id, "raced")][:: 1 if number % 2 else -1]
            first, second = await asyncio.gather(*rivals, return_exceptions=True)
            lease, cancelled = (first, second) if number % 2 else (second, first)

            if lease is None:
                assert status_of(cancelled) is TaskStatus.FAILED
                winners["cancel"] += 1
                continue
            assert isinstance(cancelled, RefusedCallError)
            assert cancelled.reason is Reason.STATUS_CONFLICT
            assert "cancel" not in cancelled.detail.allowed
            winners["lease"] += 1
            await worker.renew(lease)
            await worker.report(lease, terminal=True)

    assert winners.total() == ROUNDS
    assert min(winners["cancel"], winners["lease"]) > 0, winners
    ends = Counter(row["status"] for row in gateway.rows("SELECT status FROM tasks"))
    assert ends == {TaskStatus.FAILED: winners["cancel"], TaskStatus.NEEDS_HUMAN: winners["lease"]}
    told = Counter(row["kind"] for row in gateway.rows("SELECT kind FROM events"))
    assert (told["cancel"], told["lease"]) == (winners["cancel"], winners["lease"])


@pytest.mark.extended
@pytest.mark.timeout(600)
async def test_five_hundred_races_against_a_permit_have_one_winner_each(gateway: RunningGateway) -> None:
    await _race_against_permits(gateway, ROUNDS)


async def test_a_cancel_and_a_permit_have_one_winner(gateway: RunningGateway) -> None:
    await _race_against_permits(gateway, 20)


async def _race_against_permits(gateway: RunningGateway, rounds: int) -> None:
    winners = Counter[str]()
    async with gateway.client() as person, gateway.client() as worker:
        for number in range(rounds):
            task_id = f"po-{number}"
            lease = await worker.take(task_id)
            rivals = [worker.permit(lease), person.cancel(task_id, "raced", while_leased=True)]
            first, second = await asyncio.gather(*rivals[:: 1 if number % 2 else -1], return_exceptions=True)
            permit, cancelled = (first, second) if number % 2 else (second, first)

            if isinstance(permit, RefusedCallError):
                assert permit.reason is Reason.CANCEL_REQUESTED
                assert cancelled.HasField("cancel_requested_at")  # type: ignore[union-attr]
                winners["cancel"] += 1
                end = TaskStatus.FAILED
            else:
                assert permit.task_id == task_id  # type: ignore[union-attr]
                assert isinstance(cancelled, RefusedCallError)
                assert cancelled.reason is Reason.CANCEL_TOO_LATE
                winners["permit"] += 1
                end = TaskStatus.SUCCEEDED
            await worker.report(lease, terminal=True, terminal_status=task_status_to(end))

    assert winners.total() == rounds
    assert min(winners["cancel"], winners["permit"]) > 0, winners
    both = "SELECT 1 FROM tasks WHERE submit_permitted_at IS NOT NULL AND cancel_requested_at IS NOT NULL"
    assert gateway.rows(both) == []
    told = Counter(row["kind"] for row in gateway.rows("SELECT kind FROM events"))
    assert (told["cancel_request"], told["permit"]) == (winners["cancel"], winners["permit"])
