"""Tasks are found alike on every transport, page by page."""

from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from ordergateway.v1 import orders_pb2

from tests.contract.transports import TRANSPORTS, Clients, RefusedError, clients
from tests.gateway.support.in_process import RunningGateway


@pytest.fixture
async def connected(gateway: RunningGateway) -> Any:
    async with clients(gateway.port, gateway.http_port) as made:
        yield made


@pytest.fixture
async def times(gateway: RunningGateway, connected: Clients) -> list[str]:
    """Six tasks, a minute apart, and when each was filed; po-2 is cancelled, po-4 is stale."""
    filed = []
    for number in range(6):
        labels = {"team": "ab"[number % 2], "n": str(number)}
        site = "sandbox" if number < 4 else "rakuten"
        await connected.grpc(
            "OrderService/SubmitOrder", task_id=f"po-{number}", site=site, intent_json="{}", labels=labels
        )
        filed.append((await connected.rest("GET", f"/api/orders/po-{number}"))["created_at"])
        gateway.time.advance(60)
    await connected.grpc("OrderService/CancelOrder", task_id="po-2", reason="not wanted")
    await connected.rest("GET", "/api/orders/lease", worker_id="w1", wait=0, site="rakuten")
    await connected.rest(
        "POST", "/api/orders/po-4/report", {"worker_id": "w1", "state": "ordered", "site_order_id": "A-1"}
    )
    await connected.grpc("OperationsService/ExpireOrder", task_id="po-4", reason="gone")
    return filed


async def found(connected: Clients, transport: str, size: int = 50, **wanted: Any) -> list[str]:
    """All pages of a search."""
    found: list[str] = []
    token = ""
    while True:
        if transport == "rest":
            parameters = {name: _in_query(value) for name, value in wanted.items()} | {"limit": size}
            if "statuses" in parameters:
                parameters["status"] = parameters.pop("statuses")
            if "labels" in parameters:
                parameters["label"] = parameters.pop("labels")
            if token:
                parameters["page_token"] = token
            page = await connected.rest("GET", "/api/orders", **parameters)
            found += [task["task_id"] for task in page["items"]]
            token = page["next_page_token"] or ""
            assert (page["total_is_exact"], page["total"]) == (False, len(page["items"]))
        else:
            fields = {name: _in_message(name, value) for name, value in wanted.items() if name != "oldest_first"}
            if wanted.get("oldest_first"):
                fields["order"] = orders_pb2.TASK_ORDER_OLDEST_FIRST
            page = await getattr(connected, transport)(
                "OrderService/ListOrders", filter=fields, page_size=size, page_token=token
            )
            found += [task.task_id for task in page.tasks]
            token = page.next_page_token
        if not token:
            return found


def _in_query(value: Any) -> Any:
    if isinstance(value, list):
        return ",".join(value)
    if isinstance(value, dict):
        ((key, each),) = value.items()
        return f"{key}={each}"
    return str(value).lower() if isinstance(value, bool) else value


def _in_message(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return [f"TASK_STATUS_{each.upper()}" for each in value]
    if name.endswith(("_from", "_to")):
        at = Timestamp()
        at.FromJsonString(value)
        return at
    return value


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_each_condition_finds_its_tasks(connected: Clients, times: list[str], transport: str) -> None:
    cases: list[tuple[dict[str, Any], list[int]]] = [
        ({"statuses": ["queued", "stale"]}, [5, 4, 3, 1, 0]),
        ({"site": "sandbox", "oldest_first": True}, [0, 1, 2, 3]),
        ({"labels": {"team": "a"}}, [4, 2, 0]),
        ({"labels": {"team": "a"}, "statuses": ["failed", "queued"]}, [2, 0]),
        ({"site_order_id": "A-1"}, [4]),
        ({"created_from": times[4]}, [5, 4]),
        ({"created_from": times[1], "created_to": times[3], "oldest_first": True}, [1, 2]),
        ({"updated_from": times[5]}, [4, 2, 5]),
        ({"updated_from": times[5], "oldest_first": True}, [5, 2, 4]),
        ({"needs_decision": True}, [4]),
        ({"task_id_prefix": "po-"}, [5, 4, 3, 2, 1, 0]),
        ({"task_id_contains": "-3"}, [3]),
    ]
    for wanted, numbers in cases:
        for size in (1, 2, 50):
            assert await found(connected, transport, size, **wanted) == [f"po-{number}" for number in numbers], wanted


async def test_a_page_token_leads_on_in_its_own_search_alone(connected: Clients, times: list[str]) -> None:
    by_label = {"labels": {"team": "a"}}
    token = (await connected.grpc("OrderService/ListOrders", filter=by_label, page_size=1)).next_page_token
    assert (await connected.grpc("OrderService/ListOrders", filter=by_label, page_token=token)).tasks
    for other in ({"labels": {"team": "b"}}, {"labels": {"team": "a"}, "order": "TASK_ORDER_OLDEST_FIRST"}, {}):
        with pytest.raises(RefusedError, match="page_token: must be next_page_token"):
            await connected.grpc("OrderService/ListOrders", filter=other, page_token=token)
    assert (await connected.rest("GET", "/api/orders", label="team=a", page_token=token))["items"]
    with pytest.raises(RefusedError, match="page_token: must be next_page_token"):
        await connected.rest("GET", "/api/orders", page_token=token)


async def test_the_list_of_before_is_answered_as_before(connected: Clients, times: list[str]) -> None:
    page = await connected.rest("GET", "/api/orders", status="queued", limit=2, offset=1)
    assert page.keys() == {"items", "total", "limit", "offset", "next_offset"}
    assert ([task["task_id"] for task in page["items"]], page["total"], page["next_offset"]) == (["po-3", "po-1"], 4, 3)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"status": "nothing"}, "status: must be one or several of queued"),
        ({"status": "queued,"}, "status: must be one or several of"),
        ({"label": "a"}, "label: must be a key and a value"),
        ({"label": "a b=c"}, "label: must have keys"),
        ({"site_order_id": ""}, "site_order_id: must be 1 to 128 printable"),
        ({"created_from": "2026-07-30"}, "created_from: must be a time with offset"),
        ({"updated_to": ""}, "updated_to: must be a time with offset"),
        ({"needs_decision": "maybe"}, "needs_decision: Input should be a valid boolean"),
        ({"task_id_prefix": "a b"}, "task_id_prefix: must be up to 128 characters"),
        ({"task_id_contains": "a" * 129}, "task_id_contains: must be up to 128 characters"),
        ({"needs_decision": "true", "offset": "1"}, "offset: must be 0 in a search"),
        ({"label": ["a=b", "c=d"]}, "label: stands more than once"),
        ({"page_token": "x"}, "page_token: must be next_page_token"),
    ],
)
async def test_a_bad_parameter_is_named(connected: Clients, parameters: dict[str, Any], says: str) -> None:
    with pytest.raises(RefusedError, match=says) as refused:
        await connected.rest("GET", "/api/orders", **parameters)
    assert refused.value.code == 422
