"""Time as the rules see it: a wall clock for people and an elapsed clock for judging (docs/adr/0004-two-clocks.md)."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Protocol
from zoneinfo import ZoneInfo

MICROSECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class Instant:
    """One reading of the clock, taken once an operation.

    `utc` is fixed-width text (`2026-11-29T15:58:22.123456Z`), which sorts as time and never decreases. `elapsed_us` is
    the service clock in microseconds: it counts on through a suspend and a restart within one boot, and no step of the
    wall clock moves it. Every deadline is judged by it.
    """

    utc: str
    elapsed_us: int

    def later(self, delay: timedelta) -> str:
        """Return `utc` plus `delay`, as text."""
        return _later(self.utc, delay)


class Clock(Protocol):
    """Where instants come from."""

    def now(self) -> Instant:
        """Read both clocks."""
        ...


def utc_text(at: datetime) -> str:
    """Write an aware datetime as fixed-width UTC text."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def parse_utc(text: str) -> datetime:
    """Read what `utc_text` wrote."""
    return datetime.fromisoformat(text)


def midnight(day: date, zone: ZoneInfo) -> str:
    """Return when a day begins, as UTC text; where clocks are set then, at the first moment that bears its date."""
    return utc_text(datetime.combine(day, time(), zone).astimezone(UTC))


@lru_cache(maxsize=16)
def _later(utc: str, delay: timedelta) -> str:
    """Kept, since the operations of one commit have one reading of the clock, and mostly ask it the same."""
    return utc_text(parse_utc(utc) + delay)


def microseconds(delay: timedelta) -> int:
    """Return `delay` in whole microseconds."""
    return delay // timedelta(microseconds=1)
