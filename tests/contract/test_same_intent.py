"""The same wish twice, told on every transport."""

from collections.abc import AsyncIterator

import pytest

from tests.contract.transports import TRANSPORTS, Clients, clients
from tests.gateway.support.in_process import RunningGateway


@pytest.fixture
async def connected(gateway: RunningGateway) -> AsyncIterator[Clients]:
    async with clients(gateway.port, gateway.http_port) as made:
        yield made


async def submit(connected: Clients, transport: str, task_id: str) -> str | None:
    if transport == "rest":
        body = {"task_id": task_id, "site": "sandbox", "intent": {"b": 2, "a": 1}}
        told: str | None = (await connected.rest("POST", "/api/orders", body))["same_intent_as"]
        return told
    answer = await getattr(connected, transport)(
        "OrderService/SubmitOrder", task_id=task_id, site="sandbox", intent_json='{"a": 1, "b": 2}'
    )
    return str(answer.same_intent_as) or None


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_the_second_names_the_first_in_its_answer_and_its_detail(connected: Clients, transport: str) -> None:
    for number, other in enumerate(TRANSPORTS):
        assert await submit(connected, other, f"first-{number}") == (f"first-{number - 1}" if number else None)
    last = f"first-{len(TRANSPORTS) - 1}"
    assert await submit(connected, transport, "again") == last
    assert (await connected.rest("GET", "/api/orders/again"))["same_intent_as"] == last
    for call in (connected.grpc, connected.connect):
        assert (await call("OrderService/GetOrder", task_id="again")).task.same_intent_as == last
