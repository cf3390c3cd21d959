"""Reads see what is committed, as of one moment, beside the writer; and they cannot write."""

import asyncio
import threading
from typing import cast

import pytest

from gateway.domain.instant import Instant
from gateway.store import workers
from gateway.store.port import ReadTransaction, Transaction
from tests.gateway.store.conformance.engines import Engine


def known(tx: ReadTransaction, _now: Instant) -> set[str]:
    return {worker.worker_id for worker in workers.everyone(tx)}


async def test_a_read_sees_what_is_committed_and_nothing_of_what_is_not(engine: Engine) -> None:
    with engine.held_commits() as begun:
        writing = asyncio.create_task(engine.store.write(workers.seen, "w1"))
        await asyncio.wait_for(begun.wait(), 60)
        assert await engine.store.read(known) == set()
    await writing
    assert await engine.store.read(known) == {"w1"}


async def test_a_read_is_a_snapshot_whatever_is_committed_meanwhile(engine: Engine) -> None:
    loop, first_look, written = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def look_twice(tx: ReadTransaction, now: Instant) -> tuple[set[str], set[str]]:
        before = known(tx, now)
        loop.call_soon_threadsafe(first_look.set)
        assert written.wait(20)
        return before, known(tx, now)

    await engine.store.write(workers.seen, "w1")
    reading = asyncio.create_task(engine.store.read(look_twice))
    await asyncio.wait_for(first_look.wait(), 60)
    await engine.store.write(workers.seen, "w2")
    written.set()
    assert await reading == ({"w1"}, {"w1"})
    assert await engine.store.read(known) == {"w1", "w2"}


async def test_a_read_cannot_write(engine: Engine) -> None:
    """The port gives it no way to; the engine itself refuses who takes one all the same."""

    def write(tx: ReadTransaction, now: Instant) -> None:
        workers.seen(cast(Transaction, tx), now, "w1")

    with pytest.raises(Exception, match=r"readonly|read-only"):
        await engine.store.read(write)
    assert await engine.store.read(known) == set()
    await engine.store.write(workers.seen, "w2")
    assert await engine.store.read(known) == {"w2"}


async def test_readers_and_writers_do_not_wait_for_each_other(engine: Engine) -> None:
    async def watch() -> list[int]:
        return [len(await engine.store.read(known)) for _ in range(20)]

    *counts, _ = await asyncio.gather(
        watch(), watch(), asyncio.gather(*(engine.store.write(workers.seen, f"w{number}") for number in range(50)))
    )
    for seen in counts:
        assert seen == sorted(seen)
    assert len(await engine.store.read(known)) == 50
