"""The acceptance list over REST, and what the documented contract says beyond it."""

import asyncio
import json
import time as real_time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.gateway.support.in_process import RunningGateway
from tests.gateway.support.rest_api import data_of, envelope_of, lease, post, rest_client, submit, task


@pytest.fixture
async def rest(gateway: RunningGateway) -> AsyncIterator[httpx.AsyncClient]:
    async with rest_client(gateway.http_port) as client:
        yield client


async def report(client: httpx.AsyncClient, state: str | None, task_id: str = "po-1", **fields: Any) -> httpx.Response:
    return await post(client, f"/api/orders/{task_id}/report", {"worker_id": "w1", "state": state} | fields)


async def code_of(answer: httpx.Response) -> tuple[int, int]:
    return answer.status_code, envelope_of(answer)["code"]


async def test_the_same_task_id_twice_makes_one_task(rest: httpx.AsyncClient) -> None:
    first = await submit(rest)
    assert first == {
        "task_id": "po-1",
        "status": "queued",
        "created": True,
        "intent_matches": True,
        "differs": [],
        "same_intent_as": None,
        "held_for_approval": False,
    }
    assert await submit(rest) == first | {"created": False}
    other = first | {"created": False, "intent_matches": False, "differs": ["intent"]}
    assert await submit(rest, quantity=2) == other
    body = {"task_id": "po-1", "site": "sandbox", "intent": {"n": 1}, "callback_url": "https://u.example/c"}
    assert data_of(await post(rest, "/api/orders", body))["differs"] == ["site", "intent", "callback_url"]
    assert data_of(await rest.get("/api/orders"))["total"] == 1


@pytest.mark.parametrize("word", ["needs_human", "failed", "succeeded"])
async def test_a_terminal_report_may_say_how_it_ends_where_its_state_stands(rest: httpx.AsyncClient, word: str) -> None:
    await submit(rest)
    data_of(await rest.get("/api/orders/lease", params={"worker_id": "w1", "wait": 0}))
    data_of(await report(rest, "in_cart"))
    unended = await report(rest, word)
    assert await code_of(unended) == (422, 422)
    assert f"state: may say {word}" in envelope_of(unended)["msg"]
    other = "succeeded" if word == "failed" else "failed"
    assert await code_of(await report(rest, word, terminal=True, terminal_status=other)) == (422, 422)
    assert data_of(await report(rest, word, terminal=True, detail="3-D Secure"))["status"] == word
    found = await task(rest)
    assert (found["status"], found["latest_state"]) == (word, "in_cart")
    assert found["reports"][-1]["detail"] == "3-D Secure"


async def test_a_task_without_a_key_gets_one(rest: httpx.AsyncClient) -> None:
    made = data_of(await post(rest, "/api/orders", {"site": "rakuten", "intent": {}}))
    assert (await task(rest, made["task_id"]))["status"] == "queued"


async def test_of_two_workers_only_one_gets_the_task(rest: httpx.AsyncClient) -> None:
    await submit(rest)
    taken = await asyncio.gather(lease(rest, "w1"), lease(rest, "w2"))
    assert sorted(each is not None for each in taken) == [False, True]


async def test_while_a_task_is_in_execution_every_lease_is_empty(rest: httpx.AsyncClient) -> None:
    await submit(rest, "po-1")
    await submit(rest, "po-2")
    assert (await lease(rest))["task_id"] == "po-1"
    assert await lease(rest) is None
    data_of(await report(rest, "in_cart"))
    assert (await task(rest))["status"] == "running"
    assert await lease(rest, wait=0.2) is None


async def test_an_empty_lease_answers_null_after_its_wait_and_not_earlier(rest: httpx.AsyncClient) -> None:
    started = real_time.monotonic()
    answer = await rest.get("/api/orders/lease", params={"worker_id": "w1", "wait": 0.7})
    assert 0.7 <= real_time.monotonic() - started < 20
    assert answer.status_code == 200
    assert envelope_of(answer) == {"success": True, "msg": "ok", "data": None, "code": 0}


