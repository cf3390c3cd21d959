"""A result belongs to one attempt: late, repeated, foreign and contradicting ones, over gRPC and REST."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.gateway.account_queries.clients import Queries, QueryRefusedError
from tests.gateway.support.in_process import RunningGateway
from tests.gateway.support.manual_time import TICK

LEASE_TTL = timedelta(seconds=180)


async def leased(queries: Queries, query_id: str = "q-1") -> dict[str, Any]:
    await queries.submit(query_id)
    lease = await queries.lease()
    assert lease is not None
    return lease


async def refused(bringing: Any) -> int:
    with pytest.raises(QueryRefusedError) as refusal:
        await bringing
    return refusal.value.code


async def test_the_late_first_result_of_one_and_the_same_worker_is_refused_and_its_second_kept(
    queries: Queries, gateway: RunningGateway
) -> None:
    first = await leased(queries)
    gateway.time.advance(LEASE_TTL)
    second = await queries.lease()
    assert second is not None

    assert await refused(queries.bring(first, '{"from": 1}')) == 6006
    assert (await queries.get())["status"] == "leased"
    assert await queries.bring(second, '{"from": 2}') == "succeeded"
    assert await refused(queries.bring(first, '{"from": 1}')) == 6006
    assert (await queries.get())["result"] == {"from": 2}


async def test_a_result_counts_until_one_tick_before_the_lease_runs_out(
    queries: Queries, gateway: RunningGateway
) -> None:
    in_time, late = await leased(queries, "in-time"), await leased(queries, "late")
    gateway.time.advance(LEASE_TTL - TICK)
    assert await queries.bring(in_time) == "succeeded"
    gateway.time.advance(TICK)
    assert await refused(queries.bring(late)) == 6006
    assert (await queries.get("late"))["status"] == "queued"


async def test_the_same_outcome_of_the_same_attempt_again_succeeds(queries: Queries) -> None:
    good, bad = await leased(queries, "good"), await leased(queries, "bad")
    for _ in range(2):
        assert await queries.bring(good, '{"orders":[]}') == "succeeded"
        assert await queries.bring(bad, None, code=5001, message="logged out") == "failed"


async def test_another_outcome_after_the_end_is_refused_and_changes_nothing(queries: Queries) -> None:
    good, bad = await leased(queries, "good"), await leased(queries, "bad")
    await queries.bring(good, '{"orders":[]}')
    await queries.bring(bad, None, code=5001, message="logged out")

    assert await refused(queries.bring(good, '{"orders":[1]}')) == 6006
    assert await refused(queries.bring(good, None, message="no")) == 6006
    assert await refused(queries.bring(bad, '{"orders":[]}')) == 6006
    assert await refused(queries.bring(bad, None, code=5001, message="other words")) == 6006
    assert (await queries.get("good"))["result"] == {"orders": []}
    assert (await queries.get("bad"))["error"] == {"code": 5001, "message": "logged out"}


async def test_a_worker_that_does_not_hold_the_attempt_is_refused(queries: Queries) -> None:
    lease = await leased(queries)
    assert await refused(queries.bring(lease, worker="w2")) == 6006
    assert await refused(queries.bring({**lease, "attempt": 2})) == 6006
    assert await queries.bring(lease) == "succeeded"


async def test_a_result_of_a_query_that_was_never_leased_or_does_not_exist_is_refused(queries: Queries) -> None:
    await queries.submit()
    assert await refused(queries.bring({"query_id": "q-1", "attempt": 1})) == 6006
    assert await refused(queries.bring({"query_id": "q-2", "attempt": 1})) == 6005
    assert await refused(queries.get("q-2")) == 6005


async def test_of_many_results_at_once_one_counts(queries: Queries) -> None:
    lease = await leased(queries)
    outcomes = await asyncio.gather(
        *(queries.bring(lease, f'{{"number": {number}}}') for number in range(20)), return_exceptions=True
    )
    assert outcomes.count("succeeded") == 1
    assert all(isinstance(outcome, QueryRefusedError) for outcome in outcomes if outcome != "succeeded")


async def test_an_ended_query_is_not_leased_again(queries: Queries, gateway: RunningGateway) -> None:
    await queries.bring(await leased(queries))
    gateway.time.advance(LEASE_TTL)
    assert await queries.lease() is None
    assert (await queries.get())["status"] == "succeeded"


@pytest.mark.parametrize("transport", ["rest"], indirect=True)
class TestWithoutAttempt:
    """Over REST `attempt` is optional."""

    async def test_it_is_taken_if_the_worker_has_held_one_attempt(self, queries: Queries) -> None:
        lease = await leased(queries)
        assert await queries.bring({**lease, "attempt": None}) == "succeeded"

    async def test_it_is_refused_if_the_worker_has_held_two(self, queries: Queries, gateway: RunningGateway) -> None:
        await leased(queries)
        gateway.time.advance(LEASE_TTL)
        again = await queries.lease()
        assert again is not None

        assert await refused(queries.bring({**again, "attempt": None})) == 6006
        assert await queries.bring(again) == "succeeded"

    async def test_each_of_two_workers_has_held_one(self, queries: Queries, gateway: RunningGateway) -> None:
        first = await leased(queries)
        gateway.time.advance(LEASE_TTL)
        second = await queries.lease("w2")
        assert second is not None

        assert await refused(queries.bring({**first, "attempt": None}, worker="w1")) == 6006
        assert await queries.bring({**second, "attempt": None}, worker="w2") == "succeeded"

    async def test_it_is_refused_for_a_worker_that_has_held_none(self, queries: Queries) -> None:
        lease = await leased(queries)
        assert await refused(queries.bring({**lease, "attempt": None}, worker="w2")) == 6006
