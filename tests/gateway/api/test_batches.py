"""Many orders in one call, over every transport: each has its own answer or refusal, and one bad one stops no other."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from ordergateway.v1 import orders_pb2

from gateway.domain.refusals import Reason
from tests.contract.transports import TRANSPORTS, Clients, RefusedError, clients
from tests.gateway.support.grpc_api import GrpcApi, RefusedCallError, told
from tests.gateway.support.in_process import RunningGateway

TOO_MANY = "must hold 1 to 500 of them in one request"


@pytest.fixture
async def every(gateway: RunningGateway) -> AsyncIterator[Clients]:
    async with clients(gateway.port, gateway.http_port) as made:
        yield made


def order(number: int, **fields: Any) -> dict[str, Any]:
    return {"task_id": f"po-{number}", "site": "sandbox", "intent_json": f'{{"n": {number}}}', **fields}


async def batch(every: Clients, transport: str, orders: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """File a batch; each result in one form: that of a submission, or the refused field and what was said of it."""
    if transport != "rest":
        answer = await getattr(every, transport)("OrderService/SubmitOrders", orders=orders)
        return [_result(index, result) for index, result in enumerate(answer.results)]
    members = [
        ", ".join(
            f'"{"intent" if name == "intent_json" else name}": {value if name == "intent_json" else json.dumps(value)}'
            for name, value in each.items()
        )
        for each in orders
    ]
    body = f'{{"orders": [{", ".join(f"{{{each}}}" for each in members)}]}}'
    results = (await every.rest("POST", "/api/orders/batch", body))["results"]
    for result in results:
        assert result.keys() == {"success", "msg", "data", "code", "field"}
        assert (result["code"] == 0) is result["success"] is (result["data"] is not None) is (result["field"] is None)
    return [
        {"field": result["field"], "says": result["msg"].removeprefix(f"{result['field']}: ")}
        if result["data"] is None
        else {name: result["data"][name] for name in ("task_id", "created", "intent_matches")}
        for result in results
    ]


def _result(index: int, result: orders_pb2.SubmitOrdersResult) -> dict[str, Any]:
    if result.WhichOneof("outcome") == "refusal":
        assert result.refusal.index == index
        return {"field": result.refusal.field, "says": result.refusal.description}
    done = result.submitted
    return {"task_id": done.task_id, "created": done.created, "intent_matches": done.intent_matches}


def filed(number: int, *, created: bool = True, intent_matches: bool = True) -> dict[str, Any]:
    return {"task_id": f"po-{number}", "created": created, "intent_matches": intent_matches}


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_one_bad_order_of_five_hundred_is_named_and_stops_no_other(
    gateway: RunningGateway, every: Clients, transport: str
) -> None:
    orders = [order(number) for number in range(500)]
    orders[271]["site"] = "nowhere"
    results = await batch(every, transport, orders)
    refused = results.pop(271)
    assert refused == {
        "field": "orders[271].site", "says": "must be one of the configured sites rakuten, sandbox"
    }  # fmt: skip
    assert results == [filed(number) for number in range(500) if number != 271]
    assert len(gateway.rows("SELECT 1 FROM tasks")) == len(gateway.rows("SELECT 1 FROM events")) == 499
    again = await batch(every, transport, orders)
    assert again.pop(271) == refused
    assert again == [filed(number, created=False) for number in range(500) if number != 271]
    assert len(gateway.rows("SELECT 1 FROM tasks")) == len(gateway.rows("SELECT 1 FROM events")) == 499


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_orders_are_filed_in_the_order_of_the_request(
    gateway: RunningGateway, every: Clients, transport: str
) -> None:
    await batch(every, transport, [order(number) for number in (5, 3, 4)])
    found = gateway.rows("SELECT task_id FROM tasks ORDER BY row")
    assert [row["task_id"] for row in found] == ["po-5", "po-3", "po-4"]


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_an_order_that_stands_twice_is_filed_once(every: Clients, transport: str) -> None:
    orders = [order(1), order(1), order(1, intent_json='{"n": 2}'), order(2)]
    assert await batch(every, transport, orders) == [
        filed(1),
        filed(1, created=False),
        filed(1, created=False, intent_matches=False),
        filed(2),
    ]


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_an_intent_passes_through_a_batch_character_for_character(
    gateway: RunningGateway, every: Clients, transport: str
) -> None:
    depth = 64
    deepest = '{"a":' * (depth - 1) + "{}" + "}" * (depth - 1)
    intents = ['{ "b" : 1.0, "a":1,"big": 123456789012345678901234567890, "text":"\\u65e5本 [}\\"" }', deepest, "{ }"]
    results = await batch(
        every, transport, [order(number, intent_json=intent) for number, intent in enumerate(intents)]
    )
    assert results == [filed(number) for number in range(3)]
    assert [row["intent_json"] for row in gateway.rows("SELECT intent_json FROM tasks ORDER BY row")] == intents


BAD = (
    ({"task_id": "a b"}, "task_id", "must be 1 to 128 characters"),
    ({"task_id": "lease"}, "task_id", "must not be one of the reserved words"),
    ({"site": ""}, "site", "must be one of the configured sites"),
    ({"account": "a b"}, "account", "must be 1 to 64 characters"),
    ({"callback_url": "ftp://host/"}, "callback_url", "must be an absolute http or https URL"),
    ({"intent_json": '{"a": "' + "x" * 262_137 + '"}'}, "intent_json", "is 262146 bytes, the limit is 262144"),
)


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_each_bad_order_is_refused_by_its_own_field_and_nothing_of_it_is_stored(
    gateway: RunningGateway, every: Clients, transport: str
) -> None:
    orders = [order(1), *(order(2, **fields) for fields, _, _ in BAD), order(3)]
    first, *refused, last = await batch(every, transport, orders)
    assert (first, last) == (filed(1), filed(3))
    for index, (result, (_, field, says)) in enumerate(zip(refused, BAD, strict=True), 1):
        name = "intent" if (transport, field) == ("rest", "intent_json") else field
        assert result["field"] == f"orders[{index}].{name}"
        assert result["says"].startswith(says)
    assert len(gateway.rows("SELECT 1 FROM tasks")) == len(gateway.rows("SELECT 1 FROM events")) == 2


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("count", [0, 501])
async def test_a_batch_of_none_or_too_many_is_refused_as_a_whole(
    gateway: RunningGateway, every: Clients, transport: str, count: int
) -> None:
    with pytest.raises(RefusedError, match=TOO_MANY) as refused:
        await batch(every, transport, [order(number) for number in range(count)])
    assert refused.value.code == 422
    assert not gateway.rows("SELECT 1 FROM tasks")


@pytest.mark.parametrize(
    ("element", "field", "says"),
    [
        ("7", "orders[1]", "must be an object"),
        ("null", "orders[1]", "must be an object"),
        ("{}", "orders[1].site", "Field required"),
        ('{"site": "sandbox", "intent": []}', "orders[1].intent", "Input should be a valid dictionary"),
        ('{"site": "sandbox", "intent": {}, "task_id": 7}', "orders[1].task_id", "Input should be a valid string"),
    ],
)
async def test_an_element_that_is_no_submission_is_refused_by_itself(
    every: Clients, element: str, field: str, says: str
) -> None:
    good = '{"site": "sandbox", "intent": {"a": [1, {}]}, "task_id": "po-1"}'
    results = (await every.rest("POST", "/api/orders/batch", f'{{"orders": [{good} , {element},{good}]}}'))["results"]
    assert [result["success"] for result in results] == [True, False, True]
    assert (results[1]["field"], results[1]["code"]) == (field, 422)
    assert results[1]["msg"] == f"{field}: {says}"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ('{"orders": {}}', "orders: Input should be a valid list"),
        ("{}", "orders: Field required"),
        ('{"orders": [{"intent": {"a": 1, "a": 2}}]}', "twice in one object"),
    ],
)
async def test_a_body_of_another_form_is_refused_as_a_whole(every: Clients, body: str, says: str) -> None:
    with pytest.raises(RefusedError, match=says) as refused:
        await every.rest("POST", "/api/orders/batch", body)
    assert refused.value.code == 422


async def test_a_task_may_be_called_batch(every: Clients) -> None:
    await batch(every, "rest", [order(1, task_id="batch")])
    assert (await every.rest("GET", "/api/orders/batch"))["task_id"] == "batch"


EMPTY = b"\x0a\x00"
CRAMMED = b"\x0a\x82\x01" + b"\x10\x00" * 65


@pytest.mark.parametrize(
    ("request_", "field"),
    [(EMPTY * 501, "orders"), (EMPTY * 400_000, "orders"), (b"\x0b\x0c" * 400_000, "orders"), (CRAMMED, "orders[0]")],
)
async def test_what_would_take_much_memory_is_refused_before_it_is_read(
    api: GrpcApi, every: Clients, request_: bytes, field: str
) -> None:
    path = "/ordergateway.v1.OrderService/SubmitOrders"
    call = api.channel.unary_unary(path, lambda data: data, orders_pb2.SubmitOrdersResponse.FromString)
    with pytest.raises(RefusedCallError) as refused:
        await told(call(request_))
    assert (refused.value.reason, list(refused.value.fields)) == (Reason.INVALID_FIELD, [field])
    headers = {"Content-Type": "application/proto"}
    answer = await every.http.post(path, content=request_, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_argument")


async def test_the_event_loop_gets_its_turns_while_the_largest_batches_are_filed(
    gateway: RunningGateway, every: Clients
) -> None:
    """Measured is the longest time between two turns of the loop in which the gateway, the client and this test run."""
    longest = 0.0

    async def turn() -> None:
        nonlocal longest
        loop = asyncio.get_running_loop()
        last = loop.time()
        while True:
            await asyncio.sleep(0)
            longest, last = max(longest, loop.time() - last), loop.time()

    intent = json.dumps({"items": [{"item_url": "https://shop.example/i/1", "quantity": 1}], "note": "x" * 1_900})
    requests = [
        orders_pb2.SubmitOrdersRequest(orders=[order(begin + number, intent_json=intent) for number in range(500)])
        for begin in range(0, 2_000, 500)
    ]
    turning = asyncio.create_task(turn())
    for request in requests:
        await told(gateway.api.orders.SubmitOrders(request))
    turning.cancel()
    assert len(gateway.rows("SELECT 1 FROM tasks")) == 2_000
    assert longest < 0.5
