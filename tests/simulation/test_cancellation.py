"""Every call broken off at every await: nothing is half done, the next write works, no task and no memory is left."""

import asyncio
import gc
import random
import shutil
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from ordergateway.v1 import operations_pb2, order_leases_pb2, orders_pb2

from tests.simulation.gateway_machine import GatewayMachine
from tests.simulation.loop import VirtualLoop
from tests.simulation.run import template
from tests.simulation.trace import Trace
from tests.simulation.wire import Aborted, ServerContext

METADATA = (("authorization", "Bearer secret"),)
TABLES = ("tasks", "leases", "reports", "pauses")
SESSION, JOURNAL = "session-of-worker-1", "journal-of-worker-1"
MOST_TURNS = 60


class Gateway:
    """The real gateway on a loop of its own, reached through its guard."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        shutil.copy(template(), folder / "gateway.db")
        self.loop = VirtualLoop()
        self.machine = GatewayMachine(
            self.loop,
            folder,
            random.Random(1),  # noqa: S311 -- reproducible on purpose
            Trace(self.loop.time),
            lambda _database, _at: None,
        )
        self.token = ""

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    async def start(self) -> None:
        self.machine.start()
        await asyncio.sleep(1)

    async def call(self, service: str, method: str, request: Any) -> Any:
        handler = self.machine.server.handlers[f"/ordergateway.v1.{service}/{method}"]
        context = ServerContext(METADATA)
        if handler.unary_unary is not None:
            return await handler.unary_unary(request.SerializeToString(), context)
        messages = []
        async for message in handler.unary_stream(request.SerializeToString(), context):
            messages.append(message)
        return messages

    async def submit(self, task_id: str) -> None:
        await self.call(*submit(task_id))

    async def lease(self, task_id: str) -> None:
        await self.submit(task_id)
        messages = await self.call(*wait_for_lease())
        self.token = messages[-1].lease.lease_token

    async def hold(self, task_id: str) -> None:
        await self.lease(task_id)
        await self.call("OrderLeaseService", "RenewLease", renewal(self.token))

    async def stale(self, task_id: str) -> None:
        await self.hold(task_id)
        await self.call("OperationsService", "ExpireOrder", person("ExpireOrder"))

    def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        store = self.machine._store
        assert store is not None
        return {
            table: [tuple(row) for row in store._reading.execute(f"SELECT * FROM {table} ORDER BY 1, 2")]  # noqa: S608
            for table in TABLES
        }

    def close(self) -> None:
        self.machine.power_off()
        faults = list(self.loop.faults)
        self.loop.abandon()
        assert not faults


def submit(task_id: str) -> tuple[str, str, Any]:
    return (
        "OrderService",
        "SubmitOrder",
        orders_pb2.SubmitOrderRequest(task_id=task_id, site="sandbox", intent_json="{}"),
    )


def wait_for_lease(seconds: int = 5) -> tuple[str, str, Any]:
    return "OrderLeaseService", "LeaseOrders", order_leases_pb2.LeaseOrdersRequest(
        worker_id="w1", session_id=SESSION, journal_id=JOURNAL, sites=["sandbox"], wait=Duration(seconds=seconds)
    )  # fmt: skip


def renewal(token: str) -> Any:
    return order_leases_pb2.RenewLeaseRequest(task_id="t-1", worker_id="w1", lease_token=token)


def person(method: str, **fields: Any) -> Any:
    return getattr(operations_pb2, f"{method}Request")(task_id="t-1", reason="a reason", **fields)


def report(gateway: Gateway) -> Any:
    return order_leases_pb2.ReportOrderRequest(
        task_id="t-1", worker_id="w1", lease_token=gateway.token, sequence=1, state=orders_pb2.ORDER_STATE_ORDERED,
        site_order_id="A-1", terminal=True, terminal_status=orders_pb2.TASK_STATUS_NEEDS_HUMAN,
    )  # fmt: skip


def permit(gateway: Gateway) -> Any:
    return order_leases_pb2.RequestSubmitPermitRequest(
        task_id="t-1", worker_id="w1", lease_token=gateway.token, journal_id=JOURNAL, attests_no_click_record=True
    )


def reclaim() -> Any:
    return order_leases_pb2.ReclaimOrderRequest(task_id="t-1", worker_id="w1", session_id=SESSION, journal_id=JOURNAL)


Prepare = Callable[[Gateway], Awaitable[None]]
CALLS: dict[str, tuple[Prepare, Callable[[Gateway], tuple[str, str, Any]]]] = {
    "submit": (lambda g: g.submit("t-0"), lambda _: submit("t-1")),
    "get": (
        lambda g: g.submit("t-1"),
        lambda _: ("OrderService", "GetOrder", orders_pb2.GetOrderRequest(task_id="t-1")),
    ),
    "list": (lambda g: g.submit("t-1"), lambda _: ("OrderService", "ListOrders", orders_pb2.ListOrdersRequest())),
    "cancel": (
        lambda g: g.submit("t-1"),
        lambda _: ("OrderService", "CancelOrder", orders_pb2.CancelOrderRequest(task_id="t-1", reason="no")),
    ),
    "renew": (lambda g: g.lease("t-1"), lambda g: ("OrderLeaseService", "RenewLease", renewal(g.token))),
    "report": (lambda g: g.hold("t-1"), lambda g: ("OrderLeaseService", "ReportOrder", report(g))),
    "permit": (lambda g: g.hold("t-1"), lambda g: ("OrderLeaseService", "RequestSubmitPermit", permit(g))),
    "reclaim": (lambda g: g.stale("t-1"), lambda _: ("OrderLeaseService", "ReclaimOrder", reclaim())),
    "requeue": (lambda g: g.stale("t-1"), lambda _: ("OperationsService", "RequeueOrder", person("RequeueOrder"))),
    "expire": (lambda g: g.hold("t-1"), lambda _: ("OperationsService", "ExpireOrder", person("ExpireOrder"))),
    "resolve": (
        lambda g: g.stale("t-1"),
        lambda _: (
            "OperationsService",
            "ResolveOrder",
            person("ResolveOrder", outcome=orders_pb2.TASK_STATUS_SUCCEEDED),
        ),
    ),
    "pause": (
        lambda g: g.submit("t-1"),
        lambda _: ("OperationsService", "PauseDispatch", operations_pb2.PauseDispatchRequest(reason="a reason")),
    ),
    "health": (
        lambda g: g.submit("t-1"),
        lambda _: ("OperationsService", "GetHealth", operations_pb2.GetHealthRequest()),
    ),
    "decisions": (
        lambda g: g.stale("t-1"),
        lambda _: ("OperationsService", "ListDecisions", operations_pb2.ListDecisionsRequest()),
    ),
    "events": (
        lambda g: g.submit("t-1"),
        lambda _: ("OperationsService", "ListEvents", operations_pb2.ListEventsRequest()),
    ),
}


READING = ("get", "list", "health", "decisions", "events")


async def broken_off(gateway: Gateway, work: Coroutine[Any, Any, Any], turns: int) -> bool:
    """Lets `work` go on for some turns of the loop, then cancels it; True if it had ended before."""
    task = asyncio.ensure_future(work)
    for _ in range(turns):
        await asyncio.sleep(0.0005)  # a commit takes as long, so every await is passed
        if task.done():
            await task
            return True
    task.cancel()
    with suppress(asyncio.CancelledError, Aborted):
        await task
    return False


@pytest.mark.parametrize("name", CALLS)
def test_a_call_broken_off_at_any_await_is_done_or_not_done(tmp_path: Path, name: str) -> None:
    prepare, make = CALLS[name]
    outcomes = []
    for turns in range(MOST_TURNS):
        gateway = Gateway(tmp_path / f"{turns}")
        try:
            gateway.run(gateway.start())
            gateway.run(prepare(gateway))  # type: ignore[arg-type]
            before = gateway.rows()
            tasks = sum(not task.done() for task in gateway.loop.tasks.values())
            ended = gateway.run(broken_off(gateway, gateway.call(*make(gateway)), turns))
            gateway.run(asyncio.sleep(1))
            after = gateway.rows()
            assert sum(not task.done() for task in gateway.loop.tasks.values()) <= tasks + 1
            gateway.run(gateway.submit("t-next"))
            assert "t-next" in str(gateway.rows()["tasks"])
        finally:
            gateway.close()
        outcomes.append((ended, before, after))
        if ended:
            break
    assert outcomes[-1][0], "the call never ended"
    whole = statuses(outcomes[-1][2])
    if name not in READING:
        assert whole != statuses(outcomes[-1][1]), "the call changed nothing"
        assert len(outcomes) > 2, "it was broken off nowhere in between"
    for _, before, after in outcomes:
        assert statuses(after) in (statuses(before), whole)


def statuses(rows: dict[str, list[tuple[Any, ...]]]) -> dict[str, list[tuple[Any, ...]]]:
    """The rows without their times, which differ from run to run."""
    return {
        table: [tuple(value for value in row if not _is_a_time(value)) for row in found]
        for table, found in rows.items()
    }


def _is_a_time(value: Any) -> bool:
    return (isinstance(value, str) and value.startswith("20") and value.endswith("Z")) or (
        isinstance(value, int) and value > 10_000
    )


@pytest.mark.parametrize("filed_first", [True, False])
def test_a_lease_stream_broken_off_at_any_await_takes_nothing_with_it(tmp_path: Path, filed_first: bool) -> None:
    for turns in range(12):
        gateway = Gateway(tmp_path / f"{turns}")
        try:
            gateway.run(gateway.start())
            if filed_first:
                gateway.run(gateway.submit("t-1"))
            gateway.run(broken_off(gateway, watched(gateway), turns))
            if not filed_first:
                gateway.run(gateway.submit("t-1"))
            gateway.run(asyncio.sleep(1))
            (task,) = gateway.rows()["tasks"]
            assert ("queued" in task) or gateway.token, f"leased to nobody after {turns} turns"
        finally:
            gateway.close()


async def watched(gateway: Gateway) -> None:
    """A lease stream whose lease, once it was handed over, is in somebody's hand."""
    service, method, request = wait_for_lease()
    handler = gateway.machine.server.handlers[f"/ordergateway.v1.{service}/{method}"]
    async for message in handler.unary_stream(request.SerializeToString(), ServerContext(METADATA)):
        if message.HasField("lease"):
            gateway.token = message.lease.lease_token


