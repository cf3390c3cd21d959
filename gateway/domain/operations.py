"""What the person in charge gives and gets: plain values, times as UTC text (see `gateway.domain.instant`)."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from gateway.domain.approvals import Consent
from gateway.domain.findings import Finding
from gateway.domain.leases import Verification
from gateway.domain.models import AlertKind, Report, TaskDetail
from gateway.domain.states import OrderState, TaskStatus

UNKNOWN_JOURNAL: Final = "(restored from a backup)"
"""Journal of the lease that a restore puts on every open task: no worker can have it, since no id may look like it."""

UNKNOWN_WORKER: Final = "(unknown)"
"""Who may have held a task between a backup and its restore."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a person states about an order: how the task ends, and what was seen on the site (None: not stated).

    `although_impossible`: the order is there, whatever the gateway knows of leases and permits.
    """

    task_id: str
    reason: str
    outcome: TaskStatus
    state: OrderState | None
    site_order_id: str | None
    although_impossible: bool = False


@dataclass(frozen=True, slots=True)
class Resumption:
    """Starting dispatch again, for all sites."""

    reason: str


ProposedDecision = Resolution | Consent | Resumption


class ProposalStatus(StrEnum):
    """Where a proposal stands."""

    WAITING = "waiting"
    CONFIRMED = "confirmed"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"
    OBSOLETE = "obsolete"
    """What it was about has changed since."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A decision that one person has proposed and another has to confirm. Times are UTC text.

    `basis`: on what it rests, as it was when it was proposed; where that has changed nothing is decided by it.
    `closed_by` None: it waits still.
    """

    proposal_id: int
    decision: ProposedDecision
    basis: str
    proposed_by: str
    proposed_at: str
    valid_until: str
    status: ProposalStatus = ProposalStatus.WAITING
    closed_by: str | None = None
    closed_at: str | None = None
    closed_reason: str = ""

    def has_run_out(self, utc: str) -> bool:
        """Tell whether its time is over: at `valid_until` itself it is not."""
        return utc > self.valid_until


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """One line of the history. `details_json` is a JSON object as text."""

    sequence: int
    occurred_at: str
    subject: str
    kind: str
    actor: str
    worker_id: str | None
    before: str | None
    after: str | None
    reason: str
    details_json: str


@dataclass(frozen=True, slots=True)
class HistoryFilter:
    """Which events: of one subject (None: all), of some kinds (none: all), from `since` on and before `until`."""

    subject: str | None
    kinds: tuple[str, ...]
    since: str | None
    until: str | None


@dataclass(frozen=True, slots=True)
class Alert:
    """Something that a person should look at; it stands while `cleared_at` is None."""

    alert_id: int
    kind: AlertKind
    subject: str
    message: str
    raised_at: str
    cleared_at: str | None


@dataclass(frozen=True, slots=True)
class LateReport:
    """A refused report, kept all the same. The report's `reported_at` is when it came."""

    worker_id: str
    report: Report
    refusal: str


@dataclass(frozen=True, slots=True)
class Decision:
    """A task to decide about, with everything known. `settles_in`: None when it may become failed now, or never.

    `proposal`: what waits for a second person about it.
    """

    task: TaskDetail
    finding: Finding
    allowed: tuple[str, ...]
    late_reports: tuple[LateReport, ...]
    last_verification: Verification | None
    last_worker_id: str | None
    alerts: tuple[Alert, ...]
    settles_in: timedelta | None
    proposal: Proposal | None = None

    @property
    def summary(self) -> str:
        """Say in one sentence whether an order is impossible, possible or certain, and why."""
        return self.finding.sentence


@dataclass(frozen=True, slots=True)
class BackupFacts:
    """A verified backup: its name in the backup folder, bytes, SHA-256 in hexadecimal, last event, tasks."""

    file_name: str
    size_bytes: int
    sha256: str
    last_event_sequence: int
    task_count: int