async def test_a_waiting_lease_gets_what_is_submitted_meanwhile(
    gateway: RunningGateway, rest: httpx.AsyncClient
) -> None:
    waiting = asyncio.create_task(lease(rest, wait=30))
    while not gateway.rows("SELECT 1 FROM workers"):  # noqa: ASYNC110 - the row is the signal
        await asyncio.sleep(0.01)
    await submit(rest, item_url="https://shop.example/1")
    told = await asyncio.wait_for(waiting, 60)
    assert (told["task_id"], told["intent"]) == ("po-1", {"item_url": "https://shop.example/1"})
    assert (told["lease_count"], told["known_state"]) == (1, None)


async def test_a_lease_may_name_its_site(rest: httpx.AsyncClient) -> None:
    await submit(rest, "po-1", "rakuten")
    await submit(rest, "po-2", "sandbox")
    assert (await lease(rest, site="sandbox"))["task_id"] == "po-2"
    assert await code_of(await rest.get("/api/orders/lease?worker_id=w1&site=elsewhere")) == (422, 422)


async def test_a_repeated_report_makes_no_second_row(rest: httpx.AsyncClient) -> None:
    await submit(rest)
    await lease(rest)
    first = {"payable_yen": 12_800, "detail": "one", "evidence_ref": "po-1/03-order-confirm"}
    assert data_of(await report(rest, "ordered", **first)) == {"task_id": "po-1", "status": "running", "recorded": True}
    again = await report(rest, "ordered", payable_yen=None, detail="two")
    assert data_of(again)["recorded"] is False
    (row,) = (await task(rest))["reports"]
    assert (row["payable_yen"], row["detail"], row["evidence_ref"]) == (12_800, "two", "po-1/03-order-confirm")


async def test_a_lapsed_lease_turns_stale_and_no_lease_brings_it_back(
    gateway: RunningGateway, rest: httpx.AsyncClient
) -> None:
    await submit(rest)
    await lease(rest)
    gateway.time.advance(299.999999)
    data_of(await rest.post("/api/orders/po-1/renew", params={"worker_id": "w1"}))
    gateway.time.advance(300)
    assert await code_of(await rest.post("/api/orders/po-1/renew", params={"worker_id": "w1"})) == (409, 6002)
    assert await lease(rest) is None
    told = await task(rest)
    assert (told["status"], told["lease_owner"], told["lease_expires_at"]) == ("stale", None, None)


async def test_a_reclaimed_task_comes_with_its_known_state(gateway: RunningGateway, rest: httpx.AsyncClient) -> None:
    await submit(rest)
    await lease(rest)
    data_of(await report(rest, "ordered"))
    assert await code_of(await post(rest, "/api/orders/po-1/reclaim", {"worker_id": "w1"})) == (409, 6003)
    gateway.time.advance(300)
    await submit(rest, "po-2")
    await lease(rest)
    answer = await rest.post("/api/orders/po-1/reclaim?worker_id=w1")
    assert await code_of(answer) == (200, 6004)
    data_of(await report(rest, None, "po-2", terminal=True, terminal_status="failed"))
    again = data_of(await rest.post("/api/orders/po-1/reclaim?worker_id=w1"))
    assert (again["lease_count"], again["known_state"]) == (2, "ordered")


async def test_the_end_by_state_and_by_word(rest: httpx.AsyncClient) -> None:
    ends = [
        ({"state": "paid"}, "succeeded"),
        ({"state": "cancelled"}, "failed"),
        ({"state": "awaiting_payment"}, "needs_human"),
        ({"state": None}, "needs_human"),
        ({"state": None, "terminal_status": "failed"}, "failed"),
        ({"state": "shipped", "terminal_status": "succeeded"}, "succeeded"),
    ]
    for number, (fields, status) in enumerate(ends):
        task_id = f"po-{number}"
        await submit(rest, task_id)
        await lease(rest)
        told = {"worker_id": "w1", "terminal": True} | fields
        assert data_of(await post(rest, f"/api/orders/{task_id}/report", told))["status"] == status
        ended = await task(rest, task_id)
        assert (ended["status"], ended["latest_state"]) == (status, fields["state"] or "created")
        # The same end again succeeds, another one is refused and kept.
        data_of(await post(rest, f"/api/orders/{task_id}/report", told))
        other = "failed" if status == "succeeded" else "succeeded"
        contradiction = {"worker_id": "w1", "state": "delivered", "terminal": True, "terminal_status": other}
        assert await code_of(await post(rest, f"/api/orders/{task_id}/report", contradiction)) == (409, 6003)
        assert await code_of(await rest.post(f"/api/orders/{task_id}/renew?worker_id=w1")) == (409, 6002)


