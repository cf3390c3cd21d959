"""How lease and watch streams behave: lost answers, clients that go away, ends, shutdown."""

import asyncio
from datetime import timedelta

import grpc
import pytest
from ordergateway.v1 import account_queries_pb2

from gateway.domain.states import OrderState, TaskStatus
from tests.gateway.account_queries.clients import OverGrpc, QueryRefusedError, over_rest
from tests.gateway.support import dump
from tests.gateway.support.in_process import RunningGateway

SESSION = "session-of-queries-1"
LEASE_TTL = timedelta(seconds=180)


async def test_a_query_whose_answer_was_lost_is_handed_over_again_to_its_session(grpc_queries: OverGrpc) -> None:
    await grpc_queries.submit("aq-1")
    await grpc_queries.submit("aq-2")
    first = await grpc_queries.lease(held=(), session=SESSION)
    again = await grpc_queries.lease(held=(), session=SESSION)
    assert first is not None
    assert again == first

    second = await grpc_queries.lease(held=("aq-1",), session=SESSION)
    assert second is not None
    assert (second["query_id"], second["attempt"]) == ("aq-2", 1)
    assert await grpc_queries.lease(held=("aq-1", "aq-2"), session=SESSION) is None


async def test_another_session_or_worker_does_not_get_it(grpc_queries: OverGrpc) -> None:
    await grpc_queries.submit()
    assert await grpc_queries.lease(held=(), session=SESSION) is not None
    assert await grpc_queries.lease(held=(), session="session-of-queries-2") is None
    assert await grpc_queries.lease("w2", held=(), session=SESSION) is None


async def test_a_repeat_after_the_lease_ran_out_is_a_new_attempt(
    grpc_queries: OverGrpc, gateway: RunningGateway
) -> None:
    await grpc_queries.submit()
    await grpc_queries.lease(held=(), session=SESSION)
    gateway.time.advance(LEASE_TTL)
    again = await grpc_queries.lease(held=(), session=SESSION)
    assert again is not None
    assert again["attempt"] == 2


async def test_a_waiting_stream_gets_the_query_as_it_is_filed(grpc_queries: OverGrpc) -> None:
    stream = grpc_queries.stream("w1", 30, (), SESSION)
    assert (await stream.read()).HasField("heartbeat")
    await grpc_queries.submit()
    assert (await asyncio.wait_for(stream.read(), 60)).lease.query_id == "q-1"
    assert await stream.read() is grpc.aio.EOF


async def test_a_client_that_goes_away_gets_nothing(grpc_queries: OverGrpc, gateway: RunningGateway) -> None:
    stream = grpc_queries.stream("w1", 30, (), SESSION)
    assert (await stream.read()).HasField("heartbeat")
    async with over_rest(gateway.http_port) as rest:
        polling = asyncio.create_task(rest.lease("w2", wait=30))
        other = grpc_queries.stream("w3", 30, (), "session-of-queries-3")
        assert (await other.read()).HasField("heartbeat")
        stream.cancel()
        polling.cancel()
        await asyncio.gather(polling, return_exceptions=True)
        await grpc_queries.submit()
        assert (await asyncio.wait_for(other.read(), 60)).lease.attempt == 1
    assert (await grpc_queries.get())["lease_owner"] == "w3"


async def test_a_watch_tells_each_change_and_ends_with_the_query(
    grpc_queries: OverGrpc, gateway: RunningGateway
) -> None:
    await grpc_queries.submit()
    stream = grpc_queries.upstream.WatchQuery(account_queries_pb2.WatchQueryRequest(query_id="q-1"))
    seen = [(await stream.read()).query.status]
    lease = await grpc_queries.lease()
    assert lease is not None
    seen.append((await stream.read()).query.status)
    await grpc_queries.bring(lease, '{"orders":[]}')
    last = await stream.read()

    assert [account_queries_pb2.QueryStatus.Name(status) for status in seen] == [
        "QUERY_STATUS_QUEUED",
        "QUERY_STATUS_LEASED",
    ]
    assert last.query.result_json == '{"orders":[]}'
    assert await stream.read() is grpc.aio.EOF


async def test_a_watch_of_an_ended_query_tells_it_and_ends_and_one_of_an_unknown_query_is_refused(
    grpc_queries: OverGrpc,
) -> None:
    await grpc_queries.submit()
    lease = await grpc_queries.lease()
    assert lease is not None
    await grpc_queries.bring(lease)
    assert (await grpc_queries.ended())["status"] == "succeeded"

    stream = grpc_queries.upstream.WatchQuery(account_queries_pb2.WatchQueryRequest(query_id="q-2"))
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await stream.read()
    assert refusal.value.code() is grpc.StatusCode.NOT_FOUND


