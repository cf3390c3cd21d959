"""A cap and the terms of a permit, the same on every transport."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from ordergateway.v1 import orders_pb2

from gateway.api.codec.terms import terms_message
from gateway.domain.contract_version import CONTRACT_VERSION
from tests.contract.transports import TRANSPORTS, Clients, RefusedError, clients
from tests.gateway.support.book import terms
from tests.gateway.support.grpc_api import duration
from tests.gateway.support.in_process import RunningGateway

JOURNAL = "journal-of-worker-1"


@pytest.fixture
async def connected(gateway: RunningGateway) -> AsyncIterator[Clients]:
    async with clients(gateway.port, gateway.http_port) as made:
        yield made


async def submit(connected: Clients, transport: str, **fields: Any) -> list[str]:
    """File a task and return in what it differs from the one that existed."""
    if transport == "rest":
        body = {"task_id": "po-1", "site": "sandbox", "intent": {}, **fields}
        return list((await connected.rest("POST", "/api/orders", body))["differs"])
    call = getattr(connected, transport)
    answer = await call("OrderService/SubmitOrder", task_id="po-1", site="sandbox", intent_json="{}", **fields)
    return list(answer.differs)


async def permit(connected: Clients, payable_yen: int) -> Any:
    """Take the task, and ask for leave to pay so much."""
    told = await connected.grpc(
        "OrderLeaseService/LeaseOrders",
        worker_id="w1", session_id="session-of-worker-1", journal_id=JOURNAL, sites=["sandbox"], wait=duration(0),
    )  # fmt: skip
    about = {"task_id": "po-1", "worker_id": "w1", "lease_token": told.lease.lease_token}
    await connected.grpc("OrderLeaseService/RenewLease", **about)
    return await connected.grpc(
        "OrderLeaseService/RequestSubmitPermit", **about, journal_id=JOURNAL, terms=terms_message(terms(payable_yen))
    )


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_task_has_its_cap_for_ever_and_shows_the_terms(connected: Clients, transport: str) -> None:
    assert await submit(connected, transport, max_total_yen=30_000) == []
    for other in TRANSPORTS:
        assert await submit(connected, other, max_total_yen=30_000) == []
        assert await submit(connected, other, max_total_yen=30_001) == ["max_total_yen"]
        assert await submit(connected, other) == ["max_total_yen"]
    await permit(connected, 30_000)
    shown = await connected.rest("GET", "/api/orders/po-1")
    assert shown["max_total_yen"] == 30_000
    assert shown["terms"]["payable_yen"] == 30_000
    assert shown["terms"]["items"] == [
        {
            "item_url": "https://shop.example/item/a/b/",
            "variant_id": "white-m",
            "quantity": 2,
            "unit_price_yen": 500,
        }
    ]
    for call in (connected.grpc, connected.connect):
        task: orders_pb2.Task = (await call("OrderService/GetOrder", task_id="po-1")).task
        assert task.max_total_yen == 30_000
        assert task.terms == terms_message(terms(30_000))


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_permit_over_the_cap_is_refused_whoever_filed_the_task(connected: Clients, transport: str) -> None:
    await submit(connected, transport, max_total_yen=30_000)
    with pytest.raises(RefusedError) as refused:
        await permit(connected, 30_001)
    assert (refused.value.reason, refused.value.code) == ("TERMS_OVER_CAP", 6003)


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_without_a_cap_everything_is_as_it_was(connected: Clients, transport: str) -> None:
    await submit(connected, transport)
    shown = await connected.rest("GET", "/api/orders/po-1")
    assert shown["max_total_yen"] is None
    assert shown["terms"] is None
    task = (await connected.grpc("OrderService/GetOrder", task_id="po-1")).task
    assert not task.HasField("max_total_yen")
    assert not task.HasField("terms")


@pytest.mark.parametrize("cap", [0, -1, 2**53])
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_cap_that_is_none_is_refused_and_nothing_is_stored(
    connected: Clients, transport: str, cap: int
) -> None:
    with pytest.raises(Exception, match="max_total_yen"):
        await submit(connected, transport, max_total_yen=cap)
    assert (await connected.rest("GET", "/api/orders"))["items"] == []


async def test_the_gateway_tells_which_contract_it_speaks(connected: Clients) -> None:
    for call in (connected.grpc, connected.connect):
        assert (await call("OperationsService/GetInfo")).contract_version == CONTRACT_VERSION
    assert (await connected.rest("GET", "/api/info"))["contract_version"] == CONTRACT_VERSION
