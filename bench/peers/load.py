"""The load that all queues get: one client process. `python -m bench.peers.load KIND PEER AMOUNT URL` prints JSON.

    submit SECONDS   32 callers submit as fast as they are answered     {"per_second": ..., "done": ..., "cpu_ms": ...}
    wakeup COUNT     its worker waits on an idle queue                  {"ms": [...]}: submit sent to order in hand
    cycle SECONDS    submit, take, finish, one after the other          {"per_second": ..., "done": ..., "cpu_ms": ...}

URL: of the peer's database, or the gateway's address. `cpu_ms`: processor time of this client for one order. The queue
must be empty for a wake-up and for a cycle, and is left so. Another order than the one submitted ends the run with an
error.
"""

import asyncio
import importlib
import json
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

from bench.load import CALLERS, WARM_UP_SECONDS, in_milliseconds
from bench.peers.port import Peer

IDLE_SECONDS: Final = 0.15
"""Before each wake-up: by then a worker has written that the last order is done, and waits."""

MODULES: Final = {
    "order-gateway": "bench.peers.gateway",
    "pgqueuer": "bench.peers.pgqueuer",
    "procrastinate": "bench.peers.procrastinate",
    "nats": "bench.peers.nats",
    "redis": "bench.peers.redis",
    "beanstalkd": "bench.peers.beanstalkd",
}


def opened(name: str, url: str) -> AbstractAsyncContextManager[Peer]:
    """A peer by its name; only its own module is imported."""
    found: AbstractAsyncContextManager[Peer] = importlib.import_module(MODULES[name]).opened(url)
    return found


async def submit(peer: Peer, seconds: float) -> dict[str, object]:
    """Submissions of 32 callers for so many seconds, after a warm-up."""
    done = counted = 0
    counted_from = time.perf_counter() + WARM_UP_SECONDS
    end = counted_from + seconds

    async def caller() -> None:
        nonlocal done, counted
        while time.perf_counter() < end:
            await peer.submit()
            done += 1
            counted += time.perf_counter() >= counted_from

    spent = time.process_time()
    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    per_second = counted / (time.perf_counter() - counted_from)
    return {"per_second": per_second, "done": done, "cpu_ms": (time.process_time() - spent) / done * 1000}


async def wakeup(peer: Peer, count: float) -> dict[str, object]:
    """From the moment a submission is sent on an idle queue until the waiting worker has the order."""
    times = []
    async with peer.worker() as taken:
        for number in range(int(count) + 1):
            await asyncio.sleep(IDLE_SECONDS)
            started = time.perf_counter()
            submission = asyncio.ensure_future(peer.submit())
            known_by, at = await taken.get()
            if known_by != await submission:
                raise AssertionError("another order was handed over")
            if number:  # the first one waits until the worker has started
                times.append(at - started)
    return {"ms": in_milliseconds(times)}


async def cycle(peer: Peer, seconds: float) -> dict[str, object]:
    """Whole orders, one after the other, nothing at the same time."""
    done = 0
    started, spent = time.perf_counter(), time.process_time()
    while time.perf_counter() - started < seconds:
        submitted = await peer.submit()
        known_by, taken = await peer.take()
        if known_by != submitted:
            raise AssertionError("another order was taken")
        await peer.finish(taken)
        done += 1
    per_second = done / (time.perf_counter() - started)
    return {"per_second": per_second, "done": done, "cpu_ms": (time.process_time() - spent) / done * 1000}


KINDS: Final[dict[str, Callable[[Peer, float], Awaitable[dict[str, object]]]]] = {
    "submit": submit,
    "wakeup": wakeup,
    "cycle": cycle,
}


async def run(kind: str, name: str, amount: float, url: str) -> None:
    """Runs one kind of load on a peer and prints what it measured."""
    async with opened(name, url) as peer:
        print(json.dumps(await KINDS[kind](peer, amount)))


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]))
