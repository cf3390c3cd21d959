"""The load of a fleet: one client process. `python -m bench.fleet_load fleet WORKERS ORDERS SECONDS TARGET PID...`

Each worker waits for orders of an account of its own. As many accounts again have a queued order each and no worker,
so the gateway knows twice as many targets as workers wait. Then the fleet idles for so many SECONDS, gets so many
ORDERS one after the other, each for an account drawn at random, and then as many as 32 callers bring about in as many
SECONDS.
PID: the gateway's process, and the database server's if there is one. Prints one line of JSON:

    {"open_seconds": ...,      all streams opened
     "idle": [...],            per cent of a core that each process uses once all of the fleet wait
     "memory_mib": ...,        the gateway's while the fleet waits
     "ms": [...],              submit sent to lease received by the right worker
     "per_second": ...,        whole orders: submit, lease, acknowledge, final report
     "cpu_ms": [...]}          processor time of each process for one of these

An order that another worker gets than the one that serves its account ends the run with an error.
"""

import asyncio
import json
import random
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final

import grpc
import psutil
from ordergateway.v1 import order_leases_pb2 as leases
from ordergateway.v1 import order_leases_pb2_grpc, orders_pb2_grpc
from ordergateway.v1 import orders_pb2 as orders

from bench.cpu import cpu_seconds
from bench.load import CALLERS, OWN_CONNECTION, Client, in_milliseconds

if TYPE_CHECKING:
    from ordergateway.v1.order_leases_pb2_grpc import OrderLeaseServiceAsyncStub
    from ordergateway.v1.orders_pb2_grpc import OrderServiceAsyncStub

OPENING: Final = 100
STREAMS_A_CONNECTION: Final = 500
NAMES: Final = 90
"""Workers' names: one token may bring a hundred."""


class Worker:
    """Waits for orders of its account, and brings each to its end."""

    def __init__(self, client: Client) -> None:
        self.account = client.accounts[0]
        self.waits = asyncio.Event()
        self.had: asyncio.Queue[tuple[str, float]] = asyncio.Queue()
        self._client = client

    async def run(self, opening: asyncio.Semaphore) -> None:
        """Waits again and again; each order that is paid goes to `had` with the moment at which it was received."""
        while True:
            async with opening:
                call = self._client.open_stream()
                message = await call.read()
                self.waits.set()
            while isinstance(message, leases.LeaseOrdersResponse):
                if message.HasField("lease"):
                    received = time.perf_counter()
                    self.waits.clear()
                    await self._client.acknowledge(message.lease)
                    await self._client.report(message.lease, orders.ORDER_STATE_PAID, 1)
                    self.had.put_nowait((message.lease.task_id, received))
                message = await call.read()

    async def order(self) -> float:
        """Submits an order of its account; seconds from then until it held the lease."""
        await self.waits.wait()
        begun = time.perf_counter()
        task_id = await self._client.submit(self.account)
        taken, received = await self.had.get()
        if taken != task_id:
            raise AssertionError("another order was leased")
        return received - begun


@asynccontextmanager
async def fleet(
    upstream: "OrderServiceAsyncStub", streams: Sequence["OrderLeaseServiceAsyncStub"], count: int
) -> AsyncIterator[list[Worker]]:
    """So many workers, all of whom wait; at most 100 open their stream at once."""
    opening = asyncio.Semaphore(OPENING)
    workers = [
        Worker(
            Client(
                upstream, streams[number // STREAMS_A_CONNECTION], f"fleet-{number % NAMES}", f"fleet-{number:010d}",
                accounts=(f"served-{number}",),
            )
        )
        for number in range(count)
    ]  # fmt: skip
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(worker.run(opening)) for worker in workers]
        for worker in workers:
            await worker.waits.wait()
        yield workers
        for task in running:
            task.cancel()


async def backlog(client: Client, count: int) -> None:
    """A queued order at each of so many accounts that nobody serves, by 32 callers."""
    left = iter(range(count))

    async def caller() -> None:
        for number in left:
            await client.submit(f"unserved-{number}")

    await asyncio.gather(*(caller() for _ in range(CALLERS)))


async def burst(workers: Sequence[Worker], seconds: float) -> int:
    """Orders of 32 callers, each for workers of its own in turn; how many were brought to their end."""
    done = 0
    until = time.perf_counter() + seconds

    async def caller(number: int) -> None:
        nonlocal done
        while time.perf_counter() < until:
            for worker in workers[number::CALLERS]:
                await worker.order()
                done += 1
                if time.perf_counter() >= until:
                    return

    await asyncio.gather(*(caller(number) for number in range(min(CALLERS, len(workers)))))
    return done


async def run(count: int, order_count: int, seconds: float, target: str, pids: Sequence[int]) -> None:
    """Runs the fleet and prints what it measured."""
    processes = [psutil.Process(pid) for pid in pids]
    async with AsyncExitStack() as stack:

        async def connected() -> grpc.aio.Channel:
            return await stack.enter_async_context(grpc.aio.insecure_channel(target, options=OWN_CONNECTION))

        upstream: OrderServiceAsyncStub = orders_pb2_grpc.OrderServiceStub(await connected())
        connections = -(-count // STREAMS_A_CONNECTION)
        streams = [order_leases_pb2_grpc.OrderLeaseServiceStub(await connected()) for _ in range(connections)]
        await backlog(Client(upstream, streams[0]), count)

        begun = time.perf_counter()
        async with fleet(upstream, streams, count) as workers:
            open_seconds = time.perf_counter() - begun
            # A stream brings its first heartbeat before it is written down that it waits. Behind an order all of it is.
            await workers[-1].order()

            begun, before = time.perf_counter(), [cpu_seconds(process) for process in processes]
            await asyncio.sleep(seconds)  # the span over which the cost is taken
            elapsed, after = time.perf_counter() - begun, [cpu_seconds(process) for process in processes]
            idle = [(end - start) / elapsed * 100 for start, end in zip(before, after, strict=True)]
            memory = processes[0].memory_info().rss / 2**20

            drawn = random.Random(1)  # noqa: S311 - which accounts, the same ones in each run
            times = [await drawn.choice(workers).order() for _ in range(order_count)]

            begun, before = time.perf_counter(), [cpu_seconds(process) for process in processes]
            done = await burst(workers, seconds)
            elapsed, after = time.perf_counter() - begun, [cpu_seconds(process) for process in processes]
    print(json.dumps({
        "open_seconds": open_seconds, "idle": idle, "memory_mib": memory, "ms": in_milliseconds(times),
        "per_second": done / elapsed,
        "cpu_ms": [(end - start) / done * 1000 for start, end in zip(before, after, strict=True)],
    }))  # fmt: skip


if __name__ == "__main__":
    asyncio.run(run(int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), sys.argv[5], [*map(int, sys.argv[6:])]))
