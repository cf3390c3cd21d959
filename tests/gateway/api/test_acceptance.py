"""The gateway's lines of the acceptance list (docs/specification.md), over real gRPC."""

import asyncio
from datetime import timedelta

import pytest
from ordergateway.v1 import operations_pb2, orders_pb2

from gateway.domain.refusals import Reason
from gateway.domain.states import OrderState, TaskStatus
from tests.gateway.support.grpc_api import GrpcApi, RefusedCallError, heartbeat_of
from tests.gateway.support.in_process import RunningGateway
from tests.gateway.support.manual_time import TICK

TTL = timedelta(seconds=300)


async def test_the_same_task_id_twice_makes_one_task(api: GrpcApi) -> None:
    first = await api.submit("po-1", '{"item_url": "https://shop/a"}')
    second = await api.submit("po-1", '{"item_url": "https://shop/a"}')
    assert (first.created, second.created) == (True, False)
    assert second.intent_matches
    assert [task.task_id for task in (await api.list()).tasks] == ["po-1"]


async def test_the_same_task_id_with_another_intent_changes_nothing_and_says_so(api: GrpcApi) -> None:
    await api.submit("po-1", '{"a": 1}', callback_url="https://up/1")
    second = await api.submit("po-1", '{"a": 1.0}', callback_url="https://up/2")
    assert (second.created, second.intent_matches) == (False, False)
    task = await api.task()
    assert (task.intent_json, task.callback_url) == ('{"a": 1}', "https://up/1")


async def test_two_workers_lease_at_once_and_one_gets_the_task(api: GrpcApi) -> None:
    await api.submit()
    leases = await asyncio.gather(*(api.lease(f"w{number}", wait=0.2) for number in range(2)))
    assert len([lease for lease in leases if lease is not None]) == 1


@pytest.mark.parametrize("running", [False, True])
async def test_with_an_active_task_every_lease_is_empty(api: GrpcApi, *, running: bool) -> None:
    lease = await api.take("po-1")
    if running:
        await api.report(lease)
    await api.submit("po-2")
    assert await api.lease("w1") is None
    assert await api.lease("w2", wait=0.2) is None
    assert await api.status("po-2") is TaskStatus.QUEUED


async def test_an_empty_queue_hangs_until_wait_and_ends_ok_without_a_lease(api: GrpcApi) -> None:
    clock = asyncio.get_running_loop().time
    begun = clock()
    assert await api.lease(wait=0.7) is None
    assert 0.7 <= clock() - begun < 20


async def test_a_waiting_lease_is_woken_by_a_submission(api: GrpcApi) -> None:
    stream = api.stream(wait=20)
    await heartbeat_of(stream)
    await api.submit()
    message = await asyncio.wait_for(stream.read(), 60)
    assert message.lease.task_id == "po-1"  # type: ignore[union-attr]
    assert (await asyncio.wait_for(stream.code(), 60)).value[0] == 0


async def test_a_waiting_lease_is_woken_by_the_end_of_the_active_task(api: GrpcApi) -> None:
    lease = await api.take("po-1")
    await api.submit("po-2")
    stream = api.stream("w2", wait=20)
    await heartbeat_of(stream)
    await api.report(lease, OrderState.PAID, terminal=True)
    message = await asyncio.wait_for(stream.read(), 60)
    assert message.lease.task_id == "po-2"  # type: ignore[union-attr]


async def test_a_repeated_report_of_one_state_makes_no_second_record(api: GrpcApi) -> None:
    lease = await api.take()
    first = await api.report(lease, OrderState.IN_CART, sequence=1, detail="two items")
    second = await api.report(lease, OrderState.IN_CART, sequence=1, detail="two items")
    assert (first.recorded, second.recorded) == (True, False)
    assert [report.detail for report in (await api.task()).reports] == ["two items"]


async def test_the_first_report_makes_a_leased_task_running(api: GrpcApi) -> None:
    lease = await api.take()
    assert await api.status() is TaskStatus.LEASED
    await api.report(lease)
    assert await api.status() is TaskStatus.RUNNING


@pytest.mark.parametrize("reported", [False, True])
async def test_an_expired_lease_turns_stale_and_no_ordinary_lease_gets_it(
    gateway: RunningGateway, api: GrpcApi, *, reported: bool
) -> None:
    lease = await api.take()
    if reported:
        await api.report(lease)
    gateway.time.advance(TTL - TICK)
    assert await api.lease("w2") is None
    assert await api.status() is (TaskStatus.RUNNING if reported else TaskStatus.LEASED)
    gateway.time.advance(TICK)
    assert await api.lease("w2") is None
    assert await api.status() is TaskStatus.STALE
    assert await api.lease("w1", wait=0.2) is None
    assert await api.status() is TaskStatus.STALE
    with pytest.raises(RefusedCallError) as refused:
        await api.renew(lease)
    assert refused.value.reason is Reason.LEASE_INVALID


async def test_reclaim_brings_a_lease_count_above_one_and_the_known_state(
    gateway: RunningGateway, api: GrpcApi
) -> None:
    lease = await api.take()
    await api.report(lease, OrderState.ORDERED, site_order_id="266123-1")
    gateway.time.advance(TTL)
    again = await api.reclaim("po-1", "w2")
    assert again.lease_count == 2
    assert again.known_state == orders_pb2.ORDER_STATE_ORDERED
    assert again.lease_token != lease.lease_token
    assert (await api.renew(again, "w2")).lease_count == 2


async def test_a_task_of_a_site_that_the_worker_does_not_name_is_not_reclaimed(
    gateway: RunningGateway, api: GrpcApi
) -> None:
    await api.take()
    gateway.time.advance(TTL)
    with pytest.raises(RefusedCallError) as refused:
        await api.reclaim("po-1", "w2", sites=("sandbox",))
    assert refused.value.reason is Reason.STATUS_CONFLICT
    assert (await api.reclaim("po-1", "w2", sites=("sandbox", "rakuten"))).lease_count == 2


async def test_a_first_lease_knows_no_state(api: GrpcApi) -> None:
    lease = await api.take()
    assert (lease.lease_count, lease.known_state) == (1, orders_pb2.ORDER_STATE_UNSPECIFIED)


async def test_a_silent_worker_shows_in_health(gateway: RunningGateway, api: GrpcApi) -> None:
    gateway.lead_on()
    await api.lease("w1")
    health = await api.health()
    assert (health.status, list(health.offline_workers)) == (operations_pb2.HEALTH_STATUS_OK, [])
    gateway.time.advance(300)
    assert (await api.health()).status == operations_pb2.HEALTH_STATUS_OK
    gateway.time.advance(TICK)
    health = await api.health()
    assert (health.status, list(health.offline_workers)) == (operations_pb2.HEALTH_STATUS_DEGRADED, ["w1"])
    await api.lease("w1")
    assert (await api.health()).status == operations_pb2.HEALTH_STATUS_OK


async def test_a_task_that_nobody_takes_shows_in_health(gateway: RunningGateway, api: GrpcApi) -> None:
    gateway.lead_on()
    await api.submit()
    gateway.time.advance(600)
    assert (await api.health()).status == operations_pb2.HEALTH_STATUS_OK
    gateway.time.advance(TICK)
    health = await api.health()
    assert health.status == operations_pb2.HEALTH_STATUS_DEGRADED
    assert [task.task_id for task in health.stale_queued_tasks] == ["po-1"]
