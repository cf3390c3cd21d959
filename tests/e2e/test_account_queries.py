"""Account queries from the upstream to the site and back: gateway, worker and sandbox shop on real sockets.

The worker's lines of the acceptance list (docs/two-queues.md), over gRPC and REST; the gateway's lines stand in
tests/gateway/account_queries/test_acceptance.py.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.account_queries.clients import OverGrpc, Queries, over_rest
from tests.gateway.support.grpc_api import status_of
from tests.gateway.support.in_process import RunningGateway, running_gateway
from tests.worker.conftest import make_settings
from tests.worker.running_shop import RunningShop, running_shop
from worker.main import run_worker

ARTICLE = {"code": "sencha-100g", "quantity": 1}


@dataclass
class Chain:
    """All three parts, and the upstream's client."""

    gateway: RunningGateway
    shop: RunningShop
    queries: Queries
    watch: OverGrpc
    folder: Path

    async def ask(self, kind: str = "order_list", query_id: str = "q-1", **params: Any) -> dict[str, Any]:
        """Files a query, waits for its end by watching, and looks at it over the transport."""
        await self.queries.submit(query_id, kind, json.dumps(params))
        await asyncio.wait_for(self.watch.ended(query_id), 60)
        return await self.queries.get(query_id)

    async def order(self) -> None:
        """Files an order for one article."""
        intent = json.dumps({"item_url": self.shop.item_url("sencha-100g")})
        await self.gateway.api.submit("po-1", site="sandbox", intent_json=intent)

    async def ordered(self) -> str:
        """The number of the order, once it is paid."""
        task = None
        async for message in self.gateway.api.watch("po-1"):
            task = message.task if message.HasField("task") else task
        assert task is not None
        assert status_of(task) == "succeeded", task
        return str(task.reports[-1].site_order_id)

    @asynccontextmanager
    async def worker(self, **settings: Any) -> AsyncIterator[None]:
        """A running worker; stopped, and its end awaited, on the way out."""
        stop = asyncio.Event()
        wanted = make_settings(
            self.folder / "worker",
            order_gateway_url=f"grpc://127.0.0.1:{self.gateway.port}",
            sandbox_url=self.shop.url,
            **settings,
        )
        running = asyncio.create_task(run_worker(wanted, stop=stop))
        try:
            yield
        finally:
            stop.set()
            await asyncio.wait_for(running, 60)


@asynccontextmanager
async def running_chain(folder: Path, transport: str = "grpc", **settings: Any) -> AsyncIterator[Chain]:
    """Gateway and shop; a worker is started by the test."""
    async with (
        running_gateway(folder / "gateway", sweep_interval_seconds=0.02, **settings) as gateway,
        running_shop() as shop,
        over_rest(gateway.http_port) as rest,
    ):
        grpc_client = OverGrpc(gateway.api.channel)
        yield Chain(gateway, shop, rest if transport == "rest" else grpc_client, grpc_client, folder)


@pytest.fixture(params=["grpc", pytest.param("rest", marks=pytest.mark.extended)])
async def chain(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Chain]:
    """The upstream's side over each transport."""
    async with running_chain(tmp_path, request.param) as running:
        yield running


@pytest.fixture(params=["grpc", pytest.param("rest", marks=pytest.mark.extended)])
async def cataloguing(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Chain]:
    """The same with the catalogue on."""
    async with running_chain(tmp_path, request.param, catalog_interval_seconds=86400) as running:
        yield running


async def test_the_site_s_own_json_is_whole_in_the_result_and_max_pages_bounds_the_window_honestly(
    chain: Chain,
) -> None:
    numbers = [await chain.shop.control.add_order(ARTICLE, days_ago=days) for days in range(1, 13)]
    async with chain.worker():
        bounded = await chain.ask(query_id="bounded", max_pages=2)
        whole = await chain.ask(query_id="whole")
        since = (datetime.now(UTC) - timedelta(days=4.5)).isoformat()
        window = await chain.ask(query_id="window", since=since, max_pages=1)
        detail = await chain.ask("order_detail", "detail", order_number=numbers[3])

    def listed(query: dict[str, Any]) -> list[str]:
        return [order["order_number"] for order in query["result"]["orders"]]

    assert [query["status"] for query in (bounded, whole, window, detail)] == ["succeeded"] * 4
    assert (listed(bounded), bounded["result"]["window_fully_covered"]) == (numbers[:10], False)
    assert (listed(whole), whole["result"]["window_fully_covered"], whole["result"]["max_pages"]) == (numbers, True, 3)
    assert (listed(window), window["result"]["window_fully_covered"]) == (numbers[:4], True)
    assert [page["page"] for page in whole["result"]["raw_pages"]] == [1, 2, 3]
    raw = [entry["orderNumber"] for page in whole["result"]["raw_pages"] for entry in page["orders"]]
    assert raw == numbers
    assert (detail["result"]["found"], detail["result"]["raw_available"]) == (True, True)
    assert numbers[3] in json.dumps(detail["result"]["raw"])


