"""An order that only some of those who wait may have goes to them, whoever stands before them in the line."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.gateway.support import rest_api
from tests.gateway.support.grpc_api import heartbeat_of
from tests.gateway.support.in_process import RunningGateway


@pytest.fixture
async def rest(gateway: RunningGateway) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{gateway.http_port}", timeout=60) as client:
        yield client


async def test_a_capped_order_passes_those_who_wait_over_rest(gateway: RunningGateway, rest: httpx.AsyncClient) -> None:
    before = [asyncio.create_task(rest_api.lease(rest, f"rest-{number}", wait=30)) for number in range(3)]
    while len(gateway.rows("SELECT 1 FROM workers")) < 3:  # noqa: ASYNC110 - the rows are the signal
        await asyncio.sleep(0.01)
    stream = gateway.api.stream("over-grpc", wait=50)
    await heartbeat_of(stream)
    while len(gateway.rows("SELECT 1 FROM workers")) < 4:  # noqa: ASYNC110 - the rows are the signal
        await asyncio.sleep(0.01)
    await gateway.api.submit("capped", max_total_yen=3_000)
    lease = await asyncio.wait_for(stream.read(), 60)
    assert lease.lease.task_id == "capped"  # type: ignore[union-attr]
    assert not any(task.done() for task in before)
    for task in before:
        task.cancel()
