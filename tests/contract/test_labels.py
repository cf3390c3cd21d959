"""An upstream's own labels travel with the task, the same on every transport."""

import json
from typing import Any

import pytest

from tests.contract.transports import TRANSPORTS, Clients, RefusedError, clients
from tests.gateway.support.grpc_api import duration
from tests.gateway.support.in_process import RunningGateway

LABELS = {"project/2026": '買い物 "7" \\ \n,=1+1', "Team.a_b-c": "", "a" * 64: "é" * 256}


@pytest.fixture
async def connected(gateway: RunningGateway) -> Any:
    async with clients(gateway.port, gateway.http_port) as made:
        yield made


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_labels_are_shown_wherever_the_task_is(
    gateway: RunningGateway, connected: Clients, transport: str
) -> None:
    await connected.file(transport, labels=LABELS, callback_url="http://127.0.0.1:9/c")
    for over in ("grpc", "connect"):
        assert (await getattr(connected, over)("OrderService/GetOrder", task_id="po-1")).task.labels == LABELS
        assert (await getattr(connected, over)("OrderService/ListOrders")).tasks[0].labels == LABELS
    assert (await connected.rest("GET", "/api/orders/po-1"))["labels"] == LABELS
    assert (await connected.rest("GET", "/api/orders"))["items"][0]["labels"] == LABELS
    (event,) = gateway.rows("SELECT details_json FROM events WHERE kind = 'submit'")
    assert json.loads(event["details_json"])["labels"] == LABELS
    if transport == "rest":
        assert (await connected.rest("GET", "/api/orders/lease", worker_id="w1", wait=0))["labels"] == LABELS
    else:
        lease = await connected.grpc(
            "OrderLeaseService/LeaseOrders",
            worker_id="w1", session_id="s" * 16, journal_id="j" * 16, sites=["sandbox"], wait=duration(0),
        )  # fmt: skip
        assert lease.lease.labels == LABELS
        await connected.grpc("OperationsService/ExpireOrder", task_id="po-1", reason="gone")
        (callback,) = gateway.rows("SELECT data_json FROM callbacks")
        assert json.loads(callback["data_json"])["labels"] == LABELS


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_labels_stand_for_ever_and_other_ones_are_told(connected: Clients, transport: str) -> None:
    assert await connected.file(transport, labels={"a": "1", "b": "2"}) == []
    for other in TRANSPORTS:
        assert await connected.file(other, labels={"b": "2", "a": "1"}) == []
        assert await connected.file(other, labels={"a": "1"}) == ["labels"]
        assert await connected.file(other) == ["labels"]
    assert (await connected.rest("GET", "/api/orders/po-1"))["labels"] == {"a": "1", "b": "2"}


async def test_sixteen_labels_are_taken_and_one_more_is_not(gateway: RunningGateway, connected: Clients) -> None:
    sixteen = {f"k{number}": "v" for number in range(16)}
    assert await connected.file("rest", labels=sixteen) == []
    for transport in TRANSPORTS:
        with pytest.raises(RefusedError, match="labels: must be at most 16 labels"):
            await connected.file(transport, "po-2", labels=sixteen | {"one": "more"})
    with pytest.raises(RefusedError, match=r"labels\.a: Input should be a valid string"):
        await connected.file("rest", "po-2", labels={"a": 1})
    assert len(gateway.rows("SELECT 1 FROM task_labels")) == 16
    assert len(gateway.rows("SELECT 1 FROM tasks")) == 1
