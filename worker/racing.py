"""Waiting for one thing until another comes first."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def race(
    work: Coroutine[Any, Any, T], *others: Coroutine[Any, Any, Any], seconds: float | None = None
) -> asyncio.Future[T] | None:
    """Run `work` until it ends, one of the others does, or `seconds` are over; return it if it has ended, else None.

    Whatever has not ended is cancelled, and has come to its end when this returns.
    """
    working = asyncio.ensure_future(work)
    waiting = [asyncio.ensure_future(other) for other in others]
    try:
        await asyncio.wait({working, *waiting}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return working if working.done() else None
    finally:
        for task in (working, *waiting):
            task.cancel()
        await asyncio.gather(working, *waiting, return_exceptions=True)
