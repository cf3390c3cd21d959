"""What one transport files, every transport shows alike: values, counts and times."""

import json
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from ordergateway.v1 import account_queries_pb2, orders_pb2

from tests.contract.transports import TRANSPORTS, Clients, clients
from tests.gateway.support.in_process import RunningGateway

INTENT = (
    '{ "b" : 1.0, "a":1, "big": 123456789012345678901234567890, "e":1e2, "null":null, "text":"\\u65e5本 \\"", "-":-0.0}'
)


@pytest.fixture
async def connected(gateway: RunningGateway) -> Any:
    async with clients(gateway.port, gateway.http_port) as made:
        yield made


def name(enum: Any, number: int) -> str | None:
    """An enum's value as the JSON contract writes it."""
    prefix = {
        "TaskStatus": "TASK_STATUS_",
        "OrderState": "ORDER_STATE_",
        "Placement": "PLACEMENT_",
        "QueryStatus": "QUERY_STATUS_",
    }[enum.DESCRIPTOR.name]
    return enum.Name(number).removeprefix(prefix).lower() if number else None


def time(message: Any, field: str) -> str | None:
    value: Timestamp = getattr(message, field)
    return value.ToDatetime().isoformat(timespec="microseconds") + "Z" if message.HasField(field) else None


def optional(message: Any, field: str) -> Any:
    return getattr(message, field) if message.HasField(field) else None


def in_json(task: orders_pb2.Task) -> dict[str, Any]:
    """A task of the proto contract in the shape of the JSON contract."""
    return {
        "task_id": task.task_id,
        "site": task.site,
        "account": task.account,
        "intent": json.loads(task.intent_json),
        "callback_url": optional(task, "callback_url"),
        "status": name(orders_pb2.TaskStatus, task.status),
        "lease_owner": optional(task, "lease_owner"),
        "lease_expires_at": time(task, "lease_expires_at"),
        "lease_count": task.lease_count,
        "created_at": time(task, "created_at"),
        "updated_at": time(task, "updated_at"),
        "latest_state": name(orders_pb2.OrderState, task.latest_state),
        "reports": [
            {
                "state": name(orders_pb2.OrderState, report.state),
                "payable_yen": optional(report, "payable_yen"),
                "pay_deadline": time(report, "pay_deadline"),
                "site_order_id": optional(report, "site_order_id"),
                "evidence_ref": optional(report, "evidence_ref"),
                "detail": report.detail,
                "error_code": optional(report, "error_code"),
                "reported_at": time(report, "reported_at"),
            }
            for report in task.reports
        ],
        "submit_permitted_at": time(task, "submit_permitted_at"),
        "placement": name(orders_pb2.Placement, task.placement),
        "labels": dict(task.labels),
        "max_total_yen": optional(task, "max_total_yen"),
        "terms": optional(task, "terms"),
        "not_before": time(task, "not_before"),
        "not_after": time(task, "not_after"),
        "stop_before_submit": task.stop_before_submit,
        "cancel_requested_at": time(task, "cancel_requested_at"),
        "same_intent_as": optional(task, "same_intent_as"),
        "submitted_by": task.submitted_by,
        "requires_approval": bool(task.approval_reasons),
        "approval_reasons": [name(orders_pb2.ApprovalReason, reason) for reason in task.approval_reasons],
        "held_for_approval": task.held_for_approval,
        "approval": optional(task, "approval"),
    }


async def submit(connected: Clients, transport: str, task_id: str, intent: str = INTENT) -> dict[str, Any]:
    if transport == "rest":
        body = (
            f'{{"task_id": "{task_id}", "site": "sandbox", "intent": {intent}, "callback_url": "http://u.example/c"}}'
        )
        told: dict[str, Any] = await connected.rest("POST", "/api/orders", body)
        return told
    answer = await getattr(connected, transport)(
        "OrderService/SubmitOrder",
        task_id=task_id, site="sandbox", intent_json=intent, callback_url="http://u.example/c",
    )  # fmt: skip
    return {
        "task_id": answer.task_id,
        "status": name(orders_pb2.TaskStatus, answer.status),
        "created": answer.created,
        "intent_matches": answer.intent_matches,
        "differs": ["intent" if name == "intent_json" else name for name in answer.differs],
        "same_intent_as": optional(answer, "same_intent_as"),
        "held_for_approval": answer.held_for_approval,
    }


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_submission_is_idempotent_whatever_carries_it(connected: Clients, transport: str) -> None:
    first: dict[str, Any] = {
        "task_id": "po-1",
        "status": "queued",
        "created": True,
        "intent_matches": True,
        "differs": [],
    }
    first |= {"same_intent_as": None, "held_for_approval": False}
    assert await submit(connected, transport, "po-1") == first
    for other in TRANSPORTS:
        assert await submit(connected, other, "po-1") == first | {"created": False}
        again = await submit(connected, other, "po-1", '{"a":1}')
        assert again == first | {"created": False, "intent_matches": False, "differs": ["intent"]}


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_an_intent_passes_through_character_for_character(connected: Clients, transport: str) -> None:
    await submit(connected, transport, "po-1")
    over_grpc = await connected.grpc("OrderService/GetOrder", task_id="po-1")
    over_connect = await connected.connect("OrderService/GetOrder", task_id="po-1")
    assert over_grpc.task.intent_json == over_connect.task.intent_json == INTENT
    for path in ("/api/orders/po-1", "/api/orders", "/api/orders/lease?worker_id=w1&wait=0", "/health"):
        assert f'"intent":{INTENT}' in (await connected.http.get(path)).text


