"""The acceptance list of account queries (docs/two-queues.md), over gRPC and REST: the gateway's lines.

The worker's lines stand in tests/e2e/test_account_queries.py.
"""

import asyncio
from datetime import timedelta

import pytest

from gateway.domain.states import TaskStatus
from tests.gateway.account_queries.clients import Queries, QueryRefusedError
from tests.gateway.support.in_process import RunningGateway
from tests.gateway.support.manual_time import TICK

LEASE_TTL = timedelta(seconds=180)
LIFETIME = timedelta(seconds=900)
RETENTION = timedelta(days=7)


async def test_the_same_query_id_twice_makes_one_query(queries: Queries, gateway: RunningGateway) -> None:
    first = await queries.submit("aq-1", params_json='{"max_pages": 3}')
    again = await queries.submit("aq-1", kind="order_detail", params_json='{"order_number": "9"}')

    assert first == {"query_id": "aq-1", "status": "queued", "created": True, "differs": []}
    assert again == {"query_id": "aq-1", "status": "queued", "created": False, "differs": ["kind", "params"]}
    elsewhere = await queries.submit("aq-1", params_json='{"max_pages":3}', site="rakuten")
    assert elsewhere["differs"] == ["site"]
    same = await queries.submit("aq-1", params_json='{"max_pages":3}')
    assert same == first | {"created": False}
    assert [row["params_json"] for row in gateway.rows("SELECT * FROM account_queries")] == ['{"max_pages": 3}']


async def test_fifty_submissions_of_one_query_id_at_once_make_one_query(queries: Queries) -> None:
    answers = await asyncio.gather(*(queries.submit("aq-1") for _ in range(50)))
    assert [answer["created"] for answer in answers].count(True) == 1


async def test_an_unknown_kind_is_refused_as_it_is_submitted(queries: Queries) -> None:
    with pytest.raises(QueryRefusedError) as refusal:
        await queries.submit(kind="nonsense")
    assert refusal.value.code == 422
    assert await queries.lease() is None


async def test_an_order_is_leased_while_queries_are_in_flight_and_a_query_while_an_order_is(
    queries: Queries, gateway: RunningGateway
) -> None:
    await queries.submit("aq-1")
    assert await queries.lease() is not None
    await gateway.api.take("po-1")
    await queries.submit("aq-2")

    assert await queries.lease() is not None
    assert await gateway.api.status("po-1") is TaskStatus.LEASED


async def test_several_queries_are_in_flight_at_once(queries: Queries) -> None:
    for number in range(5):
        await queries.submit(f"aq-{number}")
    leases = [await queries.lease() for _ in range(5)]

    assert [lease["query_id"] for lease in leases if lease] == [f"aq-{number}" for number in range(5)]
    assert len(await queries.listed(status="leased")) == 5


async def test_a_query_whose_lease_ran_out_is_leased_again_with_the_next_attempt(
    queries: Queries, gateway: RunningGateway
) -> None:
    await queries.submit()
    first = await queries.lease()
    gateway.time.advance(LEASE_TTL - TICK)
    assert await queries.lease("w2") is None
    gateway.time.advance(TICK)
    second = await queries.lease("w2")

    assert first is not None
    assert second is not None
    assert (first["attempt"], second["attempt"]) == (1, 2)
    assert (await queries.get())["lease_owner"] == "w2"


async def test_a_query_whose_attempts_are_used_up_has_failed(queries: Queries, gateway: RunningGateway) -> None:
    await queries.submit()
    for attempt in (1, 2, 3):
        lease = await queries.lease()
        assert lease is not None
        assert lease["attempt"] == attempt
        gateway.time.advance(LEASE_TTL)

    assert await queries.lease() is None
    ended = await queries.get()
    assert (ended["status"], ended["attempts"]) == ("failed", 3)
    assert "3 attempts" in ended["error"]["message"]


async def test_a_query_older_than_its_lifetime_is_expired_and_leased_no_more(
    queries: Queries, gateway: RunningGateway
) -> None:
    await queries.submit("old")
    gateway.time.advance(TICK)
    await queries.submit("younger")
    gateway.time.advance(LIFETIME - TICK)
    lease = await queries.lease()

    assert lease is not None
    assert lease["query_id"] == "younger"
    assert (await queries.get("old"))["status"] == "expired"
    assert await queries.lease() is None


async def test_the_late_result_of_a_former_worker_is_refused_and_the_new_one_kept(
    queries: Queries, gateway: RunningGateway
) -> None:
    await queries.submit()
    first = await queries.lease("w1")
    assert first is not None
    gateway.time.advance(LEASE_TTL)
    second = await queries.lease("w2")
    assert second is not None

    with pytest.raises(QueryRefusedError) as before:
        await queries.bring(first, '{"from": "first"}', worker="w1")
    assert await queries.bring(second, '{"from": "second"}', worker="w2") == "succeeded"
    with pytest.raises(QueryRefusedError) as after:
        await queries.bring(first, '{"from": "first"}', worker="w1")

    assert (before.value.code, after.value.code) == (6006, 6006)
    assert (await queries.get())["result"] == {"from": "second"}


async def test_an_ended_query_is_deleted_after_its_retention_and_an_open_one_stays(
    swept_queries: Queries, sweeping: RunningGateway
) -> None:
    for query_id in ("ended", "ended a tick later"):
        await swept_queries.submit(query_id.replace(" ", "-"))
        lease = await swept_queries.lease()
        assert lease is not None
        await swept_queries.bring(lease)
        sweeping.time.advance(TICK)
    sweeping.time.advance(RETENTION - 2 * TICK)
    await swept_queries.submit("open")

    assert await _gone(swept_queries, "ended")
    assert (await swept_queries.get("ended-a-tick-later"))["status"] == "succeeded"
    assert (await swept_queries.get("open"))["status"] == "queued"
    sweeping.time.advance(TICK)
    assert await _gone(swept_queries, "ended-a-tick-later")
    assert sweeping.rows("SELECT query_id FROM query_results UNION SELECT query_id FROM query_attempts") == []


async def _gone(queries: Queries, query_id: str) -> bool:
    async with asyncio.timeout(60):
        while True:
            try:
                await queries.get(query_id)
            except QueryRefusedError as refusal:
                return refusal.code == 6005
            await asyncio.sleep(0.01)


async def test_the_site_s_own_json_comes_back_value_for_value(queries: Queries) -> None:
    raw = '{"raw":{"id":9223372036854775808123,"one":1.0,"text":"注文 \\u2028","nothing":null},"raw_available":true}'
    await queries.submit()
    lease = await queries.lease()
    assert lease is not None
    await queries.bring(lease, raw)

    result = (await queries.get())["result"]
    assert result["raw"] == {"id": 9223372036854775808123, "one": 1.0, "text": "注文 \u2028", "nothing": None}
    assert isinstance(result["raw"]["one"], float)


async def test_an_error_of_the_site_comes_back_with_its_code(queries: Queries) -> None:
    await queries.submit()
    lease = await queries.lease()
    assert lease is not None
    assert await queries.bring(lease, None, code=5001, message="the account is logged out") == "failed"

    ended = await queries.get()
    assert (ended["status"], ended["error"]) == ("failed", {"code": 5001, "message": "the account is logged out"})
    assert ended["result"] is None
