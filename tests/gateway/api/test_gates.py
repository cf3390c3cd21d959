"""Places that calls wait for, in turn."""

import asyncio

import pytest

from gateway.api.grpc.incoming import Gate


async def waiting(gate: Gate) -> "asyncio.Task[None]":
    task = asyncio.create_task(gate.enter())
    await asyncio.sleep(0)
    return task


async def test_who_has_waited_for_longest_comes_next_and_nobody_passes() -> None:
    gate = Gate(1)
    await gate.enter()
    first, second = await waiting(gate), await waiting(gate)
    gate.leave()
    assert gate.free == 0, "it is handed on"
    await first
    assert not second.done()
    gate.leave()
    await second
    gate.leave()
    assert gate.free == 1


async def test_who_goes_away_is_passed_over() -> None:
    gate = Gate(1)
    await gate.enter()
    gone, next_one = await waiting(gate), await waiting(gate)
    gone.cancel()
    gate.leave()
    with pytest.raises(asyncio.CancelledError):
        await gone
    await next_one
    gate.leave()
    assert gate.free == 1


async def test_who_goes_away_with_a_place_in_hand_hands_it_on() -> None:
    gate = Gate(1)
    await gate.enter()
    gone, next_one = await waiting(gate), await waiting(gate)
    gate.leave()
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    await next_one
    gate.leave()
    assert gate.free == 1


async def test_nothing_is_kept_of_those_who_have_gone() -> None:
    gate = Gate(1)
    await gate.enter()
    gone = await waiting(gate)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    assert not gate._waiting
    gate.leave()
    assert gate.free == 1
