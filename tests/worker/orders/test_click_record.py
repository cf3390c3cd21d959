"""Worlds in which the click record, and nothing else, stands between a task and a second click."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from ordergateway.v1 import order_leases_pb2 as pb
from ordergateway.v1 import orders_pb2

from tests.worker.conftest import Bench
from tests.worker.virtual import CountedEntropy, LeapingClock, ManualClock
from worker.failpoints import FailpointName
from worker.gateway.wire import leased_task
from worker.journal.claims import Claims
from worker.journal.journal import Journal
from worker.orders.permit import Permit, PermitExpiredError, ensure_permitted
from worker.orders.run import OrderRun

NEEDS_HUMAN = orders_pb2.TASK_STATUS_NEEDS_HUMAN
ORDERED = orders_pb2.ORDER_STATE_ORDERED


async def clicked_before(bench: Bench) -> None:
    """The journal of a worker that was gone right after the click record: the shop never got the order."""
    journal = await Journal.open(bench.folder / "trading.db", clock=ManualClock(), new_id=CountedEntropy().token)
    first = bench.gateway.lease("po-1", bench.intent())
    first.lease_token = "the first".ljust(43, "x")
    await journal.orders.take_lease(leased_task(first))
    await journal.claims.record_click("po-1", first.lease_token)
    await journal.close()


async def submits(bench: Bench) -> int:
    return int((await bench.shop.control.counters())["submits_received"])


@pytest.mark.parametrize("lease_count", [1, 2], ids=["the gateway has forgotten the first lease", "it has not"])
async def test_a_task_that_was_clicked_for_is_not_begun_again(bench: Bench, lease_count: int) -> None:
    """Nothing of it shows on the site, and the gateway would give a permit."""
    await clicked_before(bench)
    end = await bench.execute(lease_count=lease_count)
    assert end.terminal_status == NEEDS_HUMAN
    assert "the click was made or an order was reported, but no order with these items is in the list" in end.detail
    assert bench.gateway.requests("RequestSubmitPermit") == []
    assert bench.shop.shop.requests["cart_add"] == 0
    assert await submits(bench) == 0


async def test_a_journal_that_forgets_to_say_so_still_refuses_the_second_record(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every look into the journal says "never clicked", the site shows no order, the gateway gives its permit."""

    async def never(_claims: Claims, _task_id: str) -> bool:
        return False

    await clicked_before(bench)
    monkeypatch.setattr(Claims, "has_click", never)
    end = await bench.execute(lease_count=2)
    (permit,) = bench.gateway.requests("RequestSubmitPermit")
    assert isinstance(permit, pb.RequestSubmitPermitRequest)
    assert permit.attests_no_click_record
    assert end.terminal_status == NEEDS_HUMAN
    assert "the click of this task is on record already; no click was made" in end.detail
    assert await submits(bench) == 0


async def test_a_record_that_comes_between_the_permit_and_the_click_keeps_the_click_out(bench: Bench) -> None:
    async def record(name: FailpointName) -> None:
        if name is FailpointName.PERMITTED:
            with closing(sqlite3.connect(bench.folder / "trading.db")) as journal, journal:
                journal.execute("INSERT INTO clicks SELECT task_id, lease_token, updated_at FROM orders")

    bench.gateway.offer("po-1", bench.intent())
    async with bench.worker(record):
        end = await bench.gateway.end_of("po-1")
    assert end.terminal_status == NEEDS_HUMAN
    assert "the click of this task is on record already; no click was made" in end.detail
    assert await submits(bench) == 0


async def test_a_record_whose_answer_is_lost_is_a_record(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    record_click = Claims.record_click

    async def lost(claims: Claims, *values: str) -> None:
        await record_click(claims, *values)
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(Claims, "record_click", lost)
    bench.gateway.offer("po-1", bench.intent())
    async with bench.worker():
        await bench.gateway.called("LeaseOrders", times=2)
    monkeypatch.undo()
    end = await bench.execute(lease_count=2)
    assert end.terminal_status == NEEDS_HUMAN
    assert "the click was made" in end.detail
    assert await submits(bench) == 0


@pytest.mark.parametrize(("left", "may_click"), [(1e-6, True), (0.0, False), (-1e-6, False)])
def test_a_permit_is_good_until_its_last_moment_and_not_in_it(left: float, may_click: bool) -> None:
    clock = ManualClock()
    run = cast("OrderRun", SimpleNamespace(parts=SimpleNamespace(clock=clock)))
    permit = Permit(deadline=clock.elapsed() + left, waited=False)
    if may_click:
        ensure_permitted(run, permit)
    else:
        with pytest.raises(PermitExpiredError, match="the permit ran out before the click; no click was made"):
            ensure_permitted(run, permit)


async def test_a_lost_answer_is_looked_for_until_the_site_shows_the_order(bench: Bench) -> None:
    shop = bench.shop.shop
    shop.settings = replace(shop.settings, reflection_delay_seconds=0.5)
    await bench.shop.control.arm("reset", "submit", after=True)
    bench.settings |= {"lost_answer_look_seconds": 30, "lost_answer_interval_seconds": 0.1}
    end = await bench.execute()
    assert (end.terminal_status, end.state) == (NEEDS_HUMAN, ORDERED)
    assert [end.site_order_id] == (await bench.shop.control.counters())["order_numbers"]
    assert shop.requests["order_list"] > 1


class ClockAhead(LeapingClock):
    """The wall clock of a worker that is 23 hours ahead of the shop's."""

    def now(self) -> datetime:
        return super().now() + timedelta(hours=23)


async def test_a_lost_answer_is_found_by_a_worker_whose_clock_is_ahead(bench: Bench) -> None:
    bench.clock = ClockAhead()
    await bench.shop.control.arm("reset", "submit", after=True)
    end = await bench.execute()
    assert (end.terminal_status, end.state) == (NEEDS_HUMAN, ORDERED)
    assert [end.site_order_id] == (await bench.shop.control.counters())["order_numbers"]


async def test_a_clear_refusal_is_looked_at_once(bench: Bench) -> None:
    async def sell_out(method: str, _request: Any) -> None:
        if method == "RequestSubmitPermit":
            await bench.shop.control.change_item("sencha-100g", stock=0)

    bench.gateway.on_call = sell_out
    bench.settings |= {"lost_answer_look_seconds": 30, "lost_answer_interval_seconds": 0.1}
    end = await bench.execute()
    assert end.terminal_status == NEEDS_HUMAN
    assert "the shop took no order" in end.detail
    assert bench.shop.shop.requests["order_list"] == 1
    assert await bench.ordered() == 0
