"""The network between worker and gateway fails around the permit and after the click, in each of its ways."""

import asyncio
import signal
from pathlib import Path

import pytest

from tests.faults.chaos import LEASE_SECONDS, chaos_test
from tests.faults.program import until
from tests.faults.promises import Database, rows
from tests.faults.proxy import Mode
from worker.failpoints import FailpointName

BEFORE_THE_PERMIT, AFTER_THE_CLICK = FailpointName.CONFIRMED, FailpointName.CLICKED


def happened(database: Database, task_id: str, kind: str) -> int:
    found = rows(database, "SELECT subject, kind FROM events")
    return len([row for row in found if (row["subject"], row["kind"]) == (task_id, kind)])


@pytest.mark.extended
@pytest.mark.timeout(180)
@pytest.mark.parametrize(("at", "orders"), [(BEFORE_THE_PERMIT, 0), (AFTER_THE_CLICK, 1)], ids=["permit", "report"])
async def test_no_way_of_failing_makes_a_click_without_a_permit_nor_a_second_one(
    tmp_path: Path, at: FailpointName, orders: int
) -> None:
    async with chaos_test(tmp_path) as chaos:
        for number, mode in enumerate([mode for mode in Mode if mode is not Mode.PASS]):
            task_id = f"t-{number}"
            await chaos.freeze_worker_at(at, task_id)
            chaos.proxy.set(mode)
            chaos.worker.send(signal.SIGCONT)
            await asyncio.sleep(LEASE_SECONDS * 1.2)
            assert len(chaos.ordered(task_id)) == orders, mode
            chaos.proxy.set(Mode.PASS)
            await chaos.until_ended(task_id)
        await chaos.judge_books()
        assert not chaos.violations


@pytest.mark.timeout(180)
@pytest.mark.extended
async def test_a_lost_answer_within_the_lease_needs_no_person(tmp_path: Path) -> None:
    long = {"RAKUTEN_LEASE_TTL_SECONDS": "60", "RAKUTEN_PERMIT_TTL_SECONDS": "30"}
    async with chaos_test(tmp_path, of_gateway=long) as chaos:
        for number, (at, event) in enumerate(((BEFORE_THE_PERMIT, "permit"), (AFTER_THE_CLICK, "report"))):
            await chaos.freeze_worker_at(at, f"t-{number}")
            before = happened(chaos.database, f"t-{number}", event)
            chaos.proxy.set(Mode.DROP_ANSWERS)
            chaos.worker.send(signal.SIGCONT)
            await until(lambda: happened(chaos.database, f"t-{number}", event) > before)  # noqa: B023 -- awaited here
            chaos.proxy.set(Mode.CUT)
            chaos.proxy.set(Mode.PASS)
            await chaos.until_ended(f"t-{number}")
            assert len(chaos.ordered(f"t-{number}")) == 1
        kept = await chaos.judge_books()
        assert not chaos.violations
        assert kept.counted["decisions"] == kept.counted["reclaim requests"] == 0
