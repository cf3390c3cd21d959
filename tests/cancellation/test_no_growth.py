"""Ten thousand waits broken off under virtual time: not one object too many is left."""

import asyncio
import gc
from weakref import ReferenceType

import pytest

from tests.cancellation.calls import CASES, Case, Effect
from tests.cancellation.rig import Rig, gateway

BATCH = 100
WAITS = [case for case in CASES if case.effect in {Effect.LEASES, Effect.FOLLOWS} and case.name != "at once"]


@pytest.mark.parametrize("case", WAITS, ids=str)
def test_waits_that_are_broken_off_leave_no_growth(case: Case) -> None:
    with gateway() as rig:
        rig.run(case.prepare(rig))
        rig.run(_wait_and_go(rig, case, 500))
        before, held = _objects(rig), rig.held()
        rig.run(_wait_and_go(rig, case, 10_000 // len(WAITS)))
        assert _objects(rig) - before < 100
        assert rig.held() == held


async def _wait_and_go(rig: Rig, case: Case, count: int) -> None:
    for _ in range(count // BATCH):
        waiting = [asyncio.ensure_future(rig.call(*case.request(rig))) for _ in range(BATCH)]
        await asyncio.sleep(0.05)
        assert rig.machine.gateway.admission.waiters == BATCH
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await asyncio.sleep(0.05)


def _objects(rig: Rig) -> int:
    rig.run(asyncio.sleep(30))  # timers that were cancelled leave the loop when they would have been due
    rig.settle()
    # A connection of sqlite3 keeps dead references to its cursors, and clears them once there are two hundred.
    return sum(not (isinstance(one, ReferenceType) and one() is None) for one in gc.get_objects())
