"""The catalogue as operators use it, over gRPC and REST."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.states import OrderState
from tests.gateway.account_queries.clients import OverGrpc, Queries, QueryRefusedError, over_rest
from tests.gateway.catalog.test_reconciliation import order_detail, order_list
from tests.gateway.support.in_process import RunningGateway, running_gateway
from tests.gateway.support.manual_time import ManualTime

SETTLE = timedelta(seconds=900)


@pytest.fixture
async def gateway(tmp_path: Path, time: ManualTime) -> AsyncIterator[RunningGateway]:
    """A gateway whose catalogue is on; its first round is in the queue."""
    async with running_gateway(
        tmp_path, time, sites=("sandbox",), catalog_interval_seconds=3600, sweep_interval_seconds=0.02
    ) as running:
        yield running


@pytest.fixture(params=["grpc", "rest"])
async def queries(gateway: RunningGateway, request: pytest.FixtureRequest) -> AsyncIterator[Queries]:
    """The same case over each transport."""
    if request.param == "grpc":
        yield OverGrpc(gateway.api.channel, sites=("sandbox",))
    else:
        async with over_rest(gateway.http_port) as client:
            yield client


async def bring(queries: Queries, result: dict[str, Any]) -> dict[str, Any]:
    lease = await queries.lease(wait=10)
    assert lease is not None
    assert await queries.bring(lease, json.dumps(result)) == "succeeded"
    return lease


async def test_a_round_by_itself_and_by_hand_and_what_they_find(queries: Queries, gateway: RunningGateway) -> None:
    for task_id, number in (("po-1", "A-1"), ("po-2", "A-2")):
        await gateway.api.submit(task_id, site="sandbox")
        lease = await gateway.api.lease(sites=("sandbox",))
        assert lease is not None
        await gateway.api.renew(lease)
        await gateway.api.report(lease, OrderState.PAID, site_order_id=number, terminal=True)
    gateway.time.advance(SETTLE - timedelta(seconds=1))

    by_itself = await bring(queries, order_list("A-9", "A-1", covered=False))
    assert by_itself["kind"] == "order_list"
    for number, state in (("A-1", "shipped"), ("A-9", "paid")):
        detail = await bring(queries, order_detail(number, state, delivery_status=state.upper()))
        assert detail["params"] == {"order_number": number}
    assert {found["kind"] for found in await queries.discrepancies()} == {"state_moved_on", "unknown_to_tasks"}

    gateway.time.advance(1)
    by_hand = await queries.discover()
    assert (by_hand["status"], by_hand["created"]) == ("queued", True)
    assert await queries.discover("sandbox") == {**by_hand, "created": False}
    await bring(queries, order_list("A-9", "A-1"))

    found = {each["kind"]: each for each in await queries.discrepancies()}
    assert found["missing_on_site"]["task_id"] == "po-2"
    assert found["unknown_to_tasks"]["order_number"] == "A-9"
    assert found["unknown_to_tasks"]["task_id"] is None
    assert (found["state_moved_on"]["task_state"], found["state_moved_on"]["site_state"]) == ("paid", "shipped")
    assert [each["order_number"] for each in await queries.discrepancies("missing_on_site")] == ["A-2"]
    first, second = await queries.catalog()
    assert (first["order_number"], second["order_number"]) == ("A-9", "A-1")
    assert {name: second[name] for name in ("shop_id", "shop_name", "delivery_status", "order_state")} == {
        "shop_id": "306087", "shop_name": "茶の店", "delivery_status": "SHIPPED", "order_state": "shipped",
    }  # fmt: skip
    assert second["discovered_at"] < second["last_seen_at"]
    with pytest.raises(QueryRefusedError) as refusal:
        await queries.discover("yahoo")
    assert refusal.value.code == 422


@pytest.mark.parametrize("transport", ["grpc", "rest"])
async def test_a_catalogue_that_is_off_says_which_setting_switches_it_on(tmp_path: Path, transport: str) -> None:
    async with running_gateway(tmp_path) as off, over_rest(off.http_port) as rest:
        queries: Queries = OverGrpc(off.api.channel) if transport == "grpc" else rest
        for call in (queries.catalog(), queries.discover(), queries.discrepancies()):
            with pytest.raises(QueryRefusedError, match="RAKUTEN_CATALOG_INTERVAL_SECONDS") as refusal:
                await call
            assert refusal.value.code == 501
        assert off.rows("SELECT * FROM account_queries") == []
