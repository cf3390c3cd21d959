"""What the resident process does besides orders: wishes, the monitor, its sockets, its end."""

import asyncio
from typing import Any

import grpc
import psutil
import pytest
from ordergateway.v1 import errors_pb2, orders_pb2

from sandbox_shop.orders import Stage
from tests.worker.conftest import Bench, eventually
from tests.worker.scripted_gateway import Refusal
from worker.failpoints import FailpointName

SUCCEEDED = orders_pb2.TASK_STATUS_SUCCEEDED
NEEDS_HUMAN = orders_pb2.TASK_STATUS_NEEDS_HUMAN


async def test_the_monitor_reports_later_states_with_evidence(bench: Bench) -> None:
    bench.gateway.offer("po-1", bench.intent())
    async with bench.worker(monitor_interval_seconds=0.1):
        end = await bench.gateway.end_of("po-1")
        for _ in range(2):
            await bench.shop.control.change_order(
                end.site_order_id or bench.gateway.reports("po-1")[4].site_order_id, "advance"
            )
        await bench.gateway.told("po-1", "shipped")
    report = bench.gateway.reports("po-1")[-1]
    assert report.evidence_ref.startswith("po-1/06-monitor-")
    assert not report.terminal
    assert (bench.folder / "evidence" / f"{report.evidence_ref}.html").is_file()


async def test_what_a_killed_worker_of_a_former_version_left_is_removed_at_the_start(bench: Bench) -> None:
    left = bench.folder / "evidence/.reserve-po-1"
    left.parent.mkdir(exist_ok=True)
    left.write_bytes(b"x")
    async with bench.worker():
        await bench.gateway.called("LeaseOrders")
    assert not left.exists()


async def test_an_earlier_state_on_the_site_overwrites_no_later_one(bench: Bench) -> None:
    """A page out of a cache, or a site that takes a stage back: what was told stays told."""
    bench.gateway.offer("po-1", bench.intent())
    async with bench.worker(monitor_interval_seconds=0.05):
        await bench.gateway.end_of("po-1")
        (order,) = bench.shop.shop.orders.values()
        order.stage = Stage.SHIPPED
        await bench.gateway.told("po-1", "shipped")
        told = len(bench.gateway.reports("po-1"))
        for stage in (Stage.ACCEPTED, Stage.PREPARING):
            order.stage = stage
            looks = bench.shop.shop.requests["order_detail"]
            assert await bench.shop.control.wait(step="order_detail", requests=looks + 3)
        journalled = await bench.in_journal(lambda journal: journal.orders.find("po-1"))
    assert journalled.state == "shipped"
    assert len(bench.gateway.reports("po-1")) == told


