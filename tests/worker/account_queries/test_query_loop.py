"""The query loop beside a scripted gateway on a real socket and the sandbox shop: one report for each query."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from ordergateway.v1 import errors_pb2

from common.target import Target
from tests.worker.account_queries.scripted import Running, outcome, result, running_queries
from tests.worker.conftest import eventually
from tests.worker.running_shop import RunningShop, running_shop
from tests.worker.scripted_gateway import Refusal
from worker.sites.port import OrderDetail, OrderList, Page
from worker.sites.rakuten import RakutenSite
from worker.sites.sandbox.adapter import SandboxSite

ARTICLE = {"code": "sencha-100g", "quantity": 1}
LEASE_INVALID = Refusal(grpc.StatusCode.FAILED_PRECONDITION, errors_pb2.ERROR_REASON_QUERY_LEASE_INVALID)
NOT_FOUND = Refusal(grpc.StatusCode.NOT_FOUND, errors_pb2.ERROR_REASON_QUERY_NOT_FOUND)
UNAVAILABLE = Refusal(grpc.StatusCode.UNAVAILABLE)


class SlowSite(RakutenSite):
    """Can read, when the test lets it; counts how many are inside at once."""

    can_read_orders = True
    name = "sandbox"

    def __init__(self, failure: BaseException | None = None) -> None:
        super().__init__()
        self.go = asyncio.Event()
        self.inside = self.most = self.entered = 0
        self.failure = failure

    async def list_orders(self, **_: Any) -> OrderList:
        self.inside += 1
        self.entered += 1
        self.most = max(self.most, self.inside)
        try:
            await self.go.wait()
            if self.failure is not None:
                raise self.failure
            return OrderList((), True, (), ())
        finally:
            self.inside -= 1

    async def order_detail(self, order_number: str) -> OrderDetail:
        return OrderDetail(order_number, False, None, None, None, None, None, Page("", "GET", 404, b""))


@pytest.fixture
async def shop() -> AsyncIterator[RunningShop]:
    async with running_shop() as running:
        yield running


@pytest.fixture
async def site(shop: RunningShop) -> AsyncIterator[SandboxSite]:
    adapter = SandboxSite(shop.url, timeout_seconds=5)
    yield adapter
    await adapter.close()


@pytest.fixture
async def running(site: SandboxSite) -> AsyncIterator[Running]:
    async with running_queries([site, RakutenSite()]) as made:
        yield made


async def test_only_sites_that_can_be_read_are_asked_for(running: Running) -> None:
    await running.gateway.was_asked(1)
    assert list(running.gateway.asked[0].sites) == ["sandbox"]


async def test_a_list_with_the_site_s_own_data_and_max_pages(running: Running, shop: RunningShop) -> None:
    numbers = [await shop.control.add_order(ARTICLE, days_ago=days) for days in range(1, 13)]
    running.gateway.offer(max_pages=2)
    (report,) = await running.gateway.told()
    found = result(report)
    assert (report.query_id, report.worker_id, report.attempt) == ("q-1", "worker-1", 1)
    assert [order["order_number"] for order in found["orders"]] == numbers[:10]
    assert found["window_fully_covered"] is False
    assert [page["page"] for page in found["raw_pages"]] == [1, 2]
    assert shop.shop.requests["order_list"] == 2


async def test_a_detail_of_an_order_that_is_there_and_of_one_that_is_not_yet(
    running: Running, shop: RunningShop
) -> None:
    number = await shop.control.add_order(ARTICLE, days_ago=1)
    running.gateway.offer("order_detail", "there", order_number=number)
    running.gateway.offer("order_detail", "not-there", order_number="306087-20260101-0000000000")
    found = {report.query_id: result(report) for report in await running.gateway.told(2)}
    assert found["there"]["found"] is True
    assert found["there"]["raw"]
    assert found["there"]["stage_label"]
    assert found["not-there"]["found"] is False


@pytest.mark.parametrize(
    ("kind", "params"), [("order_list", {"max_pages": 21}), ("order_detail", {}), ("order_list", {"since": "soon"})]
)
async def test_malformed_params_are_a_failed_result_and_the_site_is_not_asked(
    running: Running, shop: RunningShop, kind: str, params: dict[str, Any]
) -> None:
    running.gateway.offer(kind, **params)
    (report,) = await running.gateway.told()
    assert outcome(report)[0] == 422
    assert not shop.shop.requests


async def test_a_logout_is_passed_through_with_its_code(running: Running, shop: RunningShop) -> None:
    await shop.control.change_account(login_refused=True)
    running.gateway.offer()
    (report,) = await running.gateway.told()
    assert outcome(report)[0] == 5001


@pytest.mark.parametrize("kind", ["error", "reset", "redesign"])
async def test_trouble_on_the_site_is_a_failed_result_or_an_uncovered_window(
    running: Running, shop: RunningShop, kind: str
) -> None:
    await shop.control.arm(kind, "order_list", blocks=["state"])
    await shop.control.arm(kind, "order_detail", blocks=["stages"])
    running.gateway.offer(query_id="list")
    running.gateway.offer("order_detail", "detail", order_number="306087-20260101-0000000000")
    told = {report.query_id: report for report in await running.gateway.told(2)}
    if told["list"].WhichOneof("outcome") == "result_json":
        assert result(told["list"])["window_fully_covered"] is False
    else:
        assert outcome(told["list"])[0] == 502
    if told["detail"].WhichOneof("outcome") == "error":
        assert outcome(told["detail"])[0] == 502


async def test_a_site_that_is_not_implemented_is_a_failed_result_with_a_clear_message() -> None:
    class Readable(RakutenSite):
        can_read_orders = True

    async with running_queries([Readable()]) as running:
        running.gateway.offer(site="rakuten")
        (report,) = await running.gateway.told()
    code, words = outcome(report)
    assert code == 501
    assert "rakuten" in words
    assert "never tried on the real site" in words


async def test_a_slow_order_step_makes_queries_time_out_as_failed_and_not_as_lost() -> None:
    site = SlowSite()
    site.go.set()
    async with running_queries([site], timeout_seconds=0.2) as running:
        async with running.accounts.of(Target("sandbox")):
            for number in range(3):
                running.gateway.offer(query_id=f"q-{number}")
            told = {report.query_id: outcome(report) for report in await running.gateway.told(3)}
        assert {code for code, _ in told.values()} == {504}
        assert all("the account was in use" in words for _, words in told.values())
        running.gateway.offer(query_id="after")
        assert result((await running.gateway.told(4))[3])["kind"] == "order_list"


async def test_a_site_that_hangs_is_a_failed_result_and_frees_the_account() -> None:
    site = SlowSite()
    async with running_queries([site], timeout_seconds=0.1) as running:
        running.gateway.offer()
        (report,) = await running.gateway.told()
        assert outcome(report)[0] == 504
        assert "too slow" in outcome(report)[1]
        assert not running.accounts.of(Target("sandbox")).locked()


async def test_the_time_limit_is_shorter_where_the_lease_is() -> None:
    async with running_queries([SlowSite()], ttl=0.3, timeout_seconds=60) as running:
        running.gateway.offer()
        assert outcome((await running.gateway.told())[0])[0] == 504


async def test_several_are_in_hand_up_to_the_setting_and_take_turns_on_the_account() -> None:
    site = SlowSite()
    async with running_queries([site], at_once=3) as running:
        for number in range(5):
            running.gateway.offer(query_id=f"q-{number}")
        await running.gateway.was_asked(3)
        await eventually(lambda: site.entered == 1 and running.gateway.leases.qsize() == 2)
        assert [list(request.held_query_ids) for request in running.gateway.asked] == [
            [],
            ["q-0"],
            ["q-0", "q-1"],
        ]
        site.go.set()
        told = await running.gateway.told(5)
    assert sorted(report.query_id for report in told) == [f"q-{number}" for number in range(5)]
    assert site.most == 1


@pytest.mark.parametrize("refusal", [LEASE_INVALID, NOT_FOUND])
async def test_a_result_that_comes_too_late_is_dropped_and_not_repeated(running: Running, refusal: Refusal) -> None:
    running.gateway.script = [refusal]
    running.gateway.offer(query_id="late")
    await running.gateway.told()
    running.gateway.offer(query_id="next")
    told = await running.gateway.told(2)
    assert [report.query_id for report in told] == ["late", "next"]


async def test_a_report_that_brought_no_answer_is_repeated_as_it_was(running: Running) -> None:
    running.gateway.script = [UNAVAILABLE, UNAVAILABLE]
    running.gateway.offer()
    told = await running.gateway.told(3)
    assert told[0] == told[1] == told[2]


async def test_a_report_is_not_repeated_after_its_lease_ran_out(caplog: pytest.LogCaptureFixture) -> None:
    site = SlowSite()
    site.go.set()
    async with running_queries([site], ttl=0.2) as running:
        running.gateway.script = [UNAVAILABLE] * 5
        with caplog.at_level(logging.WARNING):
            running.gateway.offer()
            await running.gateway.told()
            await eventually(lambda: "its lease has run out" in caplog.text)
        assert len(running.gateway.reports) == 1


async def test_a_result_that_the_gateway_does_not_take_becomes_a_failure(running: Running) -> None:
    running.gateway.script = [Refusal(grpc.StatusCode.INVALID_ARGUMENT, errors_pb2.ERROR_REASON_INVALID_FIELD)]
    running.gateway.offer()
    first, second = await running.gateway.told(2)
    assert first.WhichOneof("outcome") == "result_json"
    assert outcome(second)[0] == 413


async def test_a_result_that_is_too_large_without_raw_data_is_a_failure(site: SandboxSite, shop: RunningShop) -> None:
    for days in range(1, 6):
        await shop.control.add_order(ARTICLE, days_ago=days)
    async with running_queries([site], max_result_bytes=2000) as running:
        running.gateway.offer(query_id="trimmed", since="2020-01-01T00:00:00Z")
        assert result((await running.gateway.told())[0])["raw_omitted"] is True
    async with running_queries([site], max_result_bytes=500) as running:
        running.gateway.offer(query_id="too-large")
        code, words = outcome((await running.gateway.told())[0])
        assert code == 413
        assert "fewer pages" in words


@pytest.mark.parametrize("failure", [ValueError("a bug"), KeyError("x"), RecursionError(), MemoryError()])
async def test_no_exception_leaves_the_loop(failure: Exception) -> None:
    site = SlowSite(failure)
    site.go.set()
    async with running_queries([site]) as running:
        running.gateway.offer(query_id="bug")
        running.gateway.offer("order_detail", "fine", order_number="1")
        told = {report.query_id: report for report in await running.gateway.told(2)}
        assert outcome(told["bug"])[0] == 500
        assert result(told["fine"])["found"] is False
        assert not running.loop.done()


async def test_a_lease_that_is_handed_over_twice_is_read_once_and_a_newer_attempt_replaces_the_older() -> None:
    site = SlowSite()
    async with running_queries([site]) as running:
        for attempt in (1, 1, 2):
            running.gateway.offer(attempt=attempt)
        await running.gateway.was_asked(4)
        site.go.set()
        (report,) = await running.gateway.told()
        running.gateway.offer("order_detail", "next", order_number="1")
        assert [each.query_id for each in await running.gateway.told(2)] == ["q-1", "next"]
        assert report.attempt == 2


async def test_on_shutdown_what_is_in_hand_is_reported() -> None:
    site = SlowSite()
    async with running_queries([site]) as running:
        running.gateway.offer()
        await running.gateway.was_asked(2)
        running.stop.set()
        site.go.set()
        await asyncio.wait_for(running.loop, 60)
        assert [report.query_id for report in running.gateway.reports] == ["q-1"]


async def test_what_cannot_be_finished_at_shutdown_is_left_to_run_out_and_not_half_reported() -> None:
    site = SlowSite()
    async with running_queries([site]) as running:
        running.gateway.offer()
        await running.gateway.was_asked(2)
        running.stop.set()
        running.loop.cancel()
        await asyncio.gather(running.loop, return_exceptions=True)
        assert running.gateway.reports == []
        assert site.inside == 0
        assert not running.accounts.of(Target("sandbox")).locked()