@pytest.mark.parametrize(
    "method", ["LeaseOrders", "WatchOrder"], ids=["ten thousand lease streams", "ten thousand watches"]
)
def test_cancelled_waits_leave_no_growth(tmp_path: Path, method: str) -> None:
    gateway = Gateway(tmp_path / "gateway")

    async def wait_and_go(count: int) -> None:
        for _ in range(count // 100):
            waiting = [asyncio.ensure_future(gateway.call(*wait())) for _ in range(100)]
            await asyncio.sleep(0.05)
            for one in waiting:
                one.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            await asyncio.sleep(0.05)
        gateway.loop.forget_done()

    def wait() -> tuple[str, str, Any]:
        if method == "LeaseOrders":
            return wait_for_lease(20)
        return "OrderService", "WatchOrder", orders_pb2.WatchOrderRequest(task_id="t-1")

    async def objects() -> int:
        await asyncio.sleep(30)  # timers that were cancelled leave the loop when they would have been due
        gc.collect()
        return len(gc.get_objects())

    try:
        gateway.run(gateway.start())
        if method == "WatchOrder":
            gateway.run(gateway.submit("t-1"))
        gateway.run(wait_and_go(500))
        before = gateway.run(objects())
        gateway.run(wait_and_go(10_000))
        assert gateway.run(objects()) - before < 500
    finally:
        gateway.close()
