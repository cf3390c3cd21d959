"""Which times of the settings fit together: what can't work is refused, what works but is odd is told.

Names are those of the settings, in lower case and without their unit; all values are seconds. A time of 0 that switches
something off is not judged.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

HEARTBEAT: Final = 10.0
"""An open stream is a sign of life this often."""

MOST_BETWEEN_RENEWALS: Final = 60.0
"""A worker renews its lease this often, or every third of its life."""

CALLBACKS_LAST: Final = 3 * 86_400.0


@dataclass(frozen=True, slots=True)
class AtLeast:
    """`larger` must be at least `times` x `smaller`; `refused` or else told. `smaller` may be a number of seconds."""

    larger: str
    smaller: str | float
    why: str
    times: float = 1.0
    refused: bool = False

    def finding(self, seconds: Mapping[str, float]) -> str | None:
        """Return what is wrong, with both names and values; None if nothing is."""
        low = self.smaller if isinstance(self.smaller, float) else seconds[self.smaller]
        if not seconds[self.larger] or not low or seconds[self.larger] >= low * self.times:
            return None
        than = f"{low * self.times:g} s"
        if isinstance(self.smaller, str):
            many = "" if self.times == 1 else f"{self.times:g} x "
            than = f"{many}{_shown(self.smaller)} ({low:g} s)"
        return f"{_shown(self.larger)} ({seconds[self.larger]:g} s) is shorter than {than}: {self.why}"


RULES: Final = (
    # What can't work.
    AtLeast("lease_ack", 0.1, "no worker can write a lease down and answer in that time", refused=True),
    AtLeast("lease_ttl", 0.1, "no worker can renew a lease in that time", refused=True),
    AtLeast("permit_ttl", 0.1, "no worker can record a click and make it in that time", refused=True),
    AtLeast("query_lease_ttl", 0.1, "no worker can read a site in that time", refused=True),
    AtLeast("sweep_interval", 0.01, "the gateway would do nothing else", refused=True),
    AtLeast("catalog_interval", 1.0, "the worker would do nothing else", refused=True),
    AtLeast("worker_offline_alert", HEARTBEAT, "a worker that waits is heard of that often", refused=True),
    AtLeast("worker_offline_alert", "renewal", "a worker that executes an order is heard of that often", refused=True),
    AtLeast("query_ttl", 0.1, "a query would expire before it is handed out", refused=True),
    AtLeast("catalog_window", "catalog_interval", "orders placed between two looks would never be seen", refused=True),
    # What works, but is probably not meant.
    AtLeast("lease_ack", 2.0, "a worker flushes its journal before it answers, and the way may be slow"),
    AtLeast("lease_ttl", 10.0, "one slow answer, and the lease is lost"),
    AtLeast("permit_ttl", 2.0, "the click begins after a record is flushed and a connection opened"),
    AtLeast("permit_settle", 600.0, "a shop's order list may lag about ten minutes"),
    AtLeast("lease_max_wait", 1.0, "workers ask again that often"),
    AtLeast("task_unclaimed_alert", 1.0, "a task alerts before a worker can have taken it"),
    AtLeast("query_retention", 60.0, "a result may be gone before it is read"),
    AtLeast("worker_offline_alert", HEARTBEAT, "one late sign of life, and the alert is raised", times=2),
    AtLeast("worker_offline_alert", "renewal", "one late renewal, and the alert is raised", times=2),
    AtLeast("lease_ttl", "lease_ack", "a lease that nobody acknowledged holds the slot for longer than one in use"),
    AtLeast("lease_ttl", "permit_ttl", "a permit outlives its lease"),
    AtLeast("permit_settle", "permit_ttl", "a second permit is nearer than the end of the first one was"),
    AtLeast("query_ttl", "query_lease_ttl", "no second attempt"),
    AtLeast("query_ttl", "query_attempts", "not all of RAKUTEN_QUERY_MAX_ATTEMPTS fit"),
    AtLeast("query_retention", "query_ttl", "a result is kept for less time than its query may wait"),
    AtLeast("catalog_interval", "query_lease_ttl", "a round begins before the one before it may have ended"),
    AtLeast("lease_ttl", "sweep_interval", "a lease that ran out shows, and alerts, late"),
    AtLeast("lease_ack", "sweep_interval", "a lease that nobody acknowledged shows, and alerts, late"),
    AtLeast("query_lease_ttl", "sweep_interval", "a query whose worker died is handed out again late"),
    AtLeast("worker_offline_alert", "sweep_interval", "the alert comes late"),
    AtLeast("task_unclaimed_alert", "sweep_interval", "the alert comes late"),
    AtLeast("catalog_interval", "sweep_interval", "rounds begin late"),
    AtLeast("backup_alert", 3_600.0, "health is degraded between two backups"),
    AtLeast("retention", CALLBACKS_LAST, "a callback may still be due, and would go out without the intent"),
)


def derived(seconds: Mapping[str, float], max_attempts: int) -> dict[str, float]:
    """Return the times with those that follow from them: between two renewals, all attempts at a query."""
    return {
        **seconds,
        "renewal": min(MOST_BETWEEN_RENEWALS, seconds["lease_ttl"] / 3),
        "query_attempts": seconds["query_lease_ttl"] * max_attempts,
    }


def findings(seconds: Mapping[str, float], *, refused: bool) -> Iterator[str]:
    """Yield a sentence for each rule that is broken: of those that refuse, or of those that only tell."""
    for rule in RULES:
        if rule.refused is refused and (found := rule.finding(seconds)) is not None:
            yield found


_SHOWN: Final = {
    "renewal": "the time between two renewals, from RAKUTEN_LEASE_TTL_SECONDS",
    "query_attempts": "all attempts, RAKUTEN_QUERY_LEASE_TTL_SECONDS each",
    "catalog_window": "RAKUTEN_CATALOG_WINDOW_DAYS",
    "retention": "RAKUTEN_RETENTION_DAYS",
}


def _shown(name: str) -> str:
    return _SHOWN.get(name, f"RAKUTEN_{name.upper()}_SECONDS")