async def test_a_task_looks_alike_on_every_transport_at_every_step(connected: Clients) -> None:
    async def alike() -> dict[str, Any]:
        over_rest: dict[str, Any] = await connected.rest("GET", "/api/orders/po-1")
        for transport in ("grpc", "connect"):
            answer = await getattr(connected, transport)("OrderService/GetOrder", task_id="po-1")
            assert in_json(answer.task) == over_rest
            (listed,) = (await getattr(connected, transport)("OrderService/ListOrders")).tasks
            assert in_json(listed) == over_rest
        assert (await connected.rest("GET", "/api/orders"))["items"] == [over_rest]
        return over_rest

    await submit(connected, "rest", "po-1")
    assert (await alike())["placement"] == "impossible"
    lease = await connected.rest("GET", "/api/orders/lease", worker_id="w1", wait=0)
    assert lease.keys() == {
        "task_id", "site", "account", "intent", "lease_expires_at", "lease_count", "known_state", "lease_token",
        "labels", "stop_before_submit", "other_site_order_ids", "other_site_order_ids_truncated",
    }  # fmt: skip
    assert (await alike())["placement"] == "possible"
    told = {
        "worker_id": "w1",
        "state": "awaiting_payment",
        "payable_yen": 12_800,
        "pay_deadline": "2026-07-30T23:59:00+09:00",
        "site_order_id": "266123-20260727-0001234",
        "evidence_ref": "po-1/03-order-confirm",
        "detail": "コンビニ払い",
        "error_code": 0,
    }
    await connected.rest("POST", "/api/orders/po-1/report", told)
    running = await alike()
    assert running["reports"][0]["pay_deadline"] == "2026-07-30T14:59:00.000000Z"
    await connected.rest("POST", "/api/orders/po-1/report", {"worker_id": "w1", "terminal": True})
    ended = await alike()
    assert (ended["status"], ended["latest_state"], ended["placement"]) == (
        "needs_human",
        "awaiting_payment",
        "certain",
    )


async def test_health_says_the_same_everywhere(gateway: RunningGateway, connected: Clients) -> None:
    await submit(connected, "rest", "po-1")
    await connected.rest("GET", "/api/orders/lease", worker_id="w1", wait=0)
    await submit(connected, "connect", "po-2")
    gateway.time.advance(299)
    gateway.pause("rakuten")
    over_rest = await connected.rest("GET", "/health")
    for transport in ("grpc", "connect"):
        told = await getattr(connected, transport)("OperationsService/GetHealth")
        assert over_rest["status"] == ("ok", "degraded")[told.status - 1]
        assert over_rest["queued_count"] == told.queued_count == 1
        assert over_rest["held_for_approval_count"] == told.held_for_approval_count == 0
        assert over_rest["active_tasks"] == [in_json(task) for task in told.active_tasks]
        assert [worker["last_seen_seconds"] for worker in over_rest["workers"]] == [299.0]
        assert [worker.last_seen_ago.ToTimedelta().total_seconds() for worker in told.workers] == [299.0]
        assert over_rest["offline_workers"] == list(told.offline_workers) == []
    assert over_rest["paused"] is True
    assert [pause["site"] for pause in over_rest["pauses"]] == ["rakuten"]


async def test_a_query_is_filed_led_and_answered_alike(connected: Clients) -> None:
    filed = {"query_id": "aq-1", "kind": "order_list", "params": {"max_pages": 3}}
    assert await connected.rest("POST", "/api/account/queries", filed) == {
        "query_id": "aq-1", "status": "queued", "created": True, "differs": [],
    }  # fmt: skip
    again = await connected.connect("AccountQueryService/SubmitQuery", query_id="aq-1", kind=1)
    assert (again.created, list(again.differs)) == (False, ["params_json"])
    lease = await connected.rest("GET", "/api/account/queries/lease", worker_id="w1", wait=0)
    assert lease.keys() == {"query_id", "site", "account", "kind", "params", "lease_expires_at", "attempt"}
    assert await connected.rest("GET", "/api/account/queries/lease", worker_id="w1", wait=0) is None
    body = '{"worker_id": "w1", "success": true, "result": {"kind":"order_list", "n": 1.0, "orders":[]}}'
    assert await connected.rest("POST", "/api/account/queries/aq-1/result", body) == {
        "query_id": "aq-1", "status": "succeeded",
    }  # fmt: skip
    over_rest = await connected.rest("GET", "/api/account/queries/aq-1")
    for transport in ("grpc", "connect"):
        query: account_queries_pb2.Query = (
            await getattr(connected, transport)("AccountQueryService/GetQuery", query_id="aq-1")
        ).query
        assert query.result_json == '{"kind":"order_list", "n": 1.0, "orders":[]}'
        assert json.loads(query.params_json) == over_rest["params"]
        assert name(account_queries_pb2.QueryStatus, query.status) == over_rest["status"] == "succeeded"
        assert time(query, "completed_at") == over_rest["completed_at"]
    listed = await connected.rest("GET", "/api/account/queries", kind="order_list", status="succeeded")
    assert listed["total"] == 1
    assert listed["items"] == [over_rest | {"result": None}]
    assert not (await connected.http.get("/ordergateway.v1.QueryLeaseService/LeaseQueries")).is_success
