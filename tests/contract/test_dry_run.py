"""A dry run, the same on every transport."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.contract.transports import TRANSPORTS, Clients, clients
from tests.gateway.support.grpc_api import duration
from tests.gateway.support.in_process import RunningGateway


@pytest.fixture
async def connected(gateway: RunningGateway) -> AsyncIterator[Clients]:
    async with clients(gateway.port, gateway.http_port) as made:
        yield made


async def submit(connected: Clients, transport: str, **fields: bool) -> list[str]:
    if transport == "rest":
        body: dict[str, Any] = {"task_id": "po-1", "site": "sandbox", "intent": {}, **fields}
        return list((await connected.rest("POST", "/api/orders", body))["differs"])
    call = getattr(connected, transport)
    answer = await call("OrderService/SubmitOrder", task_id="po-1", site="sandbox", intent_json="{}", **fields)
    return list(answer.differs)


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_dry_run_stays_one_and_its_worker_is_told(connected: Clients, transport: str) -> None:
    assert await submit(connected, transport, stop_before_submit=True) == []
    for other in TRANSPORTS:
        assert await submit(connected, other, stop_before_submit=True) == []
        assert await submit(connected, other) == ["stop_before_submit"]
    assert (await connected.rest("GET", "/api/orders/po-1"))["stop_before_submit"] is True
    for call in (connected.grpc, connected.connect):
        assert (await call("OrderService/GetOrder", task_id="po-1")).task.stop_before_submit
    told = await connected.grpc(
        "OrderLeaseService/LeaseOrders",
        worker_id="w1", session_id="session-of-worker-1", journal_id="journal-of-worker-1", sites=["sandbox"],
        wait=duration(0),
    )  # fmt: skip
    assert told.lease.stop_before_submit


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_an_order_is_no_dry_run_unless_it_says_so(connected: Clients, transport: str) -> None:
    await submit(connected, transport)
    assert (await connected.rest("GET", "/api/orders/po-1"))["stop_before_submit"] is False


@pytest.mark.parametrize("value", ["yes", 1, None])
async def test_over_rest_only_true_and_false_are_taken(connected: Clients, value: object) -> None:
    body = {"task_id": "po-1", "site": "sandbox", "intent": {}, "stop_before_submit": value}
    with pytest.raises(Exception, match="stop_before_submit"):
        await connected.rest("POST", "/api/orders", body)
