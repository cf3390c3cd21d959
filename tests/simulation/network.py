"""The network between the processes: delay, loss of request or answer, duplication, reordering, cuts.

Each message travels by itself, so messages overtake each other. What is on its way arrives even if its sender has lost
power meanwhile.
"""

import asyncio
import random
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass
from typing import Any

from tests.simulation.loop import Process, VirtualLoop

_WORLD = Context()
"""What belongs to no process."""


@dataclass(frozen=True, slots=True)
class Weather:
    """How bad a link is; chances from 0 to 1, times in seconds. `reset`: a stream soon after it was opened."""

    slow: float = 0.0
    lost_request: float = 0.0
    lost_answer: float = 0.0
    duplicate: float = 0.0
    reset: float = 0.0
    longest: float = 5.0


CALM = Weather()


class Link:
    """What lies between two parties."""

    def __init__(self, loop: VirtualLoop, chance: random.Random, name: str, count: Callable[[str], None]) -> None:
        self.loop = loop
        self.name = name
        self.weather = CALM
        self.cut_until = 0.0
        self._chance = chance
        self._count = count

    @property
    def is_cut(self) -> bool:
        return self.loop.time() < self.cut_until

    def delay(self) -> float:
        """Seconds that the next message takes."""
        if self.weather.slow and self._chance.random() < self.weather.slow:
            return self._chance.uniform(0.1, self.weather.longest)
        return self._chance.uniform(0.001, 0.02)

    def later(self, delay: float, do: Callable[[], None]) -> None:
        """Does something on nobody's account."""
        self.loop.call_later(delay, do, context=_WORLD)

    def carry(self, what: str, arrive: Callable[[], None], lost: Callable[[], None], *, after: float = 0.0) -> None:
        """Takes a request or an answer over, or loses it: silently, or so that the sender is told by its connection.

        It arrives not before the moment `after`.
        """
        delay = max(self.delay(), after - self.loop.time())
        chance_lost = self.weather.lost_request if what == "request" else self.weather.lost_answer

        def end() -> None:
            if self.is_cut or (chance_lost and self._chance.random() < chance_lost):
                self._count(f"lost {what}s")
                if self._chance.random() < 0.6:
                    self.later(self._chance.uniform(0.01, 2.0), lost)
            else:
                arrive()

        self.later(delay, end)

    def roundtrip(
        self,
        serve: Callable[[Callable[[Any], None]], None],
        answer: "asyncio.Future[Any]",
        lost: Callable[[str], Exception],
    ) -> None:
        """Brings a request over; `serve` gets a function that takes the answer back."""

        def fail(what: str) -> None:
            if not answer.done():
                answer.set_exception(lost(what))

        def arrived(value: Any) -> None:
            if not answer.done():
                answer.set_exception(value) if isinstance(value, Exception) else answer.set_result(value)

        def back(value: Any) -> None:
            self.carry("answer", lambda: arrived(value), lambda: fail("the answer was lost"))

        self.carry("request", lambda: serve(back), lambda: fail("the request was lost"))
        if self.weather.duplicate and self._chance.random() < self.weather.duplicate:
            self._count("duplicated requests")
            self.later(self._chance.uniform(0.0, 20.0), lambda: None if self.is_cut else serve(lambda _value: None))

    def break_on_death(self, process: Process, fail: Callable[[], None]) -> None:
        """The peer's end closes the connection, which the caller may or may not notice."""

        def died() -> None:
            if self._chance.random() < 0.8:
                self.later(self._chance.uniform(0.01, 1.0), fail)

        process.on_death.append(died)
