"""Whose order is it? What a look at the site finds is told of no task while it may be another's."""

import asyncio

import pytest
from ordergateway.v1 import orders_pb2

from tests.e2e.parts import AUTHORIZED, ENDED, STALE, Parts, ended
from worker.failpoints import FailpointName

NEEDS_HUMAN = orders_pb2.TASK_STATUS_NEEDS_HUMAN
POSSIBLE = orders_pb2.PLACEMENT_POSSIBLE
CERTAIN = orders_pb2.PLACEMENT_CERTAIN


async def test_an_order_that_may_be_another_tasks_is_not_told_as_this_ones(parts: Parts) -> None:
    await parts.shop.control.arm("hang", "submit", after=True)  # taken, and never answered
    await parts.submit("po-a")
    worker = await parts.worker()
    assert await parts.shop.control.wait(orders=1)
    worker.kill()
    await worker.wait()
    await parts.expire("po-a")
    number = (await parts.shop.control.counters())["order_numbers"][0]

    await parts.shop.control.disarm()
    await parts.shop.control.arm("reset", "submit")  # never taken
    await parts.submit("po-b")
    await parts.worker()
    lost = await parts.until(*ENDED, task_id="po-b")

    assert (lost.status, lost.placement) == (NEEDS_HUMAN, POSSIBLE)
    assert [report.site_order_id for report in lost.reports if report.site_order_id] == []
    assert f"order {number} may belong to another task" in lost.reports[-1].detail
    assert (await parts.until(STALE, task_id="po-a")).placement == POSSIBLE

    # A recovered run says the same of its own order, as long as the other task may have it.
    await parts.reclaim("po-a")
    found = await parts.until(*ENDED, task_id="po-a")
    assert (found.status, found.placement) == (NEEDS_HUMAN, POSSIBLE)
    assert f"order {number} may belong to another task" in found.reports[-1].detail
    assert await parts.counted() == (1, 2, 0)


@pytest.mark.extended
async def test_a_number_that_only_a_refused_report_told_is_left_out_by_another_journal(parts: Parts) -> None:
    await parts.submit("po-a")
    worker = await parts.crashing_worker(FailpointName.ORDER_JOURNALLED)
    await worker.wait()
    await parts.expire("po-a")
    again = await parts.worker()  # tells of po-a, too late
    async with asyncio.timeout(30):
        watch = parts.orders.WatchOrder(orders_pb2.WatchOrderRequest(task_id="po-a"), metadata=AUTHORIZED)
        async for message in watch:
            if message.task.placement == CERTAIN:
                break
    await ended(again)
    number = (await parts.shop.control.counters())["order_numbers"][0]

    await parts.shop.control.arm("reset", "submit", after=True)  # taken, its answer lost
    await parts.worker(RAKUTEN_TRADING_DB_PATH="other/trading.db", RAKUTEN_WORKER_ID="worker-2")
    await parts.submit("po-b")
    task = await parts.until(*ENDED, task_id="po-b")

    assert (task.status, task.placement) == (NEEDS_HUMAN, CERTAIN)
    assert task.reports[-1].site_order_id not in ("", number)
    assert await parts.counted() == (2, 4, 0)