async def test_a_token_that_is_given_must_match(rest: httpx.AsyncClient) -> None:
    await submit(rest)
    token = (await lease(rest))["lease_token"]
    told = {"worker_id": "w1", "state": "in_cart"}
    assert await code_of(await post(rest, "/api/orders/po-1/report", told | {"lease_token": "x" * 43})) == (409, 6002)
    data_of(await post(rest, "/api/orders/po-1/report", told | {"lease_token": token}))
    data_of(await post(rest, "/api/orders/po-1/report", told))
    data_of(await post(rest, "/api/orders/po-1/renew", {"worker_id": "w1", "lease_token": token}))
    assert await code_of(await post(rest, "/api/orders/po-1/renew?worker_id=w2", {"worker_id": "w1"})) == (422, 422)
    assert token not in json.dumps(await task(rest))


async def test_a_lease_over_grpc_needs_its_token_over_rest(gateway: RunningGateway, rest: httpx.AsyncClient) -> None:
    taken = await gateway.api.take()
    assert await code_of(await report(rest, "in_cart")) == (409, 6002)
    data_of(await report(rest, "in_cart", lease_token=taken.lease_token))


async def test_never_leased_and_unknown_tasks(rest: httpx.AsyncClient) -> None:
    await submit(rest)
    assert await code_of(await rest.post("/api/orders/po-1/renew?worker_id=w1")) == (409, 6002)
    assert await code_of(await report(rest, "created")) == (409, 6002)
    for path in ("renew", "report", "reclaim"):
        body = {"worker_id": "w1", "state": "created"}
        assert await code_of(await post(rest, f"/api/orders/none/{path}", body)) == (404, 6001)
    assert await code_of(await rest.get("/api/orders/none")) == (404, 6001)


async def test_slices_of_the_list(rest: httpx.AsyncClient) -> None:
    for number in range(5):
        await submit(rest, f"po-{number}", "rakuten" if number % 2 else "sandbox")
    await lease(rest, site="rakuten")

    async def listed(**parameters: Any) -> tuple[list[str], int, int, int]:
        told = data_of(await rest.get("/api/orders", params=parameters))
        return [each["task_id"] for each in told["items"]], told["total"], told["limit"], told["offset"]

    assert await listed() == (["po-4", "po-3", "po-2", "po-1", "po-0"], 5, 50, 0)
    assert await listed(limit=2, offset=1) == (["po-3", "po-2"], 5, 2, 1)
    assert await listed(site="rakuten") == (["po-3", "po-1"], 2, 50, 0)
    assert await listed(status="leased") == (["po-1"], 1, 50, 0)
    assert await listed(status="queued", site="rakuten", limit=200) == (["po-3"], 1, 200, 0)
    assert await listed(offset=10**30) == ([], 5, 50, 2**63 - 1)


async def test_health_tells_of_a_silent_worker_and_of_a_task_that_waits(
    gateway: RunningGateway, rest: httpx.AsyncClient
) -> None:
    await lease(rest)
    assert data_of(await rest.get("/health"))["status"] == "ok"
    await submit(rest)
    gateway.time.advance(601)
    told = data_of(await rest.get("/health"))
    assert (told["status"], told["offline_workers"]) == ("degraded", ["w1"])
    (waiting,) = told["stale_queued_tasks"]
    assert (waiting["task_id"], waiting["site"], waiting["age_seconds"]) == ("po-1", "rakuten", 601.0)


async def test_probes_are_open_and_show_nothing(rest: httpx.AsyncClient) -> None:
    for path in ("/livez", "/readyz"):
        assert data_of(await rest.get(path)) is None


async def test_one_number_with_and_without_blanks_is_one(rest: httpx.AsyncClient) -> None:
    await submit(rest)
    data_of(await rest.get("/api/orders/lease", params={"worker_id": "w1", "wait": 0}))
    for number in (" 777-1", "777-1 ", "\u3000777-1\t", "777-1"):
        data_of(await report(rest, "ordered", site_order_id=number))
        assert (await task(rest))["reports"][-1]["site_order_id"] == "777-1"
    health = data_of(await rest.get("/health"))
    assert "site_order_id_conflict" not in str(health)
