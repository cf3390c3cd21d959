"""A worker that waits gets an order at its not_before, by the machine's real clocks."""

import asyncio
from datetime import UTC, datetime, timedelta

from tests.gateway.support.grpc_api import connected
from tests.gateway.support.process import GatewayProcess


async def test_a_waiting_worker_gets_an_order_at_its_time_and_not_before(process: GatewayProcess) -> None:
    async with connected(process.port) as api:
        waiting = asyncio.create_task(api.lease(wait=50))
        not_before = datetime.now(UTC) + timedelta(seconds=1.5)
        await api.submit(not_before=not_before)
        lease = await asyncio.wait_for(waiting, 60)
        assert lease is not None
        assert datetime.now(UTC) >= not_before
