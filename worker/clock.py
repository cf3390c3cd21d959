"""Time and chance, passed in: nothing else in the worker reads a system clock or draws at random.

The rule: docs/specification.md#time.

`SystemClock` and `SystemEntropy` serve production; a simulation passes its own.
"""

import asyncio
import random
import secrets
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """The three things that the worker asks of time."""

    def now(self) -> datetime:
        """Return the wall clock, aware, UTC: for people and to compare with the site's dates; never for deadlines."""
        ...

    def elapsed(self) -> float:
        """Seconds on a clock that no wall-clock step moves and that goes on while the machine sleeps."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after that many seconds; at once (but yielding) for zero or less."""
        ...


class SystemClock:
    """The machine's clocks. CLOCK_MONOTONIC stops in suspend on Linux: the boot-time clock is taken where it exists."""

    def __init__(self) -> None:
        self._elapsed_clock: int | None = getattr(time, "CLOCK_BOOTTIME", None)

    def now(self) -> datetime:
        """See Clock."""
        return datetime.now(UTC)

    def elapsed(self) -> float:
        """See Clock."""
        return time.monotonic() if self._elapsed_clock is None else time.clock_gettime(self._elapsed_clock)

    async def sleep(self, seconds: float) -> None:
        """See Clock."""
        await asyncio.sleep(max(0.0, seconds))


class Entropy(Protocol):
    """Where names and jitter come from."""

    def token(self) -> str:
        """32 characters of `A-Z a-z 0-9 _ -`, never the same twice: a session_id or journal_id of the contract."""
        ...

    def fraction(self) -> float:
        """Return a number from 0 up to, not including, 1: the jitter of a backoff."""
        ...


class SystemEntropy:
    """The machine's randomness."""

    def token(self) -> str:
        """See Entropy."""
        return secrets.token_urlsafe(24)

    def fraction(self) -> float:
        """See Entropy."""
        return random.random()  # noqa: S311 -- spreads retries; nothing is secret about it


def utc_text(moment: datetime) -> str:
    """Return a moment as fixed-width UTC text (`2026-07-27T09:15:00.000000Z`), which sorts as time does."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def from_utc_text(text: str) -> datetime:
    """Return the moment that `utc_text` wrote. Raises ValueError for anything else."""
    moment = datetime.fromisoformat(text)
    if utc_text(moment) != text:
        raise ValueError(f"not a moment as this program writes it: {text!r}")
    return moment
