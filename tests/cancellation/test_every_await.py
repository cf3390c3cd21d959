"""Every call of the contract broken off at every await, and between any two callbacks of the loop while it runs:
nothing is half done, nothing is held, the next write works, and what waits to be taken goes to the next who waits.
"""

import asyncio
from typing import Any

import pytest

from tests.cancellation.calls import CASES, METHODS, Case, Effect, ask, submit, waiting, waiting_for_query
from tests.cancellation.rig import Rig, gateway

MOST_CALLBACKS = 400


def test_every_method_of_the_contract_is_here() -> None:
    assert {case.method for case in CASES} == METHODS.keys()


WAITS_FOR_NOTHING = {"OperationsService/GetInfo"}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_call_broken_off_anywhere_is_done_or_not_done(case: Case) -> None:
    break_off_everywhere(case)


@pytest.mark.parametrize("case", [case for case in CASES if METHODS[case.method].server_streaming], ids=str)
def test_a_wait_broken_off_again_while_it_ends_leaves_nothing_either(case: Case) -> None:
    break_off_everywhere(case, again=True)


def break_off_everywhere(case: Case, *, again: bool = False) -> None:
    results = []
    for callbacks in range(MOST_CALLBACKS):
        with gateway() as rig:
            results.append(_break_off(rig, case, callbacks, again))
        if results[-1].ended:
            break
    *broken, whole = results
    assert whole.ended, "the call never ended"
    assert len(broken) > 3 or case.method in WAITS_FOR_NOTHING, "it was broken off nowhere in between"
    if case.effect is Effect.CHANGES:
        assert whole.after != whole.before, "the call changed nothing"
        assert all(result.after in (whole.before, whole.after) for result in broken), "something is half done"
        assert {result.after == whole.after for result in broken} == {True, False}
    elif case.effect is Effect.LEASES:
        assert {result.taken for result in broken} == {True, False}
    else:
        assert all(result.after == whole.after for result in broken)


class Outcome:
    """`taken`: a lease has reached the transport. `before`, `after`: all that is stored."""

    ended: bool
    taken: bool
    before: dict[str, Any]
    after: dict[str, Any]


def _break_off(rig: Rig, case: Case, callbacks: int, again: bool) -> Outcome:
    outcome = Outcome()
    rig.run(case.prepare(rig))
    rig.settle()
    outcome.before, held = rig.rows(), rig.held()
    outcome.ended, taken = rig.run(_with_company(rig, case, callbacks, again))
    rig.settle()
    outcome.after = rig.rows()
    assert rig.held() == held, f"held after {callbacks} callbacks"
    outcome.taken = any(message.HasField("lease") for message in taken) if case.effect is Effect.LEASES else False
    rig.run(submit(rig, "t-next"))
    assert "t-next" in str(rig.rows()["tasks"])
    if case.effect is Effect.LEASES:
        first = _next_waiter(rig, case)
        assert (first in {"t-1", "q-1"}) is not outcome.taken, f"leased to nobody after {callbacks} callbacks"
    return outcome


async def _with_company(rig: Rig, case: Case, callbacks: int, again: bool) -> tuple[bool, list[Any]]:
    """Breaks the call off while others do what it waits for."""

    async def later() -> None:
        if case.meanwhile is not None:
            await asyncio.sleep(0.01)
            await case.meanwhile(rig)

    company = asyncio.ensure_future(later())
    result = await rig.break_off(*case.request(rig), callbacks, again=again)
    await company
    return result


def _next_waiter(rig: Rig, case: Case) -> str:
    """What another worker gets, "" if nothing."""
    fields = waiting(rig) if "Orders" in case.method else waiting_for_query(rig)
    messages = rig.run(ask(rig, case.method, **fields | {"worker_id": "w2", "session_id": "session-of-worker-2"}))
    lease = messages[-1].lease if messages[-1].HasField("lease") else None
    return "" if lease is None else lease.task_id if "Orders" in case.method else lease.query_id
