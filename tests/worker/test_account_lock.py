"""The one lock of a site's account: given up while an order only waits, and had again before it goes on."""

import asyncio

import pytest

from common.target import Target
from worker.account_lock import AccountLocks, AccountTurn


async def test_a_turn_that_was_given_up_is_had_again_before_the_order_goes_on() -> None:
    lock = AccountLocks().of(Target("sandbox"))
    turn = AccountTurn(lock)
    await turn.take()
    using, done = asyncio.Event(), asyncio.Event()

    async def monitor() -> None:
        async with lock:
            using.set()
            await done.wait()

    watching = asyncio.create_task(monitor())
    gone_on = asyncio.Event()

    async def wait_for_the_site() -> None:
        async with turn.given_up():
            await using.wait()
        gone_on.set()

    waiting = asyncio.create_task(wait_for_the_site())
    await using.wait()
    for _ in range(5):
        await asyncio.sleep(0)
    assert not gone_on.is_set(), "somebody else is at the account"
    done.set()
    await asyncio.gather(watching, waiting)
    assert lock.locked(), "the order has its turn again"
    turn.give_back()
    turn.give_back()
    assert not lock.locked()


async def test_it_is_had_again_too_when_the_wait_breaks_off() -> None:
    lock = AccountLocks().of(Target("sandbox"))
    turn = AccountTurn(lock)
    await turn.take()

    async def breaks_off() -> None:
        async with turn.given_up():
            assert not lock.locked()
            raise KeyError

    with pytest.raises(KeyError):
        await breaks_off()
    assert lock.locked()
