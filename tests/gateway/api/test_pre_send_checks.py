"""What is looked at last, in the very turn in which a lease would be handed over or the gateway ends."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from ordergateway.v1.account_queries_pb2 import QUERY_KIND_ORDER_LIST, SubmitQueryRequest
from ordergateway.v1.account_queries_pb2_grpc import AccountQueryServiceStub
from ordergateway.v1.query_leases_pb2 import LeaseQueriesRequest
from ordergateway.v1.query_leases_pb2_grpc import QueryLeaseServiceStub

from gateway.api.auth.admission import Admission
from gateway.api.auth.authenticator import OPEN, Authenticator
from gateway.api.call import Call
from gateway.api.rest.long_poll import LongPoll
from gateway.dispatch.dispatcher import Dispatcher
from tests.gateway.support import dump
from tests.gateway.support.grpc_api import duration
from tests.gateway.support.in_process import RunningGateway, running_gateway


class Lease:
    """A lease to hand over, which notes whether it was."""

    def __init__(self) -> None:
        self.lease = {"task_id": "po-1"}
        self.handed_over = False

    def mark_delivered(self) -> None:
        self.handed_over = True


async def answered(*, leaves: bool) -> tuple[bool, list[Any]]:
    """What a long poll does whose client leaves, or does not, just as the lease comes."""
    lease, sent = Lease(), []
    lease_comes = asyncio.Event()

    @asynccontextmanager
    async def wait(_gone: "asyncio.Future[Any]") -> AsyncIterator[Lease]:
        lease_comes.set()  # from here on the client's leaving is on its way in
        yield lease

    async def receive() -> dict[str, Any]:
        await lease_comes.wait()
        if not leaves:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    poll = LongPoll(wait, lambda leased: leased, Admission(Authenticator({})), Call(OPEN), "test")
    await poll({"type": "http", "method": "GET", "headers": []}, receive, send)
    return lease.handed_over, sent


async def test_a_client_that_leaves_just_as_its_lease_comes_is_not_given_it() -> None:
    assert await answered(leaves=True) == (False, [])
    handed_over, sent = await answered(leaves=False)
    assert handed_over
    assert sent[0]["status"] == 200


async def an_order(gateway: RunningGateway) -> Callable[[], Awaitable[object]]:
    """Wait for an order; return what files one."""
    stream = gateway.api.stream("w1", 30)
    await stream.read()
    return gateway.api.submit


async def a_query(gateway: RunningGateway) -> Callable[[], Awaitable[object]]:
    """The same for a query."""
    request = LeaseQueriesRequest(
        worker_id="w1", session_id="session-of-worker-1", sites=["sandbox"], wait=duration(30)
    )
    stream = QueryLeaseServiceStub(gateway.api.channel).LeaseQueries(request)
    await stream.read()
    filed = SubmitQueryRequest(site="sandbox", kind=QUERY_KIND_ORDER_LIST, params_json="{}")
    return lambda: AccountQueryServiceStub(gateway.api.channel).SubmitQuery(filed)


@pytest.mark.parametrize(
    ("wait", "looked_at"),
    [
        (an_order, "SELECT status, lease_count AS taken FROM tasks"),
        (a_query, "SELECT status, attempts AS taken FROM account_queries"),
    ],
)
async def test_a_stop_waits_until_a_lease_that_nobody_took_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wait: Any, looked_at: str
) -> None:
    """The gateway stops in the turn in which a lease has been made out for a stream."""
    make, deliver, release = Dispatcher.__init__, Dispatcher._deliver, Dispatcher._release
    dispatchers: list[Any] = []
    stops: list[asyncio.Event] = []

    def noted(dispatcher: Any, *parts: Any) -> None:
        make(dispatcher, *parts)
        dispatchers.append(dispatcher)

    def stop_then(dispatcher: Any, taken: Any) -> None:
        deliver(dispatcher, taken)
        dispatcher._notifier.close()
        stops[0].set()

    async def slowly(dispatcher: Any, request: Any, lease: Any) -> None:
        for _ in range(50):  # a slow disk: many turns of the loop
            await asyncio.sleep(0.005)
        await release(dispatcher, request, lease)

    monkeypatch.setattr(Dispatcher, "__init__", noted)
    monkeypatch.setattr(Dispatcher, "_deliver", stop_then)
    monkeypatch.setattr(Dispatcher, "_release", slowly)
    async with running_gateway(tmp_path) as gateway:
        stops.append(gateway.stop)
        file = await wait(gateway)
        async with asyncio.timeout(60):
            while not any(dispatcher.waiting() for dispatcher in dispatchers):  # noqa: ASYNC110 - the desk gives no signal
                await asyncio.sleep(0.002)
        await file()
        await asyncio.wait_for(asyncio.shield(gateway.ended), 60)
    assert dump.rows(gateway.path, looked_at) == [{"status": "queued", "taken": 0}]
