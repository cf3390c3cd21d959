"""A machine whose clocks move only when a test moves them."""

from datetime import UTC, datetime, timedelta

from gateway.clock import SystemTime

TICK = timedelta(microseconds=1)
"""The smallest step of the service clock: deadlines are tested one tick before and exactly at them."""


class ManualTime:
    """Wall clock and boot clock of one machine."""

    def __init__(self) -> None:
        self.wall = datetime(2026, 11, 29, 15, 58, 22, 123456, tzinfo=UTC)
        self.boot_id = "boot-1"
        self._boot_us = 1_000_000_000

    def machine(self) -> SystemTime:
        """What a process that starts now reads."""
        return SystemTime(self.boot_id, lambda: self._boot_us, lambda: self.wall)

    def advance(self, delay: timedelta | float) -> None:
        """Let time pass, on both clocks. A number is seconds."""
        delay = delay if isinstance(delay, timedelta) else timedelta(seconds=delay)
        self.wall += delay
        self._boot_us += delay // TICK

    def step_wall(self, delay: timedelta) -> None:
        """Set the wall clock, as NTP or a person does; no time passes."""
        self.wall += delay

    def reboot(self, down: timedelta) -> None:
        """Restart the machine: another boot, whose clock starts low, after `down` by the wall clock."""
        self.boot_id += "'"
        self._boot_us = 7_000_000
        self.wall += down
