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
    connect: tuple[float, float] = (0.0, 0.0)
    """How long a new connection takes at least and at most, on top of a message's delay."""


CALM = Weather()


class Link:
    """What lies between two parties."""

    def __init__(self, loop: VirtualLoop, chance: random.Random, name: str, count: Callable[[str], None]) -> None:
        self.loop = loop
        self.name = name
        self.weather = CALM
        self.weather_of: dict[str, Weather] = {}
        """Of single steps on the site and methods of the gateway, by their names."""
        self.cut_until = 0.0
        self._chance = chance
        self.count = count

    @property
    def is_cut(self) -> bool:
        return self.loop.time() < self.cut_until

    def delay(self, step: str = "") -> float:
        """Seconds that the next message takes."""
        weather = self.weather_at(step)
        if weather.slow and self._chance.random() < weather.slow:
            return self._chance.uniform(0.1, weather.longest)
        return self._chance.uniform(0.001, 0.02)

    def weather_at(self, step: str) -> Weather:
        """The weather that a step on the site, or a method of the gateway, meets."""
        return self.weather_of.get(step, self.weather)

    def connecting(self, step: str) -> float:
        """Seconds until a new connection for this step stands."""
        return self.delay(step) + self._chance.uniform(*self.weather_at(step).connect)

    def later(self, delay: float, do: Callable[[], None]) -> None:
        """Does something on nobody's account."""
        self.loop.call_later(delay, do, context=_WORLD)

    def carry(
        self,
        what: str,
        arrive: Callable[[], None],
        lost: Callable[[], None],
        *,
        after: float = 0.0,
        step: str = "",
    ) -> None:
        """Takes a request or an answer over, or loses it: silently, or so that the sender is told by its connection.

        It arrives not before the moment `after`.
        """
        delay, weather = max(self.delay(step), after - self.loop.time()), self.weather_at(step)
        chance_lost = weather.lost_request if what == "request" else weather.lost_answer

        def end() -> None:
            if self.is_cut or (chance_lost and self._chance.random() < chance_lost):
                self.count(f"lost {what}s")
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
        step: str,
        *,
        twice: bool,
    ) -> None:
        """Brings a request over; `serve` gets a function that takes the answer back. `twice`: it may come again."""

        def fail(what: str) -> None:
            if not answer.done():
                answer.set_exception(lost(what))

        def arrived(value: Any) -> None:
            if not answer.done():
                answer.set_exception(value) if isinstance(value, Exception) else answer.set_result(value)

        def back(value: Any) -> None:
            self.carry("answer", lambda: arrived(value), lambda: fail("the answer was lost"), step=step)

        self.carry("request", lambda: serve(back), lambda: fail("the request was lost"), step=step)
        if twice and self.weather.duplicate and self._chance.random() < self.weather.duplicate:
            self.count("duplicated requests")
            self.later(self._chance.uniform(0.0, 20.0), lambda: None if self.is_cut else serve(lambda _value: None))

    def break_on_death(self, process: Process, fail: Callable[[], None]) -> None:
        """The peer's end closes the connection, which the caller may or may not notice."""

        def died() -> None:
            if self._chance.random() < 0.8:
                self.later(self._chance.uniform(0.01, 1.0), fail)

        process.on_death.append(died)
