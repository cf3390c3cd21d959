"""Several accounts of one site: gateway, workers and sandbox shop on real sockets; a login of the shop each."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from ordergateway.v1 import orders_pb2

from tests.gateway.support.grpc_api import status_of
from tests.gateway.support.in_process import RunningGateway, running_gateway
from tests.worker.conftest import make_settings
from tests.worker.running_shop import RunningShop, running_shop
from worker.main import run_worker


@asynccontextmanager
async def worker(folder: Path, gateway: RunningGateway, shop: RunningShop, **settings: Any) -> AsyncIterator[None]:
    """A running worker; stopped, and its end awaited, on the way out."""
    stop = asyncio.Event()
    wanted = make_settings(
        folder, order_gateway_url=f"grpc://127.0.0.1:{gateway.port}", sandbox_url=shop.url, **settings
    )
    running = asyncio.create_task(run_worker(wanted, stop=stop))
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait_for(running, 60)


async def ended(gateway: RunningGateway, task_id: str) -> orders_pb2.Task:
    task = None
    async with asyncio.timeout(60):
        async for message in gateway.api.watch(task_id):
            task = message.task if message.HasField("task") else task
    assert task is not None
    return task


async def test_each_account_orders_for_itself_and_sees_its_own_orders_alone(tmp_path: Path) -> None:
    async with (
        running_gateway(
            tmp_path / "gateway", lease_scope="account", sweep_interval_seconds=0.02, catalog_interval_seconds=86400
        ) as gateway,
        running_shop() as shop,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{gateway.http_port}", timeout=60) as rest,
    ):
        intent = json.dumps({"item_url": shop.item_url("sencha-100g")})
        for account in ("", "a", "b", "c"):
            await gateway.api.submit(f"po-{account or 'only'}", site="sandbox", intent_json=intent, account=account)
        async with (
            worker(tmp_path / "w1", gateway, shop, worker_id="w1", accounts="a,b"),
            worker(tmp_path / "w2", gateway, shop, worker_id="w2"),
        ):
            done = {account: await ended(gateway, f"po-{account or 'only'}") for account in ("", "a", "b")}
            assert {status_of(task) for task in done.values()} == {"succeeded"}
            assert {account: task.account for account, task in done.items()} == {"": "", "a": "a", "b": "b"}
            numbers = {account: task.reports[-1].site_order_id for account, task in done.items()}
            # Each account's list shows what was ordered with it.
            for account, number in numbers.items():
                query = {"query_id": f"aq-{account or 'only'}", "site": "sandbox", "kind": "order_list"}
                await rest.post("/api/account/queries", json=query | {"account": account})
                assert await orders_of(rest, query["query_id"]) == [number]
        assert shop.shop.counters()["orders_placed"] == 3
        assert {order.number: order.quote.account for order in shop.shop.orders.values()} == {
            numbers[""]: "buyer@sandbox.example",
            numbers["a"]: "a@accounts.sandbox.example",
            numbers["b"]: "b@accounts.sandbox.example",
        }
        # Nobody serves the fourth account, so nobody ever took its order.
        left = (await rest.get("/api/orders/po-c")).json()["data"]
        assert (left["status"], left["lease_count"]) == ("queued", 0)
        told = {row["worker_id"]: row["accounts"] for row in (await rest.get("/health")).json()["data"]["workers"]}
        assert told == {"w1": ["a", "b"], "w2": [""]}
        assert (tmp_path / "w1" / "evidence" / "po-a").is_dir()


async def orders_of(rest: httpx.AsyncClient, query_id: str) -> list[str]:
    """The order numbers of a query's result, once it has ended."""
    async with asyncio.timeout(60):
        while True:
            query = (await rest.get(f"/api/account/queries/{query_id}")).json()["data"]
            if query["status"] in ("succeeded", "failed", "expired"):
                assert query["status"] == "succeeded", query
                return [order["order_number"] for order in query["result"]["orders"]]
            await asyncio.sleep(0.05)
