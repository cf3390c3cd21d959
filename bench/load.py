"""The load: one client process. `python -m bench.load KIND AMOUNT TARGET [OTHER]` prints one line of JSON.

    submit SECONDS   32 callers submit as fast as they are answered      {"per_second": ..., "ms": [...], "done": ...}
    many SECONDS     the same of 128 callers
    batch SECONDS    4 callers submit 100 orders in each call            {"per_second": orders ..., "done": ...}
    wakeup COUNT     a worker waits, then an order is submitted          {"ms": [...]}: submit sent to lease received
    cycle SECONDS    submit, lease, acknowledge, report, terminal report {"per_second": ..., "done": ...}, one by one
    lease COUNT      a worker takes queued orders and ends each          {"ms": [...]}: stream opened to lease received
    idle COUNT       so many workers wait on an empty queue              prints "waiting" when all do, until ended

With OTHER, a second gateway on the same database, half of the callers submit there, and the worker waits and reports
there. `done` counts all orders, those of the warm-up too. Every answer is checked; a wrong one ends the run with an
error.
"""

import asyncio
import json
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import grpc
from google.protobuf.duration_pb2 import Duration
from ordergateway.v1 import order_leases_pb2 as leases
from ordergateway.v1 import order_leases_pb2_grpc, orders_pb2_grpc
from ordergateway.v1 import orders_pb2 as orders

