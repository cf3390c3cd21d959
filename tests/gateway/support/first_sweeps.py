"""A gateway's rare sweeps run once when it starts, beside what it serves already; a test waits until they have.

Otherwise the first run of a sweep may see a time to which the test has moved the clock since.
"""

import asyncio
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from gateway import composition
from gateway.sweeps.sweep import Sweep

BY_DEFAULT = 3600.0
"""Seconds between the sweeps of a test's gateway that asks for nothing else: more than a test lasts."""


class _Noted:
    """A sweep that tells when its first run is over, however it ended."""

    def __init__(self, sweep: Sweep, over: asyncio.Event) -> None:
        self._sweep = sweep
        self._over = over
        self.name = sweep.name
        self.interval = sweep.interval

    async def run_once(self) -> Mapping[str, int]:
        try:
            return await self._sweep.run_once()
        finally:
            self._over.set()


@contextmanager
def noted_first_sweeps() -> Iterator[list[asyncio.Event]]:
    """Yield what a gateway that starts in between fills: an event for each of its sweeps of `BY_DEFAULT`."""
    first: list[asyncio.Event] = []
    run_sweep = composition.run_sweep

    async def noted(sweep: Sweep, over: asyncio.Event) -> None:
        try:
            await run_sweep(_Noted(sweep, over))
        finally:
            over.set()

    def note(sweep: Sweep) -> Coroutine[Any, Any, None]:
        if sweep.interval != BY_DEFAULT:
            return run_sweep(sweep)
        first.append(asyncio.Event())
        return noted(sweep, first[-1])

    with patch.object(composition, "run_sweep", note):
        yield first
