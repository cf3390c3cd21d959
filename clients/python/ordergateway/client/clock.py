"""The only reader of the clock here, and the source of chance."""

import random
import time
from typing import Protocol


class Time(Protocol):
    """What a client knows of time. Tests pass one that they move by hand."""

    def now(self) -> float:
        """Return seconds of a clock that nobody sets."""

    def sleep(self, seconds: float) -> None:
        """Wait. Only the blocking client does."""

    def random(self) -> float:
        """Return a number from 0 to 1, by which pauses are spread."""


class SystemTime:
    """The machine's."""

    def now(self) -> float:
        """Return seconds of the monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Let the thread wait."""
        time.sleep(seconds)

    def random(self) -> float:
        """Return a number from 0 to 1."""
        return random.random()  # noqa: S311 - spreads pauses, guards nothing
