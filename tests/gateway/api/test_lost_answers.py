"""An answer that is lost after the commit is healed by sending the same request again.

The rule: docs/protocol.md#one-order-call-by-call.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import grpc
import pytest
from ordergateway.v1 import order_leases_pb2

from gateway.domain.states import OrderState, TaskStatus
from tests.gateway.support.grpc_api import GrpcApi, connected, duration, heartbeat_of
from tests.gateway.support.in_process import RunningGateway
from tests.gateway.support.proxy import Proxy


@pytest.fixture
async def proxy(gateway: RunningGateway) -> AsyncIterator[Proxy]:
    async with Proxy(gateway.port) as made:
        yield made


@pytest.fixture
async def lossy(proxy: Proxy) -> AsyncIterator[GrpcApi]:
    """A client whose connection goes through the proxy."""
    async with connected(proxy.port) as api:
        await api.health()
        yield api


Lose = Callable[[Coroutine[Any, Any, object], str], Coroutine[Any, Any, None]]


@pytest.fixture
def lose(gateway: RunningGateway, proxy: Proxy) -> Lose:
    """Make a call, wait until its event is committed, and lose the answer with the connection."""

    async def lose(call: Coroutine[Any, Any, object], event: str) -> None:
        def told() -> int:
            return len(gateway.rows("SELECT 1 FROM events WHERE kind = ?", event))

        before = told()
        proxy.lose_answers = True
        calling = asyncio.ensure_future(call)
        async with asyncio.timeout(60):
            while told() == before:
                assert not calling.done(), calling
                await asyncio.sleep(0.01)
        proxy.cut()
        with pytest.raises(grpc.aio.AioRpcError) as lost:
            await calling
        assert lost.value.code() is grpc.StatusCode.UNAVAILABLE
        proxy.lose_answers = False

    return lose


async def repeated(call: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Send a request again until the connection is there again."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await call()
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise
                await asyncio.sleep(0.05)


async def test_of_a_submission(api: GrpcApi, lossy: GrpcApi, lose: Lose) -> None:
    await lose(lossy.submit(), "submit")
    again = await repeated(lossy.submit)
    assert (again.created, again.intent_matches) == (False, True)
    assert len((await api.list()).tasks) == 1


async def test_of_a_lease(api: GrpcApi, gateway: RunningGateway, lossy: GrpcApi, lose: Lose) -> None:
    await api.submit()
    await lose(lossy.lease(wait=20), "lease")
    again = await repeated(lossy.lease)
    assert (again.task_id, again.lease_count) == ("po-1", 1)
    (row,) = gateway.rows("SELECT token FROM leases")
    assert again.lease_token == row["token"]
    await lossy.renew(again)


async def test_of_a_lease_that_was_waited_for(
    api: GrpcApi, gateway: RunningGateway, proxy: Proxy, lossy: GrpcApi
) -> None:
    stream = lossy.stream(wait=20)
    await heartbeat_of(stream)
    proxy.lose_answers = True
    await api.submit()
    async with asyncio.timeout(60):
        while not proxy.swallowed:  # noqa: ASYNC110 - it gives no signal
            await asyncio.sleep(0.01)
    proxy.cut()
    proxy.lose_answers = False
    again = await repeated(lossy.lease)
    assert (again.task_id, again.lease_count) == ("po-1", 1)
    assert len(gateway.rows("SELECT token FROM leases")) == 1


async def test_of_an_acknowledgement_and_of_a_renewal(api: GrpcApi, lossy: GrpcApi, lose: Lose) -> None:
    await api.submit()
    lease = await lossy.lease()
    assert lease is not None
    for event in ("acknowledge", "renew"):
        await lose(lossy.renew(lease), event)
        again = await repeated(lambda: lossy.renew(lease))
        assert (again.task_id, again.lease_count) == ("po-1", 1)


@pytest.mark.parametrize("terminal", [False, True])
async def test_of_a_report(api: GrpcApi, lossy: GrpcApi, lose: Lose, *, terminal: bool) -> None:
    lease = await api.take()
    told: dict[str, Any] = {"state": OrderState.PAID, "sequence": 3, "terminal": terminal}
    await lose(lossy.report(lease, **told), "finish" if terminal else "report")
    again = await repeated(lambda: lossy.report(lease, **told))
    assert not again.recorded
    task = await api.task()
    assert len(task.reports) == 1
    assert await api.status() is (TaskStatus.SUCCEEDED if terminal else TaskStatus.RUNNING)


async def test_of_a_permit(gateway: RunningGateway, api: GrpcApi, lossy: GrpcApi, lose: Lose) -> None:
    lease = await api.take()
    await lose(lossy.permit(lease), "permit")
    gateway.time.advance(7)
    again = await repeated(lambda: lossy.permit(lease))
    assert again.valid_for == duration(23)
    assert len(gateway.rows("SELECT 1 FROM events WHERE kind = 'permit'")) == 1


async def test_of_a_reclaim(gateway: RunningGateway, api: GrpcApi, lossy: GrpcApi, lose: Lose) -> None:
    await api.take()
    gateway.time.advance(300)
    await lose(lossy.reclaim(), "reclaim")
    again: order_leases_pb2.Lease = await repeated(lossy.reclaim)
    assert again.lease_count == 2
    assert len(gateway.rows("SELECT token FROM leases")) == 2
    await api.renew(again)


async def test_of_a_cancel(api: GrpcApi, lossy: GrpcApi, lose: Lose) -> None:
    await api.submit()
    await lose(lossy.cancel(), "cancel")
    assert (await repeated(lossy.cancel)).task_id == "po-1"
    assert await api.status() is TaskStatus.FAILED
