"""What the model of the order machine and the gateway are both asked, and what both answer. Times in microseconds."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from gateway.domain.leases import Verdict
from gateway.domain.refusals import Reason
from gateway.domain.states import OrderState, Placement, TaskStatus
from tests.gateway.support.book import POLICY
from tests.gateway.support.manual_time import TICK

SITES = POLICY.sites
TTL, ACKNOWLEDGE = POLICY.lease_ttl // TICK, POLICY.acknowledge_within // TICK
PERMIT_TTL, SETTLE = POLICY.permit_ttl // TICK, POLICY.permit_settle // TICK
SECOND = 1_000_000


@dataclass(frozen=True)
class Process:
    """A worker's process. Over REST it has neither session nor journal."""

    worker: str
    session: str | None
    journal: str | None


WORKER = Process("w1", "session-of-w1-first", "journal-of-worker-1")
RESTARTED = Process("w1", "session-of-w1-later", "journal-of-worker-1")
NAMESAKE = Process("w1", "session-of-namesake", "journal-of-namesake")
OTHER = Process("w2", "session-of-w2-first", "journal-of-worker-2")
OVER_REST = Process("w1", None, None)
PROCESSES = (WORKER, OTHER, RESTARTED, NAMESAKE)


@dataclass(frozen=True)
class Holder:
    """Who claims to hold a lease. Over REST the token may be missing."""

    task_id: str
    worker: str
    token: str | None


@dataclass(frozen=True)
class Told:
    """A report. Over REST it may come without a sequence, and a terminal one without a state."""

    state: OrderState | None
    sequence: int | None
    terminal: bool = False
    ends_as: TaskStatus | None = None
    facts: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Look:
    """A look at the site's order list; `begun` is the lease's age then."""

    verdict: Verdict
    covered: bool
    evidence: str | None
    begun: int


@dataclass(frozen=True)
class Refused:
    """A refusal: the reason that the gateway names, or, in the model, each that it may name."""

    reasons: frozenset[Reason]
    recorded_late: bool = False


def refused(*reasons: Reason, late: bool = False) -> Refused:
    return Refused(frozenset(reasons), late)


@dataclass(frozen=True)
class Given:
    """A lease as its worker gets it."""

    task_id: str
    number: int
    known_state: OrderState | None
    intent_json: str
    other_numbers: frozenset[str]
    others_incomplete: bool
    token: str = field(default="", compare=False)


@dataclass(frozen=True)
class Filed:
    created: bool
    status: TaskStatus
    intent_matches: bool


@dataclass(frozen=True)
class Seen:
    """A task as anybody can read it. Of reports: state and facts, the first reported first."""

    task_id: str
    site: str
    intent_json: str
    status: TaskStatus
    owner: str | None
    lease_count: int
    latest: OrderState | None
    placement: Placement
    permitted: bool
    reports: tuple[tuple[OrderState, tuple[tuple[str, Any], ...]], ...]


@dataclass(frozen=True)
class View:
    """Everything that can be read: tasks, the newest first, standing alerts, refused reports in the history."""

    tasks: tuple[Seen, ...]
    alerts: frozenset[tuple[str, str]]
    late_reports: int


FACTS = ("payable_yen", "site_order_id", "evidence_ref", "error_code", "detail")
"""What a report tells beside its state."""


def facts_of(report: Any) -> tuple[tuple[str, Any], ...]:
    """The facts that something tells, in a fixed order and without what is missing."""
    return tuple((name, getattr(report, name)) for name in FACTS if getattr(report, name) not in (None, ""))


class Orders(Protocol):
    """The gateway, however it is reached. What it answers are the values of this module."""

    inside: bool
    """Whether also that can be asked which no gRPC client can: REST leases, giving back, sweeps, crashes, a restore."""

    def submit(self, task_id: str, site: str, intent_json: str) -> Filed: ...
    def cancel(self, task_id: str) -> TaskStatus | Refused: ...
    def lease(self, process: Process, sites: tuple[str, ...]) -> Given | None: ...
    def reclaim(self, process: Process, task_id: str) -> Given | Refused: ...
    def renew(self, holder: Holder) -> int | Refused:
        """Answer the lease's age."""
        ...

    def report(self, holder: Holder, told: Told) -> tuple[TaskStatus, bool] | Refused:
        """Answer the task's status, and whether the state is new."""
        ...

    def permit(self, holder: Holder, journal: str, attests: bool, look: Look | None) -> int | Refused:
        """Answer for how long the permit is good."""
        ...

    def decide(self, decision: str, task_id: str) -> TaskStatus | Refused:
        """Requeue, withdraw or expire_now."""
        ...

    def resolve(
        self, task_id: str, outcome: TaskStatus, state: OrderState | None, number: str | None, although: bool
    ) -> TaskStatus | Refused: ...
    def pause(self, site: str) -> frozenset[str]:
        """Answer the sites that are paused then, "" for all."""
        ...

    def resume(self, site: str) -> frozenset[str]: ...
    def give_back(self, task_id: str, token: str) -> bool: ...
    def sweep(self) -> None: ...
    def restore(self) -> None: ...
    def restart(self, scope: str, *, crash: bool = False, meanwhile: Callable[[], None] = lambda: None) -> None:
        """End the process and start another, which sweeps at once; `meanwhile` is what happens in between."""
        ...

    def view(self) -> View: ...
    def close(self) -> None: ...
