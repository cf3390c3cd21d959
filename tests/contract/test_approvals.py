"""An order that waits for somebody else's approval, the same on every transport."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from ordergateway.v1 import orders_pb2

from tests.contract.transports import TRANSPORTS, Clients, RefusedError, clients
from tests.gateway.support.in_process import RunningGateway, running_gateway
from tests.gateway.support.manual_time import ManualTime

SHOP, MIKA = "the-secret-of-the-shop", "the-secret-of-mika"
TOKENS = {"upstream_token": (f"shop={SHOP}",), "operator_token": (f"mika={MIKA}",)}
CONTRACT = ("grpc", "connect")


@pytest.fixture
async def gateway(tmp_path: Path, time: ManualTime) -> AsyncIterator[RunningGateway]:
    async with running_gateway(tmp_path, time, token=MIKA, **TOKENS) as running:
        yield running


@pytest.fixture
async def shop(gateway: RunningGateway) -> AsyncIterator[Clients]:
    """The upstream that files."""
    async with clients(gateway.port, gateway.http_port, SHOP) as made:
        yield made


@pytest.fixture
async def mika(gateway: RunningGateway) -> AsyncIterator[Clients]:
    """Who decides."""
    async with clients(gateway.port, gateway.http_port, MIKA) as made:
        yield made


async def submit(shop: Clients, transport: str, task_id: str = "po-1", **fields: Any) -> tuple[list[str], bool]:
    """File a task; return in what it differs from the one that existed, and whether it waits."""
    if transport == "rest":
        told = await shop.rest("POST", "/api/orders", {"task_id": task_id, "site": "sandbox", "intent": {}, **fields})
        return told["differs"], told["held_for_approval"]
    call = getattr(shop, transport)
    answer = await call("OrderService/SubmitOrder", task_id=task_id, site="sandbox", intent_json="{}", **fields)
    return list(answer.differs), answer.held_for_approval


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_an_order_waits_is_approved_and_shows_by_whom(shop: Clients, mika: Clients, transport: str) -> None:
    assert await submit(shop, transport, requires_approval=True) == ([], True)
    for other in TRANSPORTS:
        assert await submit(shop, other, requires_approval=True) == ([], True)
        assert await submit(shop, other) == (["requires_approval"], True)
    waiting = await shop.rest("GET", "/api/orders/po-1")
    assert (waiting["requires_approval"], waiting["held_for_approval"], waiting["approval"]) == (True, True, None)
    assert (waiting["approval_reasons"], waiting["submitted_by"]) == (["requested"], "shop")
    done = await mika.connect("OperationsService/ApproveOrder", task_id="po-1", reason="needed", max_total_yen=3_000)
    assert not done.already_decided
    again = await mika.grpc("OperationsService/ApproveOrder", task_id="po-1", reason="needed", max_total_yen=3_000)
    assert again.already_decided
    shown = await shop.rest("GET", "/api/orders/po-1")
    assert shown["held_for_approval"] is False
    assert shown["approval"] == {
        "verdict": "approved",
        "decided_by": "mika",
        "decided_at": shown["updated_at"],
        "reason": "needed",
        "max_total_yen": 3_000,
        "valid_until": shown["approval"]["valid_until"],
        "used_by_lease": None,
        "ended_at": None,
    }
    for call in (shop.grpc, shop.connect):
        task: orders_pb2.Task = (await call("OrderService/GetOrder", task_id="po-1")).task
        assert task.approval == again.task.approval
        assert (task.held_for_approval, task.submitted_by) == (False, "shop")
        assert list(task.approval_reasons) == [orders_pb2.APPROVAL_REASON_REQUESTED]
        assert (task.approval.valid_until.ToDatetime() - task.approval.decided_at.ToDatetime()).days == 1


async def test_an_order_of_a_batch_waits_too(shop: Clients) -> None:
    orders = [
        {"task_id": f"po-{n}", "site": "sandbox", "intent_json": "{}", "requires_approval": n > 0} for n in (0, 1)
    ]
    results = (await shop.grpc("OrderService/SubmitOrders", orders=orders)).results
    assert [result.submitted.held_for_approval for result in results] == [False, True]
    rest = {"task_id": "po-2", "site": "sandbox", "intent": {}, "requires_approval": True}
    (told,) = (await shop.rest("POST", "/api/orders/batch", {"orders": [rest]}))["results"]
    assert told["data"]["held_for_approval"] is True


@pytest.mark.parametrize("transport", CONTRACT)
async def test_a_denied_order_has_failed_and_its_upstream_reads_why(
    shop: Clients, mika: Clients, transport: str
) -> None:
    await submit(shop, transport, requires_approval=True)
    call = getattr(mika, transport)
    for repeat in (False, True):
        done = await call("OperationsService/DenyOrder", task_id="po-1", reason="we have three")
        assert (done.already_decided, done.task.status) == (repeat, orders_pb2.TASK_STATUS_FAILED)
    shown = await shop.rest("GET", "/api/orders/po-1")
    assert (shown["status"], shown["approval"]["verdict"], shown["approval"]["reason"]) == (
        "failed", "denied", "we have three",
    )  # fmt: skip


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_what_waits_is_found(shop: Clients, mika: Clients, transport: str) -> None:
    await submit(shop, "grpc", "po-0")
    for number in (1, 2, 3):
        await submit(shop, "grpc", f"po-{number}", requires_approval=True)
    await mika.grpc("OperationsService/ApproveOrder", task_id="po-2", reason="needed", max_total_yen=3_000)
    if transport == "rest":
        page = await shop.rest("GET", "/api/orders", held_for_approval="true")
        assert [task["task_id"] for task in page["items"]] == ["po-3", "po-1"]
        return
    listed = await getattr(shop, transport)("OrderService/ListOrders", filter={"held_for_approval": True})
    assert [task.task_id for task in listed.tasks] == ["po-3", "po-1"]
    found, token = [], ""
    while True:
        page = await getattr(mika, transport)("OperationsService/ListApprovals", page_size=1, page_token=token)
        found += [task.task_id for task in page.tasks]
        token = page.next_page_token
        if not token:
            break
    assert found == ["po-1", "po-3"]


async def test_how_many_wait_is_told(shop: Clients, mika: Clients) -> None:
    await submit(shop, "grpc", requires_approval=True)
    health = await mika.grpc("OperationsService/GetHealth")
    assert (health.queued_count, health.held_for_approval_count) == (1, 1)
    assert "1 held for approval to decide" in str(health.problems)
    assert (await mika.rest("GET", "/health"))["held_for_approval_count"] == 1


@pytest.mark.parametrize("transport", CONTRACT)
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("task_id", "?"),
        ("reason", ""),
        ("reason", "x" * 1_001),
        ("max_total_yen", 0),
        ("max_total_yen", 2**53),
        ("valid_for", {"seconds": 0}),
        ("valid_for", {"seconds": -1}),
        ("valid_for", {"seconds": 365 * 86_400 + 1}),
    ],
)
async def test_what_makes_no_approval_is_refused_and_nothing_stored(
    shop: Clients, mika: Clients, transport: str, field: str, value: Any
) -> None:
    await submit(shop, "grpc", requires_approval=True)
    wanted = {"task_id": "po-1", "reason": "needed", "max_total_yen": 1} | {field: value}
    with pytest.raises(RefusedError, match=field) as refused:
        await getattr(mika, transport)("OperationsService/ApproveOrder", **wanted)
    assert refused.value.reason == "INVALID_FIELD"
    assert (await shop.rest("GET", "/api/orders/po-1"))["approval"] is None


@pytest.mark.parametrize("value", ["yes", 1, None])
async def test_over_rest_only_true_and_false_are_taken(shop: Clients, value: object) -> None:
    body = {"task_id": "po-1", "site": "sandbox", "intent": {}, "requires_approval": value}
    with pytest.raises(RefusedError, match="requires_approval"):
        await shop.rest("POST", "/api/orders", body)
