"""A worker killed before the permit, after it, and after its report: what the person is told, and may do."""

import signal

import pytest

from tests.e2e.operator import Operator
from tests.e2e.parts import Parts
from worker.failpoints import FailpointName

SENTENCES = {
    FailpointName.CONFIRMED: ("PLACEMENT_IMPOSSIBLE", "An order is impossible: no submit permit was ever granted"),
    FailpointName.PERMITTED: ("PLACEMENT_POSSIBLE", "An order is possible: a submit permit was granted to worker-1"),
    FailpointName.ORDERED_REPORTED: ("PLACEMENT_CERTAIN", "An order is certain: it was reported as ordered"),
}


@pytest.mark.extended
@pytest.mark.parametrize("at", SENTENCES)
async def test_the_sentence_after_a_kill(parts: Parts, at: FailpointName) -> None:
    operator = Operator(parts)
    await parts.submit()
    worker = await parts.crashing_worker(at)
    assert await worker.wait() == -signal.SIGKILL
    await parts.expire()

    decision = await operator.decision()

    placement, sentence = SENTENCES[at]
    assert decision["task"]["placement"] == placement
    assert decision["summary"].startswith(sentence)
    assert decision["last_worker_id"] == "worker-1"
    assert decision["allowed"] == ["reclaim", "requeue", "resolve"]
    assert [alert["kind"] for alert in decision["alerts"]] == ["ALERT_KIND_TASK_STALE"]
    placed = at is FailpointName.ORDERED_REPORTED
    assert await parts.counted() == ((1, 2, 0) if placed else (0, 0, 0))
    if placed:
        number = (await parts.shop.control.counters())["order_numbers"][0]
        assert f"with the order number {number}" in decision["summary"]
        await operator.must(f'order-gateway resolve po-1 succeeded --reason "seen on the site" --order-number {number}')
    else:
        await operator.settled(decision)
        await operator.must('order-gateway resolve po-1 failed --reason "not on the site"')
    assert (await operator.must("order-gateway decisions")).out == "nothing to decide\n"
    assert (await operator.must("order-gateway alerts")).out == "no alert stands\n"