async def test_a_near_payment_deadline_is_told_once(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.gateway.offer("po-1", bench.intent(options={"payment_method": "convenience_store"}))
    async with bench.worker(monitor_interval_seconds=0.05, payment_alert_seconds=30 * 86400):
        await bench.gateway.end_of("po-1")
        await eventually(lambda: "payment deadline is near" in caplog.text)
        looks = (await bench.shop.control.counters())["requests"]["order_detail"]
        await bench.shop.control.wait(step="order_detail", requests=looks + 3)
    assert caplog.text.count("payment deadline is near") == 1


async def test_the_worker_opens_no_port(bench: Bench) -> None:
    before = listening()

    async def look(name: FailpointName) -> None:
        assert listening() == before

    bench.gateway.offer("po-1", bench.intent())
    async with bench.worker(look):
        end = await bench.gateway.end_of("po-1")
    assert end.terminal_status == SUCCEEDED


async def test_a_worker_whose_lock_was_deleted_takes_no_order(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    async with bench.worker(lease_wait_seconds=0.05):
        await bench.gateway.called("LeaseOrders")
        (bench.folder / "trading.db.lock").unlink()
        await eventually(lambda: "was deleted or replaced" in caplog.text)
        bench.gateway.offer("po-1", bench.intent())
        seen = len(bench.gateway.requests("LeaseOrders"))
        told = caplog.text.count("was deleted or replaced")
        await eventually(lambda: caplog.text.count("was deleted or replaced") > told)
        assert len(bench.gateway.requests("LeaseOrders")) == seen


def listening() -> list[tuple[str, int]]:
    connections = psutil.Process().net_connections(kind="inet")
    return sorted((c.laddr.ip, c.laddr.port) for c in connections if c.status == psutil.CONN_LISTEN)


@pytest.mark.parametrize("at", [FailpointName.CART_ADDED, FailpointName.PERMITTED])
async def test_a_stop_before_the_click_leaves_the_order_to_a_person(bench: Bench, at: FailpointName) -> None:
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def stop_here(name: FailpointName) -> None:
        if name is at:
            reached.set()
            await go_on.wait()

    bench.gateway.offer("po-1", bench.intent())
    async with bench.worker(stop_here):
        await reached.wait()
        asyncio.get_running_loop().call_later(0.1, go_on.set)
    end = await bench.gateway.end_of("po-1")
    assert end.terminal_status == NEEDS_HUMAN
    assert "the worker was stopped before the order was placed" in end.detail
    assert (await bench.shop.control.counters())["submits_received"] == 0


async def test_a_stop_during_the_click_follows_it_to_its_end(bench: Bench) -> None:
    await bench.shop.control.arm("slow", "submit", seconds=1)
    bench.gateway.offer("po-1", bench.intent())
    clicking = asyncio.Event()

    async def seen(name: FailpointName) -> None:
        if name is FailpointName.CLICK_RECORDED:
            clicking.set()

    async with bench.worker(seen):
        await clicking.wait()
    assert bench.gateway.states("po-1")[-2:] == ["ordered", "paid"]


async def test_a_worker_with_no_site_to_order_on_says_so_and_looks_for_the_gateway(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "worker")
    bench.gateway.script["RenewLease"] = [Refusal(grpc.StatusCode.UNAVAILABLE)]
    async with bench.worker(sandbox_url=""):
        await eventually(lambda: "gateway reached" in caplog.text)
        number = await bench.in_journal(lambda journal: journal.reclaims.file("po-404"))
        assert (await bench.end_of_reclaim_request(number)).note.startswith("TASK_NOT_FOUND")
    assert "gateway reached again" not in caplog.text, "it was never reached before"
    assert "no site can order here" in caplog.text
    assert "the gateway cannot be reached, trying again" in caplog.text
    assert bench.gateway.requests("LeaseOrders") == []


async def test_a_refused_token_is_told_with_the_setting_to_look_at(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    no_token = Refusal(grpc.StatusCode.UNAUTHENTICATED, errors_pb2.ERROR_REASON_UNAUTHENTICATED)
    bench.gateway.script["LeaseOrders"] = [no_token]
    async with bench.worker():
        await eventually(lambda: "does not accept the token" in caplog.text)
    assert "check RAKUTEN_WORKER_TOKEN (or, where that is not set, RAKUTEN_API_TOKEN); trying again in" in caplog.text
    assert [line.count("does not accept the token") for line in caplog.messages if "not accept" in line] == [1]


@pytest.mark.parametrize("settings", [{"sandbox_url": ""}, {"min_free_disk_mib": 10**9}], ids=["no site", "no room"])
async def test_a_wish_that_has_to_wait_is_not_tried_without_a_pause(
    bench: Bench, settings: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "worker")
    active = Refusal(grpc.StatusCode.ABORTED, errors_pb2.ERROR_REASON_ANOTHER_TASK_ACTIVE)
    bench.gateway.script["ReclaimOrder"] = [active]
    async with bench.worker(**settings):
        await eventually(lambda: "worker started" in caplog.text)
        number = await bench.in_journal(lambda journal: journal.reclaims.file("po-404"))
        await bench.end_of_reclaim_request(number)
    first_try, second_try = bench.gateway.moments["ReclaimOrder"]
    assert second_try - first_try > 1.5
