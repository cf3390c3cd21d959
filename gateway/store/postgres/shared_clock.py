"""One service clock for several gateways, kept in the row of the newest group. Pure: no I/O, it reads no clock.

The database's clock says how much time has passed since the newest group; the boot clocks of the gateways that are up
vouch for it. What they cannot agree on falls towards more time having passed (a lease turns stale rather than grows),
except for a jump forward that a living gateway can refute. All times are microseconds.
"""

from dataclasses import dataclass
from typing import Final

VOUCHED_US: Final = 2_000_000
"""A group this soon after the newest one is believed as it is: whoever wrote that one has just judged the clock."""

DRIFT: Final = 3 / 10_000
"""What two honest clocks may differ by."""

_SLACK_US: Final = 1_000


@dataclass(frozen=True, slots=True)
class NewestGroup:
    """What the newest group has written down: the service clock, the database's clock, and UTC as text."""

    elapsed_us: int
    database_us: int
    utc: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What a gateway read last: the service clock, and its own boot clock before and after it asked."""

    elapsed_us: int
    sent_us: int
    received_us: int


def judge(newest: NewestGroup, database_us: int, own: Reading | None, sent_us: int, received_us: int) -> int:
    """Return the service clock now. Never less than the newest group's, however the database's clock was set.

    `database_us` is the database's clock, read between `sent_us` and `received_us` of this gateway's boot clock; `own`
    is what this gateway, or a former process of the same boot, read last.
    """
    passed = database_us - newest.database_us
    elapsed = newest.elapsed_us + max(passed, 0)
    if own is None:
        return elapsed
    # Where the database's clock has gone back, this machine's is all there is, and is taken as it is.
    at_least = own.elapsed_us + int((sent_us - own.received_us) * (1 - DRIFT if passed >= 0 else 1))
    at_most = own.elapsed_us + int((received_us - own.sent_us) * (1 + DRIFT)) + _SLACK_US
    # If the newest group is later than this machine thinks possible, it stood still itself and can refute nothing.
    if passed > VOUCHED_US and at_most + VOUCHED_US >= newest.elapsed_us:
        elapsed = min(elapsed, max(at_most, newest.elapsed_us))
    return max(elapsed, at_least, newest.elapsed_us)


def is_vouched(newest: NewestGroup, database_us: int) -> bool:
    """Tell whether a gateway that is up has judged the clock so recently that one that starts may go on from there."""
    return 0 <= database_us - newest.database_us <= VOUCHED_US
