"""The system's clocks behind the domain's `Clock`: wall time for people, boot time for judging.

Why: docs/adr/0004-two-clocks.md.
"""

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

from gateway.domain.instant import Instant, utc_text
from gateway.store import clock_anchor, history, leases
from gateway.store.clock_anchor import ClockAnchor
from gateway.store.port import ReadTransaction, Transaction

_BOOT_ID_FILE: Final = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class SystemTime:
    """Readings of the machine, injected so that a test or a simulation can replace them.

    `boot_us` counts microseconds since the boot that `boot_id` names; it goes on through a suspend where the system
    has such a clock.
    """

    boot_id: str
    boot_us: Callable[[], int]
    wall: Callable[[], datetime]


def system_time() -> SystemTime:
    """Return the machine's own clocks. Without a boot identity (not Linux) each process counts as a boot of its own."""
    boot_us = _boot_time_us if hasattr(time, "CLOCK_BOOTTIME") else _monotonic_us
    boot_id = _BOOT_ID_FILE.read_text("ascii").strip() if _BOOT_ID_FILE.exists() else uuid.uuid4().hex
    return SystemTime(boot_id, boot_us, lambda: datetime.now(UTC))


def _boot_time_us() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


def _monotonic_us() -> int:
    return time.monotonic_ns() // 1000


class KeptClock(Protocol):
    """The service clock as the rest of the gateway sees it: its readings come with each transaction."""

    @property
    def continues(self) -> bool:
        """Whether its elapsed time was carried over from an earlier process exactly."""
        ...

    @property
    def moved_ahead_us(self) -> int:
        """By how much it was put ahead of where it stood at the start: open permits have to be over."""
        ...

    def wall_utc(self) -> str:
        """Return the wall clock as it is, even if it has gone back."""
        ...

    def save(self, tx: Transaction, now: Instant) -> None:
        """Write down where the clock stands, so that the next process goes on from here."""
        ...


class ServiceClock:
    """The gateway's clock. `continues` is True if its elapsed time was carried over from an earlier process exactly."""

    def __init__(
        self,
        machine: SystemTime,
        anchor_boot_id: str,
        anchor_boot_us: int,
        elapsed_us: int,
        utc: str,
        moved_ahead_us: int = 0,
    ) -> None:
        self.moved_ahead_us = moved_ahead_us
        self._machine = machine
        self.continues = machine.boot_id == anchor_boot_id
        self._base_us = elapsed_us - (anchor_boot_us if self.continues else machine.boot_us())
        self._last_utc = utc

    def now(self) -> Instant:
        """Read both clocks; the wall clock's text never decreases."""
        self._last_utc = max(self._last_utc, self.wall_utc())
        return Instant(self._last_utc, self._base_us + self._machine.boot_us())

    def wall_utc(self) -> str:
        """Return the wall clock as it is, even if it has gone back."""
        return utc_text(self._machine.wall())

    def save(self, tx: Transaction, now: Instant) -> None:
        """Write down where the clock stands, so that the next process goes on from here."""
        boot_us = now.elapsed_us - self._base_us
        clock_anchor.write(tx, ClockAnchor(self._machine.boot_id, boot_us, now.elapsed_us, now.utc))


def load_clock(tx: ReadTransaction, machine: SystemTime) -> ServiceClock:
    """Make the clock go on from where the database says that it stood.

    After another boot nobody knows how much time passed between the last save and the crash. So the clock goes on no
    earlier than anything that an open lease has seen, its permit's end included: an age is never negative, and a
    permit never becomes longer.
    """
    anchor = clock_anchor.find(tx)
    last = history.last(tx)
    last_utc = "" if last is None else last.occurred_at
    if anchor is None:
        return ServiceClock(machine, machine.boot_id, machine.boot_us(), 0, last_utc)
    ahead_us = 0
    if anchor.boot_id != machine.boot_id:
        ahead_us = max(0, leases.latest_of_open_us(tx) - anchor.elapsed_us)
    elapsed_us = anchor.elapsed_us + ahead_us
    return ServiceClock(machine, anchor.boot_id, anchor.boot_us, elapsed_us, max(anchor.utc, last_utc), ahead_us)
