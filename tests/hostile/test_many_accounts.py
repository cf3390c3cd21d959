"""A token that names 20,000 accounts: it is stopped at its limit, and another one's orders go on meanwhile."""

import asyncio
import time
from pathlib import Path

import pytest
from ordergateway.v1 import orders_pb2

from gateway.domain.states import OrderState
from gateway.targets import MAX_OF_A_TOKEN
from tests.gateway.support.grpc_api import GrpcApi, connected, told
from tests.gateway.support.process import gateway_process

HOSTILE, HONEST = "hostile=a-token-of-sixteen-letters", "honest=another-token-of-sixteen-letters"
BEARER = (("authorization", f"Bearer {HOSTILE.partition('=')[2]}"),)
ACCOUNTS, AT_ONCE = 20_000, 500
SLOWEST_SECONDS = 10.0
"""Most that an honest order may take from its submission to its end; tens of milliseconds are seen."""


async def flood(api: GrpcApi) -> list[bool]:
    """Name one account after the other, in batches; return which were taken."""
    taken: list[bool] = []
    for start in range(0, ACCOUNTS, AT_ONCE):
        orders = [
            orders_pb2.SubmitOrderRequest(task_id=f"h-{n}", site="rakuten", intent_json="{}", account=f"made-up-{n}")
            for n in range(start, start + AT_ONCE)
        ]
        answer = await told(api.orders.SubmitOrders(orders_pb2.SubmitOrdersRequest(orders=orders), metadata=BEARER))
        taken += [result.WhichOneof("outcome") == "submitted" for result in answer.results]
    return taken


async def order_on(api: GrpcApi, over: asyncio.Event) -> list[float]:
    """File an order of an account of one's own and take it, again and again; return how long each took, in seconds."""
    took = []
    while not over.is_set():
        begun = time.monotonic()
        task_id = f"po-{len(took)}"
        await api.submit(task_id, site="sandbox", account=f"own-{len(took) % 5}")
        lease = await api.lease("w1", 10, sites=("sandbox",), accounts=tuple(f"own-{n}" for n in range(5)))
        assert lease is not None
        assert lease.task_id == task_id
        await api.renew(lease)
        await api.report(lease, OrderState.PAID, terminal=True)
        took.append(time.monotonic() - begun)
    return took


@pytest.mark.timeout(300)
async def test_a_token_that_names_twenty_thousand_accounts_is_stopped_and_disturbs_nobody(tmp_path: Path) -> None:
    async with (
        gateway_process(
            tmp_path, api_token=HONEST, upstream_token=HOSTILE, lease_scope="account", catalog_interval_seconds="60"
        ) as gateway,
        connected(gateway.port) as hostile,
        connected(gateway.port, HONEST.partition("=")[2]) as honest,
    ):
        over = asyncio.Event()
        ordering = asyncio.create_task(order_on(honest, over))
        try:
            taken = await flood(hostile)
            again = await flood(hostile)
        finally:
            over.set()
        assert taken == [number < MAX_OF_A_TOKEN for number in range(ACCOUNTS)]
        assert again == taken, "those that exist are answered, the others are refused again"
        took = await ordering
        assert len(took) > 5
        assert max(took) < SLOWEST_SECONDS
        assert await gateway.terminate() == 0
        assert "Traceback" not in gateway.log