TOKEN: Final = "benchmark-token-that-opens-nothing-else"  # noqa: S105 - it opens nothing else
SESSION: Final = uuid.uuid4().hex
CALLERS: Final = 32
MANY_CALLERS: Final = 128
BATCH_CALLERS: Final = 4
BATCH: Final = 100
WARM_UP_SECONDS: Final = 0.5
OWN_CONNECTION: Final = (("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0))
METADATA: Final = (("authorization", f"Bearer {TOKEN}"),)
INTENT: Final = json.dumps(
    {
        "items": [{"item_url": "https://shop.example/items/1", "quantity": 2, "variant_id": "red"}],
        "options": {"payment": "card"},
        "max_total_yen": 30000,
    }
)


def intent_of(task_id: str) -> str:
    """An intent of the size of INTENT that no other order has: equal ones are told as the same wish."""
    return INTENT.replace("items/1", f"items/{task_id[:8]}")


@dataclass(frozen=True, slots=True)
class Client:
    """Both sides of the queue, over one channel each, as upstream and worker have. The worker serves `accounts`."""

    upstream: "orders_pb2_grpc.OrderServiceAsyncStub"
    worker: "order_leases_pb2_grpc.OrderLeaseServiceAsyncStub"
    worker_id: str = "bench"
    session_id: str = SESSION
    accounts: tuple[str, ...] = ()

    async def submit(self, account: str = "") -> str:
        """Files an order under a new task_id."""
        task_id = uuid.uuid4().hex
        request = orders.SubmitOrderRequest(
            task_id=task_id, site="sandbox", intent_json=intent_of(task_id), account=account
        )
        answer = await self.upstream.SubmitOrder(request, metadata=METADATA)
        if answer.task_id != task_id or not answer.created:
            raise AssertionError(f"unexpected answer to a submission: {answer}")
        return task_id

    async def submit_batch(self) -> None:
        """Files BATCH orders in one call."""
        task_ids = [uuid.uuid4().hex for _ in range(BATCH)]
        request = orders.SubmitOrdersRequest(
            orders=[
                orders.SubmitOrderRequest(task_id=task_id, site="sandbox", intent_json=intent_of(task_id))
                for task_id in task_ids
            ]
        )
        answer = await self.upstream.SubmitOrders(request, metadata=METADATA)
        if [each.submitted.task_id for each in answer.results if each.submitted.created] != task_ids:
            raise AssertionError(f"unexpected answer to a batch: {answer}")

    def open_stream(self) -> "grpc.aio.UnaryStreamCall[leases.LeaseOrdersRequest, leases.LeaseOrdersResponse]":
        """Opens a lease stream."""
        request = leases.LeaseOrdersRequest(
            worker_id=self.worker_id, session_id=self.session_id, journal_id=f"journal-of-{self.session_id}",
            sites=["sandbox"], accounts=self.accounts, wait=Duration(seconds=60),
        )  # fmt: skip
        return self.worker.LeaseOrders(request, metadata=METADATA)

    async def acknowledge(self, lease: leases.Lease) -> None:
        """The first renewal."""
        request = leases.RenewLeaseRequest(
            task_id=lease.task_id, worker_id=self.worker_id, lease_token=lease.lease_token
        )
        await self.worker.RenewLease(request, metadata=METADATA)

    async def report(self, lease: leases.Lease, state: "orders.OrderState.ValueType", sequence: int) -> None:
        """Reports a state; `paid` ends the task."""
        request = leases.ReportOrderRequest(
            task_id=lease.task_id, worker_id=self.worker_id, lease_token=lease.lease_token, sequence=sequence,
            state=state, payable_yen=12800, evidence_ref=f"{lease.task_id}/01-cart-add",
            terminal=state == orders.ORDER_STATE_PAID,
        )  # fmt: skip
        answer = await self.worker.ReportOrder(request, metadata=METADATA)
        if not answer.recorded:
            raise AssertionError(f"unexpected answer to a report: {answer}")


async def next_lease(
    call: "grpc.aio.UnaryStreamCall[leases.LeaseOrdersRequest, leases.LeaseOrdersResponse]",
) -> leases.Lease:
    """The lease that a stream brings, heartbeats passed over."""
    while True:
        message = await call.read()
        if not isinstance(message, leases.LeaseOrdersResponse):
            raise AssertionError("the lease stream ended without a lease")  # noqa: TRY004 - it is the answer, not a type
        if message.HasField("lease"):
            return message.lease


async def submit(clients: Sequence[Client], seconds: float, callers: int = CALLERS) -> dict[str, object]:
    """Submissions of so many callers, as many at each gateway, for so many seconds, after a warm-up."""
    return await as_fast_as_answered([client.submit for client in clients], 1, seconds, callers)


async def batch(clients: Sequence[Client], seconds: float) -> dict[str, object]:
    """The same with BATCH orders in each call."""
    return await as_fast_as_answered([client.submit_batch for client in clients], BATCH, seconds, BATCH_CALLERS)


async def as_fast_as_answered(
    calls: Sequence[Callable[[], Awaitable[object]]], orders_a_call: int, seconds: float, callers: int
) -> dict[str, object]:
    """Callers that call again once they are answered."""
    done = 0
    times: list[float] = []
    counted_from = time.perf_counter() + WARM_UP_SECONDS
    end = counted_from + seconds

    async def caller(call: Callable[[], Awaitable[object]]) -> None:
        nonlocal done
        while (started := time.perf_counter()) < end:
            await call()
            done += orders_a_call
            if started >= counted_from:
                times.append(time.perf_counter() - started)

    await asyncio.gather(*(caller(calls[number % len(calls)]) for number in range(callers)))
    per_second = len(times) * orders_a_call / (time.perf_counter() - counted_from)
    return {"per_second": per_second, "ms": in_milliseconds(times), "done": done}


async def wakeup(client: Client, count: float) -> dict[str, object]:
    """From the moment a submission is sent on an idle queue until the waiting worker holds the lease."""
    times = []
    for _ in range(int(count)):
        call = client.open_stream()
        await call.read()  # the first heartbeat: the worker waits from here
        await asyncio.sleep(0.02)  # idle, as an idle queue is: the stream has been opened on disk by then
        started = time.perf_counter()
        submission = asyncio.ensure_future(client.submit())
        lease = await next_lease(call)
        times.append(time.perf_counter() - started)
        if lease.task_id != await submission:
            raise AssertionError("another order was leased")
        await client.acknowledge(lease)
        await client.report(lease, orders.ORDER_STATE_PAID, 1)
        await call.code()
    return {"ms": in_milliseconds(times)}


async def cycle(client: Client, seconds: float) -> dict[str, object]:
    """Whole orders, one after the other, nothing at the same time."""
    done = 0
    started = time.perf_counter()
    while time.perf_counter() - started < seconds:
        task_id = await client.submit()
        lease = await next_lease(client.open_stream())
        if lease.task_id != task_id:
            raise AssertionError("another order was leased")
        await client.acknowledge(lease)
        await client.report(lease, orders.ORDER_STATE_IN_CART, 1)
        await client.report(lease, orders.ORDER_STATE_PAID, 2)
        done += 1
    return {"per_second": done / (time.perf_counter() - started), "done": done}


async def lease(client: Client, count: float) -> dict[str, object]:
    """Leases from a queue that is not empty: from opening the stream until the lease is there."""
    times = []
    for _ in range(int(count)):
        started = time.perf_counter()
        taken = await next_lease(client.open_stream())
        times.append(time.perf_counter() - started)
        await client.acknowledge(taken)
        await client.report(taken, orders.ORDER_STATE_PAID, 1)
    return {"ms": in_milliseconds(times)}


async def idle(client: Client, count: float) -> dict[str, object]:
    """Workers that wait and get nothing, each stream opened again when it ends; at most 100 open theirs at once."""
    waiting = 0
    everybody = asyncio.Event()
    opening = asyncio.Semaphore(100)

    async def worker(number: int) -> None:
        nonlocal waiting
        while True:
            async with opening:
                call = replace(client, session_id=f"waiter-{number:09d}").open_stream()
                if isinstance(await call.read(), leases.LeaseOrdersResponse):
                    waiting += 1
            if waiting == int(count):
                everybody.set()
            while isinstance(await call.read(), leases.LeaseOrdersResponse):
                pass

    async with asyncio.TaskGroup() as workers:
        for number in range(int(count)):
            workers.create_task(worker(number))
        await everybody.wait()
        print("waiting", flush=True)
    return {}


def in_milliseconds(seconds: list[float]) -> list[float]:
    """Times to three decimals of a millisecond."""
    return [round(value * 1000, 3) for value in seconds]


SUBMISSIONS: Final[dict[str, Callable[[Sequence[Client], float], Awaitable[dict[str, object]]]]] = {
    "submit": submit,
    "many": partial(submit, callers=MANY_CALLERS),
    "batch": batch,
}
"""Those that may go to several gateways."""

KINDS: Final[dict[str, Callable[[Client, float], Awaitable[dict[str, object]]]]] = {
    "wakeup": wakeup,
    "cycle": cycle,
    "lease": lease,
    "idle": idle,
}


async def run(kind: str, amount: float, targets: Sequence[str]) -> None:
    """Runs one kind of load and prints what it measured."""
    async with AsyncExitStack() as stack:

        async def connected(target: str) -> grpc.aio.Channel:
            return await stack.enter_async_context(grpc.aio.insecure_channel(target, options=OWN_CONNECTION))

        worker = order_leases_pb2_grpc.OrderLeaseServiceStub(await connected(targets[-1]))
        clients = [Client(orders_pb2_grpc.OrderServiceStub(await connected(target)), worker) for target in targets]
        if kind in SUBMISSIONS:
            print(json.dumps(await SUBMISSIONS[kind](clients, amount)))
        else:
            print(json.dumps(await KINDS[kind](clients[0], amount)))


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], float(sys.argv[2]), sys.argv[3:]))