async def test_a_redesign_and_a_logout_on_the_way_leave_the_window_uncovered(chain: Chain) -> None:
    for days in range(1, 13):
        await chain.shop.control.add_order(ARTICLE, days_ago=days)
    async with chain.worker():
        for number, kind in enumerate(("redesign", "logged_out")):
            await chain.shop.control.arm("slow", "order_list", seconds=0)
            await chain.shop.control.arm(kind, "order_list", blocks=["state"])
            query = await chain.ask(query_id=f"q-{number}")
            assert query["status"] == "succeeded", query
            assert query["result"]["window_fully_covered"] is False
            assert len(query["result"]["orders"]) == 5


async def test_errors_of_the_site_reach_the_upstream_with_their_code(chain: Chain) -> None:
    async with chain.worker():
        malformed = await chain.ask("order_detail", "malformed")
        await chain.shop.control.change_account(login_refused=True, end_sessions=True)
        logged_out = await chain.ask(query_id="logged-out")
    assert (malformed["status"], malformed["error"]["code"]) == ("failed", 422)
    assert "order_number" in malformed["error"]["message"]
    assert (logged_out["status"], logged_out["error"]["code"]) == ("failed", 5001)
    assert logged_out["attempts"] == 1


async def test_a_reading_that_takes_too_long_is_reported_as_failed_before_its_lease_runs_out(chain: Chain) -> None:
    await chain.shop.control.arm("hang", "order_list")
    async with chain.worker(account_query_timeout_seconds=0.3):
        query = await chain.ask()
    assert (query["status"], query["error"]["code"], query["attempts"]) == ("failed", 504, 1)


async def test_an_order_in_the_worker_s_hands_holds_the_account_and_queries_fail_meanwhile(chain: Chain) -> None:
    await chain.shop.control.arm("slow", "confirm", seconds=1.5)
    async with chain.worker(account_query_timeout_seconds=0.3):
        await chain.order()
        assert await chain.shop.control.wait(step="confirm", requests=1)
        query = await chain.ask()
        assert (query["status"], query["error"]["code"]) == ("failed", 504)
        assert "account" in query["error"]["message"]
        await chain.ordered()
    async with chain.worker():
        again = await chain.ask(query_id="again")
    assert again["status"] == "succeeded"
    assert (await chain.shop.control.counters())["orders_placed"] == 1


async def test_a_result_over_the_limit_comes_without_raw_data_and_then_not_at_all(chain: Chain) -> None:
    for days in range(1, 6):
        await chain.shop.control.add_order(ARTICLE, days_ago=days)
    async with chain.worker(query_result_max_bytes=2000):
        trimmed = await chain.ask(query_id="trimmed")
    async with chain.worker(query_result_max_bytes=1024):
        failed = await chain.ask(query_id="too-large")
    assert trimmed["result"]["raw_omitted"] is True
    assert "raw_pages" not in trimmed["result"]
    assert len(trimmed["result"]["orders"]) == 5
    assert (failed["status"], failed["error"]["code"]) == ("failed", 413)


async def test_a_new_order_is_found_only_after_the_site_s_delay(chain: Chain) -> None:
    chain.shop.shop.settings = replace(chain.shop.shop.settings, reflection_delay_seconds=600)
    async with chain.worker():
        await chain.order()
        number = await chain.ordered()
        early = await chain.ask("order_detail", "early", order_number=number)
        unseen = await chain.ask(query_id="unseen")
        await chain.shop.control.change_order(number, "reflect")
        late = await chain.ask("order_detail", "late", order_number=number)
    assert (early["status"], early["result"]["found"], early["result"]["order_state"]) == ("succeeded", False, None)
    assert unseen["result"]["orders"] == []
    assert (late["result"]["found"], late["result"]["order_state"]) == (True, "paid")


async def test_the_catalogue_finds_by_itself_what_the_tasks_do_not_know_and_what_moved_on(cataloguing: Chain) -> None:
    chain = cataloguing
    elsewhere = await chain.shop.control.add_order(ARTICLE, days_ago=2)
    async with chain.worker():
        await chain.order()
        ours = await chain.ordered()
        await chain.shop.control.change_order(ours, "advance")
        await chain.shop.control.change_order(ours, "advance")

        round_ = await chain.queries.discover("sandbox")
        await asyncio.wait_for(chain.watch.ended(round_["query_id"]), 60)
        for query in await chain.watch.listed(kind="order_detail"):
            await asyncio.wait_for(chain.watch.ended(query["query_id"]), 60)
        again = await chain.queries.discover("sandbox")
        await asyncio.wait_for(chain.watch.ended(again["query_id"]), 60)

        found = {(each["kind"], each["order_number"]): each for each in await chain.queries.discrepancies()}
        assert set(found) == {("unknown_to_tasks", elsewhere), ("state_moved_on", ours)}
        assert found[("state_moved_on", ours)]["task_id"] == "po-1"
        catalogue = {order["order_number"]: order for order in await chain.queries.catalog()}
    assert set(catalogue) == {elsewhere, ours}
    assert catalogue[ours]["order_state"] == "shipped"
    assert catalogue[ours]["shop_id"] == "306087"
