"""Killing and freezing the worker at each step of an order, with the real gateway: never a second order."""

import signal

import pytest
from ordergateway.v1 import orders_pb2

from tests.e2e.parts import ENDED, STALE, Parts, passed
from worker.failpoints import FailpointName

SUCCEEDED = orders_pb2.TASK_STATUS_SUCCEEDED
NEEDS_HUMAN = orders_pb2.TASK_STATUS_NEEDS_HUMAN
NOTHING, ORDERED, PAID = (0, 0, 0), (1, 2, 0), (1, 2, 1)

# What the shop has counted (orders, units, payments) and how the task ends, after a crash there and a reclaim.
# A recovered run may place an order that was never clicked, but it never pays.
AFTER = {
    FailpointName.LEASED: (ORDERED, NEEDS_HUMAN),
    FailpointName.ACKNOWLEDGED: (ORDERED, NEEDS_HUMAN),
    FailpointName.CART_ADDED: (ORDERED, NEEDS_HUMAN),
    FailpointName.CART_CHECKED: (ORDERED, NEEDS_HUMAN),
    FailpointName.CONFIRMED: (ORDERED, NEEDS_HUMAN),
    FailpointName.PERMITTED: (ORDERED, NEEDS_HUMAN),
    FailpointName.CLICK_RECORDED: (NOTHING, NEEDS_HUMAN),
    FailpointName.CLICKED: (ORDERED, NEEDS_HUMAN),
    FailpointName.ORDER_JOURNALLED: (ORDERED, NEEDS_HUMAN),
    FailpointName.ORDERED_REPORTED: (ORDERED, NEEDS_HUMAN),
    FailpointName.PAYMENT_RECORDED: (ORDERED, NEEDS_HUMAN),
    FailpointName.PAID: (PAID, SUCCEEDED),
    FailpointName.END_JOURNALLED: (PAID, SUCCEEDED),
}


# One crash with a permit and without a click, and one with both; the others are extended.
ALWAYS = {FailpointName.PERMITTED, FailpointName.CLICKED}


@pytest.mark.parametrize("at", [at if at in ALWAYS else pytest.param(at, marks=pytest.mark.extended) for at in AFTER])
async def test_a_worker_killed_there_and_coming_back_never_buys_twice(parts: Parts, at: FailpointName) -> None:
    await parts.submit()
    worker = await parts.crashing_worker(at)
    assert await worker.wait() == -signal.SIGKILL
    await parts.expire()

    await parts.reclaim()
    await parts.worker()
    task = await parts.until(*ENDED)

    counted, status = AFTER[at]
    assert await parts.counted() == counted
    assert task.status == status
    if counted != NOTHING:
        assert task.reports[-1].site_order_id == (await parts.shop.control.counters())["order_numbers"][0]


@pytest.mark.extended
async def test_a_worker_killed_after_the_end_has_ended_it(parts: Parts) -> None:
    await parts.submit()
    worker = await parts.crashing_worker(FailpointName.TERMINAL_REPORTED)
    assert await worker.wait() == -signal.SIGKILL
    assert (await parts.until(*ENDED)).status == SUCCEEDED
    assert await parts.counted() == PAID


@pytest.mark.extended
async def test_coming_back_after_the_permit_with_another_journal_needs_a_human(parts: Parts) -> None:
    await parts.submit()
    worker = await parts.crashing_worker(FailpointName.PERMITTED)
    assert await worker.wait() == -signal.SIGKILL
    await parts.expire()

    other = await parts.worker(RAKUTEN_TRADING_DB_PATH="other/trading.db")
    await parts.submit("po-2")  # shows that the other worker runs, and that its journal exists
    assert (await parts.until(*ENDED, task_id="po-2")).status == SUCCEEDED
    await parts.reclaim(journal="other/trading.db")
    task = await parts.until(*ENDED)

    assert task.status == NEEDS_HUMAN
    assert "PERMIT_OTHER_JOURNAL" in task.reports[-1].detail
    assert await parts.counted() == PAID  # po-2's alone
    assert other.returncode is None


SHORT_LEASE = {"RAKUTEN_LEASE_TTL_SECONDS": "6", "RAKUTEN_LEASE_ACK_SECONDS": "6"}


@pytest.mark.parametrize("parts", [SHORT_LEASE], indirect=True, ids=["short-lease"])
@pytest.mark.parametrize(
    "at", [FailpointName.PERMITTED, pytest.param(FailpointName.CLICK_RECORDED, marks=pytest.mark.extended)]
)
async def test_a_worker_frozen_before_the_click_makes_none_when_it_wakes(parts: Parts, at: FailpointName) -> None:
    await parts.submit()
    worker = await parts.crashing_worker(at, signal.SIGSTOP)
    await passed(worker, at)
    await parts.until(STALE)
    assert await parts.counted() == NOTHING

    worker.send_signal(signal.SIGCONT)
    await parts.submit("po-2")  # the loop goes on only after it has left po-1
    assert (await parts.until(*ENDED, task_id="po-2")).status == SUCCEEDED
    assert await parts.counted() == PAID  # po-2's alone
    assert (await parts.until(STALE)).task_id == "po-1"
