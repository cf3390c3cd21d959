"""docs/runbook.md followed as a new operator would, with the commands as they stand there."""

import re
import signal
from pathlib import Path

import pytest
from ordergateway.v1 import orders_pb2

from tests.e2e.operator import Operator
from tests.e2e.parts import ENDED, Parts
from worker.failpoints import FailpointName

RUNBOOK = (Path(__file__).parents[2] / "docs" / "runbook.md").read_text()
TASK = "po-1042"


def commands(part: str, after: str = "") -> list[str]:
    """The command lines of a part of the runbook, or of the one block that follows certain words in it."""
    text = RUNBOOK.partition(f"\n## {part}\n")[2].partition("\n## ")[0]
    assert text, part
    if after:
        assert after in text, after
        text = text.partition(after)[2]
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    lines = "".join(blocks[:1] if after else blocks).splitlines()
    assert lines, (part, after)
    return lines


async def stale(parts: Parts, at: FailpointName) -> Operator:
    """The task of the runbook, stale because its worker was killed there."""
    await parts.submit(TASK)
    worker = await parts.crashing_worker(at)
    assert await worker.wait() == -signal.SIGKILL
    operator = Operator(parts)
    assert "is now stale" in await follow(operator, *commands("task_stale", "that the worker is dead.*"))
    return operator


async def follow(operator: Operator, *lines: str) -> str:
    return "".join([(await operator.must(line)).out for line in lines])


@pytest.mark.extended
async def test_from_the_alert_to_the_task_that_the_worker_settles(parts: Parts) -> None:
    operator = await stale(parts, FailpointName.PAID)

    told = await follow(operator, "order-gateway alerts")
    assert "task_stale" in told
    assert TASK in told
    told = await follow(operator, *commands("One sentence says how dangerous it is"))
    assert "An order is certain" in told
    assert f"order-worker reclaim {TASK}" in told
    told = await follow(operator, *commands("task_stale", "**Check**"))
    assert "04-order-submit" in told

    await parts.worker()
    told = await follow(operator, *commands("task_stale", "with its journal.*"))
    assert f"{TASK}  succeeded" in told
    assert (await operator.must("order-gateway decisions")).out == "nothing to decide\n"
    assert (await operator.must("order-gateway alerts")).out == "no alert stands\n"
    assert await parts.counted() == (1, 2, 1)


@pytest.mark.extended
async def test_a_requeue_and_its_withdrawal_then_nothing_on_the_site(parts: Parts) -> None:
    operator = await stale(parts, FailpointName.CONFIRMED)
    assert "An order is impossible" in await follow(operator, "order-gateway decisions")
    told = await follow(operator, *commands("task_stale", "an order is impossible.*"))
    assert "is now queued" in told
    told = await follow(operator, *commands("task_stale", "before a worker took it?"))
    assert "is now stale" in told
    told = await follow(operator, *commands("task_stale", "and there is no order.*"))
    assert "is now failed" in told
    assert (await operator.must("order-gateway alerts")).out == "no alert stands\n"


@pytest.mark.extended
async def test_an_order_that_the_person_finds_on_the_site(parts: Parts) -> None:
    operator = await stale(parts, FailpointName.CLICKED)
    assert "An order is possible" in await follow(operator, "order-gateway decisions")
    told = await follow(operator, *commands("task_stale", "and the order is there.*"))
    assert "is now succeeded" in told
    task = await parts.until(*ENDED, task_id=TASK)
    assert task.reports[-1].site_order_id == "250-1042"
    assert task.latest_state == orders_pb2.ORDER_STATE_PAID
