"""Workers that wait for orders, as the worker's own client waits and comes back; each on a connection of its own."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import grpc
from ordergateway.v1 import order_leases_pb2 as pb

from worker.clock import SystemEntropy
from worker.gateway.backoff import Backoff
from worker.gateway.client import CHANNEL_OPTIONS, GatewayClient
from worker.gateway.port import Unreachable
from worker.orders.loop import FIRST_DELAY, MOST_DELAY

SITE = "sandbox"
WAIT_SECONDS = 60.0
OPTIONS = (*CHANNEL_OPTIONS, ("grpc.use_local_subchannel_pool", 1))
"""The worker's; in one process channels to one address would share a connection, and each worker has its own."""


class WaitingWorker:
    """Waits at the first of its gateways that answers, takes one order, and holds it."""

    def __init__(self, number: int, account: str, ports: Sequence[int]) -> None:
        # A token may bring a hundred names; a name may have any number of processes.
        name = f"w-{number % 100}"
        self.leases: list[pb.Lease] = []
        self.holds = False
        # What a name with an address for each gateway is resolved to.
        address = "ipv4:" + ",".join(f"127.0.0.1:{port}" for port in ports)
        self._channel = grpc.aio.insecure_channel(address, options=OPTIONS)
        self._client = GatewayClient(
            self._channel,
            worker_id=name,
            session_id=f"session-of-{number:0>16}",
            journal_id=f"journal-of-{number:0>16}",
            token=None,
            accounts=(account,),
        )

    async def run(self) -> None:
        """Wait until a lease has come, and acknowledge it; as the order loop does, with its pauses."""
        backoff = Backoff(SystemEntropy(), first=FIRST_DELAY, most=MOST_DELAY)
        while not self.leases:
            try:
                lease = await self._client.lease([SITE], WAIT_SECONDS)
            except Unreachable:
                await asyncio.sleep(backoff.delay())
            else:
                backoff.reset()
                if lease is not None:
                    self.leases.append(lease)
                    await self._client.renew(lease.task_id, lease.lease_token, seconds=10)
                    self.holds = True

    async def close(self) -> None:
        await self._channel.close()


@asynccontextmanager
async def waiting_workers(workers: Sequence[WaitingWorker]) -> AsyncIterator[None]:
    """Lets all of them wait."""
    running = [asyncio.create_task(worker.run()) for worker in workers]
    try:
        yield
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for worker in workers:
            await worker.close()
