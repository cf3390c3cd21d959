"""The worker's elapsed clock goes on while the machine sleeps, where the system has such a clock.

Why: docs/adr/0004-two-clocks.md.
"""

import time

import pytest

from worker.clock import SystemClock


def test_the_boot_time_clock_is_asked_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "CLOCK_BOOTTIME", 7, raising=False)
    monkeypatch.setattr(time, "clock_gettime", {7: 5000.5, time.CLOCK_MONOTONIC: 10.0}.__getitem__)
    monkeypatch.setattr(time, "monotonic", lambda: 10.0)
    assert SystemClock().elapsed() == 5000.5


def test_elsewhere_the_monotonic_clock_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)
    monkeypatch.setattr(time, "monotonic", lambda: 10.0)
    assert SystemClock().elapsed() == 10.0
