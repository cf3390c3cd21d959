"""What a worker asks and gets under a lease: the lease itself, its renewal, and the permit."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from common.target import ONLY_ACCOUNT, Target, targets
from gateway.domain.labels import NO_LABELS
from gateway.domain.states import OrderState
from gateway.domain.terms import Terms


class Via(StrEnum):
    """How a lease was taken. Over REST there is no permit, so it counts as "may have clicked" throughout."""

    GRPC = "grpc"
    REST = "rest"


class Verdict(StrEnum):
    """What a look at the site's order list told about a recovered task."""

    NOT_ORDERED = "not_ordered"
    ORDERED = "ordered"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """A worker that asks for an order, with each of its accounts on each of its sites.

    `session_id` and `journal_id` are None over REST. `stream_number` counts the streams of the process; 0: not counted.
    """

    worker_id: str
    session_id: str | None
    journal_id: str | None
    sites: tuple[str, ...]
    via: Via
    identity: str
    accounts: tuple[str, ...] = (ONLY_ACCOUNT,)
    stream_number: int = 0

    @property
    def targets(self) -> tuple[Target, ...]:
        """Return what the worker serves."""
        return targets(self.sites, self.accounts)


@dataclass(frozen=True, slots=True)
class Verification:
    """What a look at the site told; `begun_at` is the lease's age when it began."""

    verdict: Verdict
    window_fully_covered: bool
    evidence_ref: str | None
    begun_at: timedelta


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """A lease as stored, with its permit and the look at the site that was last shown to get one.

    `bound_to`: the named token that took it; None where the token has no name. `started_at`, `ended_at`: by the wall
    clock, for people.
    """

    task_id: str
    lease_number: int
    token: str
    worker_id: str
    bound_to: str | None
    session_id: str | None
    journal_id: str | None
    via: Via
    started_us: int
    acknowledged_at: str | None
    ended_us: int | None
    permitted_at: str | None
    permit_expires_us: int | None
    verification: Verification | None
    permit_terms: Terms | None = None
    started_at: str = ""
    ended_at: str | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """Who told a worker to reclaim a task, and why; empty where it was not said."""

    requested_by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class OtherOrders:
    """Order numbers told of other tasks of a site; `incomplete`: there may be orders of theirs that are not in it."""

    site_order_ids: tuple[str, ...]
    incomplete: bool


@dataclass(frozen=True, slots=True)
class Lease:
    """What a worker gets when it takes a task."""

    task_id: str
    site: str
    intent_json: str
    lease_expires_at: str
    lease_count: int
    known_state: OrderState | None
    token: str
    task_created_at: str
    traceparent: str
    others: OtherOrders
    account: str = ONLY_ACCOUNT
    labels_json: str = NO_LABELS
    stop_before_submit: bool = False


@dataclass(frozen=True, slots=True)
class Renewed:
    """What a renewal gives. `lease_age` is the lease's age by the service clock; `others` only where asked for."""

    task_id: str
    lease_expires_at: str
    lease_count: int
    lease_age: timedelta
    others: OtherOrders | None


@dataclass(frozen=True, slots=True)
class Holder:
    """Who claims to hold a lease. `token` is None only over REST without one."""

    task_id: str
    worker_id: str
    token: str | None
    identity: str


@dataclass(frozen=True, slots=True)
class PermitRequest:
    """A worker that asks for leave to click. `terms` None: it is older than contract version 1.1."""

    holder: Holder
    journal_id: str
    attests_no_click_record: bool
    verification: Verification | None
    terms: Terms | None = None


@dataclass(frozen=True, slots=True)
class Permit:
    """Leave to click, good for `valid_for` from the moment the first request for it was sent."""

    task_id: str
    permitted_at: str
    valid_for: timedelta
