"""Who may only look: what an operator reads is answered on every transport, what an operator does is refused."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.transports import TRANSPORTS, Clients, RefusedError, clients
from tests.gateway.support.in_process import RunningGateway, running_gateway

EVE = "the-secret-of-eve"
OPERATIONS = "OperationsService"


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[RunningGateway]:
    tokens = {"upstream_token": ("of-the-shop",), "operator_token": ("of-mika",), "viewer_token": (f"eve={EVE}",)}
    async with running_gateway(tmp_path, token="of-the-shop", **tokens) as running:
        await running.api.submit("po-1")
        yield running


@pytest.fixture
async def eve(gateway: RunningGateway) -> AsyncIterator[Clients]:
    async with clients(gateway.port, gateway.http_port, EVE) as made:
        yield made


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_viewer_reads(eve: Clients, transport: str) -> None:
    if transport == "rest":
        assert (await eve.rest("GET", "/api/orders/po-1"))["task_id"] == "po-1"
        assert (await eve.rest("GET", "/api/orders"))["total"] == 1
        assert (await eve.rest("GET", "/health"))["queued_count"] == 1
        assert (await eve.rest("GET", "/api/account/queries"))["total"] == 0
        return
    call = getattr(eve, transport)
    assert (await call("OrderService/GetOrder", task_id="po-1")).task.task_id == "po-1"
    assert [event.actor for event in (await call(f"{OPERATIONS}/ListEvents", subject="po-1")).events] == ["upstream"]
    for method in ("ListDecisions", "ListAlerts", "ListApprovals", "ListBudgets", "ListWorkers", "ListCallbacks"):
        await call(f"{OPERATIONS}/{method}")


CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("OrderService/CancelOrder", {"task_id": "po-1", "reason": "no"}),
    (f"{OPERATIONS}/RequeueOrder", {"task_id": "po-1", "reason": "no"}),
    (f"{OPERATIONS}/PauseDispatch", {"reason": "no"}),
    (f"{OPERATIONS}/DecideOrders", {"reason": "no"}),
    ("AccountQueryService/SubmitQuery", {"query_id": "q-1", "site": "rakuten"}),
    ("CatalogService/Discover", {}),
]


@pytest.mark.parametrize("transport", ["grpc", "connect"])
async def test_a_viewer_changes_nothing(gateway: RunningGateway, eve: Clients, transport: str) -> None:
    before = gateway.dump()
    for rpc, fields in CHANGES:
        with pytest.raises(RefusedError) as refused:
            await getattr(eve, transport)(rpc, **fields)
        assert refused.value.reason == "PERMISSION_DENIED", rpc
    assert gateway.dump() == before


async def test_a_viewer_changes_nothing_over_rest(gateway: RunningGateway, eve: Clients) -> None:
    before = gateway.dump()
    for method, path, body in (
        ("POST", "/api/orders", {"task_id": "po-2", "site": "rakuten", "intent": {}}),
        ("POST", "/api/account/orders/discovery", None),
        ("GET", "/api/orders/lease?worker_id=eve", None),
    ):
        with pytest.raises(RefusedError) as refused:
            await eve.rest(method, path, body)
        assert refused.value.status == 403, path
    assert gateway.dump() == before