async def test_a_query_that_a_sweep_ends_is_told_to_who_watches(swept_grpc: OverGrpc, sweeping: RunningGateway) -> None:
    await swept_grpc.submit()
    await swept_grpc.lease()
    sweeping.time.advance(LEASE_TTL)
    assert (await asyncio.wait_for(swept_grpc.until("queued"), 60))["attempts"] == 1
    sweeping.time.advance(timedelta(seconds=900))
    ended = await asyncio.wait_for(swept_grpc.ended(), 60)
    assert (ended["status"], ended["error"]["code"]) == ("expired", 0)


async def test_a_change_whose_hint_was_lost_is_told_all_the_same(
    grpc_queries: OverGrpc, gateway: RunningGateway
) -> None:
    await grpc_queries.submit()
    watching = asyncio.create_task(grpc_queries.until("failed"))
    waiting = asyncio.create_task(grpc_queries.lease(wait=30, held=(), session=SESSION))
    lease = await asyncio.wait_for(waiting, 60)
    assert lease is not None
    await asyncio.wait_for(grpc_queries.until("leased"), 60)
    dump.execute(
        gateway.path,
        "UPDATE account_queries SET status = 'failed', lease_owner = NULL, lease_session = NULL, "
        "lease_expires_at = NULL, lease_deadline_us = NULL, error_code = 1, error_message = 'by another process', "
        "completed_at = updated_at, completed_us = 0, updated_at = '2026-11-30T00:00:00.000000Z'",
    )
    assert (await asyncio.wait_for(watching, 60))["error"]["message"] == "by another process"


async def test_streams_end_at_shutdown_with_a_status_that_says_come_back(
    grpc_queries: OverGrpc, gateway: RunningGateway
) -> None:
    await grpc_queries.submit("watched")
    assert await grpc_queries.lease(held=(), session=SESSION) is not None
    waiting = grpc_queries.stream("w1", 30, ("watched",), SESSION)
    watching = grpc_queries.upstream.WatchQuery(account_queries_pb2.WatchQueryRequest(query_id="watched"))
    await waiting.read()
    await watching.read()
    gateway.stop.set()
    for stream in (waiting, watching):
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await asyncio.wait_for(stream.read(), 60)
        assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_who_waits_names_itself_and_at_most_64_queries_in_hand(grpc_queries: OverGrpc) -> None:
    for worker, session, held in (
        ("", SESSION, ()),
        ("w1", "short", ()),
        ("w1", SESSION, ("a b",)),
        ("w1", SESSION, tuple(f"aq-{number}" for number in range(65))),
    ):
        stream = grpc_queries.stream(worker, 0, held, session)
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await stream.read()
        assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_rest_has_no_call_that_waits_for_a_result(gateway: RunningGateway) -> None:
    async with over_rest(gateway.http_port) as rest:
        await rest.submit()
        for path in ("/api/account/queries/q-1/wait", "/api/account/queries/q-1/result"):
            answer = await rest.client.get(path)
            assert answer.status_code in (404, 405)
        with pytest.raises(QueryRefusedError):
            await rest.get("q-2")


async def test_orders_go_on_beside_a_hundred_queries_in_flight_and_queries_beside_an_order(
    grpc_queries: OverGrpc, gateway: RunningGateway
) -> None:
    await asyncio.gather(*(grpc_queries.submit(f"aq-{number}") for number in range(100)))
    in_flight = [await grpc_queries.lease() for _ in range(100)]
    waiting = [grpc_queries.stream("w1", 30, (), f"session-waiting-{number:03d}") for number in range(100)]
    await asyncio.gather(*(stream.read() for stream in waiting))
    for number in range(10):
        lease = await gateway.api.take(f"po-{number}")
        await gateway.api.report(lease, OrderState.PAID, terminal=True)

    await gateway.api.take("po-held")
    for lease in in_flight:
        assert lease is not None
        assert await grpc_queries.bring(lease) == "succeeded"
    await asyncio.gather(*(grpc_queries.submit(f"more-{number}") for number in range(100)))
    taken = await asyncio.wait_for(asyncio.gather(*(stream.read() for stream in waiting)), 60)
    assert {message.lease.query_id for message in taken} == {f"more-{number}" for number in range(100)}
    assert await gateway.api.status("po-held") is TaskStatus.LEASED
