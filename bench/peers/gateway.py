"""This gateway, over gRPC, as its users have it."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
from ordergateway.v1 import order_leases_pb2 as leases
from ordergateway.v1 import order_leases_pb2_grpc, orders_pb2_grpc
from ordergateway.v1 import orders_pb2 as orders

from bench.load import OWN_CONNECTION, Client, next_lease


class Gateway:
    """A gateway as a peer."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def submit(self) -> object:
        """Files an order; its key holds for ever."""
        return await self._client.submit()

    @asynccontextmanager
    async def worker(self) -> AsyncIterator["asyncio.Queue[tuple[object, float]]"]:
        """A worker that waits on a lease stream; an order in its hand is brought to its end."""
        taken: asyncio.Queue[tuple[object, float]] = asyncio.Queue()
        in_hand = asyncio.Lock()

        async def work() -> None:
            while True:
                task_id, lease = await self._leased()
                async with in_hand:
                    taken.put_nowait((task_id, time.perf_counter()))
                    await self._client.acknowledge(lease)
                    await self.finish(lease)

        working = asyncio.create_task(work())
        try:
            yield taken
        finally:
            async with in_hand:
                working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await working

    async def take(self) -> tuple[object, leases.Lease]:
        """Leases an order and acknowledges the lease."""
        task_id, lease = await self._leased()
        await self._client.acknowledge(lease)
        return task_id, lease

    async def finish(self, taken: leases.Lease) -> None:
        """Reports the end of an order."""
        await self._client.report(taken, orders.ORDER_STATE_PAID, 1)

    async def _leased(self) -> tuple[object, leases.Lease]:
        lease = await next_lease(self._client.open_stream())
        return lease.task_id, lease


@asynccontextmanager
async def opened(target: str) -> AsyncIterator[Gateway]:
    """The gateway at an address."""
    async with (
        grpc.aio.insecure_channel(target, options=OWN_CONNECTION) as upstream,
        grpc.aio.insecure_channel(target, options=OWN_CONNECTION) as worker,
    ):
        yield Gateway(
            Client(orders_pb2_grpc.OrderServiceStub(upstream), order_leases_pb2_grpc.OrderLeaseServiceStub(worker))
        )
