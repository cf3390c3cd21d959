"""A clock that moves only when a test, or a sleeper, moves it; and chance without chance."""

import asyncio
from datetime import UTC, datetime, timedelta

from worker.clock import SystemClock

START = datetime(2026, 7, 27, 9, 0, tzinfo=UTC)


class ManualClock:
    """Wall clock and elapsed clock apart, both moved by `advance`; a sleep moves neither and waits for it."""

    def __init__(self) -> None:
        self.wall = START
        self.seconds = 1000.0
        self._moved = asyncio.Condition()

    def now(self) -> datetime:
        return self.wall

    def elapsed(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        until = self.seconds + seconds
        async with self._moved:
            await self._moved.wait_for(lambda: self.seconds >= until)
        await asyncio.sleep(0)

    async def advance(self, seconds: float) -> None:
        self.wall += timedelta(seconds=seconds)
        self.seconds += seconds
        async with self._moved:
            self._moved.notify_all()
        for _ in range(20):  # lets whoever woke run to its next wait
            await asyncio.sleep(0)


class LeapingClock(SystemClock):
    """The machine's clock, which a test can make leap forward; a sleep goes on as it was."""

    def __init__(self) -> None:
        super().__init__()
        self._ahead = 0.0

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self._ahead)

    def elapsed(self) -> float:
        return super().elapsed() + self._ahead

    def leap(self, seconds: float) -> None:
        self._ahead += seconds


class CountedEntropy:
    """Names `id-000…1`, `id-000…2` …; jitter in the middle."""

    def __init__(self) -> None:
        self.count = 0

    def token(self) -> str:
        self.count += 1
        return f"id-{self.count:029d}"

    def fraction(self) -> float:
        return 0.5
