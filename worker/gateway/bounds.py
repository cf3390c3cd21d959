"""Bounds of every time that comes from outside: whatever a gateway says, nothing spins and nothing waits for ever.

A time is never made longer than it came where the worker would trust it for longer (a lease, a permit), and never
shorter than what keeps a loop from spinning (a delay).
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Bounds:
    """From `least` to `most` seconds, both included."""

    least: float
    most: float

    def clamp(self, seconds: float) -> float:
        """Return the nearest time within the bounds."""
        return min(max(seconds, self.least), self.most)


LEASE_TTL: Final = Bounds(0, 86_400)
"""A lease is renewed long before, so a longer one is only trusted for a day at a time."""

ACKNOWLEDGE_WITHIN: Final = Bounds(0, 3_600)

LEASE_AGE: Final = Bounds(0, 10 * 365 * 86_400)

PERMIT_VALID_FOR: Final = Bounds(0, 3_600)
"""The click follows its permit within seconds; after an hour the confirmation page is an old one."""

RETRY_AFTER: Final = Bounds(1, 3_600)
"""Between two requests for a permit, each of which may come with a look at the site."""

BETWEEN_RENEWALS: Final = Bounds(0.25, 60)

TURN: Final = Bounds(1, float("inf"))
"""A turn of a loop that brought nothing: the next one begins no sooner, however fast the gateway answers."""
