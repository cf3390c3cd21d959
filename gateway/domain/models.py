"""Tasks, and what the use cases know of them: plain values, times as UTC text (see `gateway.domain.instant`)."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from common.target import ONLY_ACCOUNT, Target
from gateway.domain.approvals import HELD_FOR_APPROVAL, Approval, ApprovalReason
from gateway.domain.labels import NO_LABELS
from gateway.domain.states import ENDED, OrderState, Placement, TaskStatus
from gateway.domain.terms import Terms

_OF_AN_ACCOUNT: Final = "account:"


class LeaseScope(StrEnum):
    """What one slot covers: everything, one site, or one account on it (docs/specification.md#slots)."""

    GLOBAL = "global"
    SITE = "site"
    ACCOUNT = "account"


class RestLeases(StrEnum):
    """Which tasks are handed out over REST, where no permit judges (docs/specification.md#leases-over-rest)."""

    PLAIN = "plain"
    ALL = "all"


class SameIntent(StrEnum):
    """What becomes of the same wish again (docs/specification.md#the-same-wish-twice)."""

    TELL = "tell"
    HOLD = "hold"


class Standby(StrEnum):
    """What a standby of the database's server is good for (docs/postgresql.md#a-standby)."""

    NONE = "none"
    SYNCHRONOUS = "synchronous"


class AlertKind(StrEnum):
    """What an alert is about (docs/specification.md#alerts)."""

    WORKER_OFFLINE = "worker_offline"
    TASK_UNCLAIMED = "task_unclaimed"
    TASK_STALE = "task_stale"
    TASK_NEEDS_HUMAN = "task_needs_human"
    LATE_REPORT = "late_report"
    CONTRADICTING_REPORT = "contradicting_report"
    SITE_ORDER_ID_CONFLICT = "site_order_id_conflict"
    CALLBACK_GIVEN_UP = "callback_given_up"
    FAILED_IN_DOUBT = "failed_in_doubt"
    BUDGET_NEARLY_USED = "budget_nearly_used"
    BUDGET_USED_UP = "budget_used_up"
    APPROVAL_REQUIRED = "approval_required"
    PROPOSAL_WAITING = "proposal_waiting"
    RESUME_PROPOSED = "resume_proposed"

    @property
    def is_about_tasks(self) -> bool:
        """Whether its subject is a task, or an order number that tasks share."""
        return self not in _NOT_ABOUT_TASKS


_NOT_ABOUT_TASKS: Final = (
    AlertKind.WORKER_OFFLINE,
    AlertKind.CALLBACK_GIVEN_UP,
    AlertKind.BUDGET_NEARLY_USED,
    AlertKind.BUDGET_USED_UP,
    AlertKind.RESUME_PROPOSED,
)


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings that rules depend on."""

    sites: tuple[str, ...]
    scope: LeaseScope
    lease_ttl: timedelta
    acknowledge_within: timedelta
    longest_wait: timedelta
    permit_ttl: timedelta
    permit_settle: timedelta
    max_intent_bytes: int
    worker_offline_after: timedelta
    task_unclaimed_after: timedelta
    permit_max_yen: int | None = None
    rest_leases: RestLeases = RestLeases.PLAIN
    same_intent_within: timedelta = timedelta(0)
    budget_zone: str = "Asia/Tokyo"
    budget_alert_percent: int = 80
    same_intent: SameIntent = SameIntent.TELL
    approval_over_yen: int | None = None
    approval_always: frozenset[str] = frozenset()
    approval_valid: timedelta = timedelta(days=1)
    second_person: bool = False
    second_person_over_yen: int = 100_000
    proposal_valid: timedelta = timedelta(days=1)

    def slot(self, target: Target) -> str:
        """Return the name of the slot that a task of this target occupies while it is active."""
        match self.scope:
            case LeaseScope.GLOBAL:
                return "global"
            case LeaseScope.SITE:
                return f"site:{target.site}"
            case LeaseScope.ACCOUNT:
                return f"{_OF_AN_ACCOUNT}{target.site}:{target.account}"


def is_of_an_account(slot: str) -> bool:
    """Tell whether a slot is one account's, so that its end concerns nobody else."""
    return slot.startswith(_OF_AN_ACCOUNT)


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks: the identity that the token stands for, and the worker's name where one is concerned.

    `confirmed_by`: the second person, who has agreed to what the first one proposed.
    """

    identity: str
    worker_id: str | None = None
    confirmed_by: str | None = None


GATEWAY: Final = Actor("gateway")
"""The actor of what the gateway does by itself."""


@dataclass(frozen=True, slots=True)
class OrderNumber:
    """An order number of a site."""

    site: str
    site_order_id: str

    def __str__(self) -> str:
        """Return what people read where it is the subject of an alert."""
        return f"{self.site}/{self.site_order_id}"


@dataclass(frozen=True, slots=True)
class Submission:
    """A checked request to file a task. `labels_json`: as `fields.labels` writes them.

    `intent_key` None: nobody asks whether another task wants the same.
    """

    task_id: str
    site: str
    intent_json: str
    callback_url: str | None
    traceparent: str = ""
    account: str = ONLY_ACCOUNT
    labels_json: str = NO_LABELS
    max_total_yen: int | None = None
    not_before: str | None = None
    not_after: str | None = None
    stop_before_submit: bool = False
    intent_key: str | None = None
    requires_approval: bool = False


@dataclass(frozen=True, slots=True)
class Submitted:
    """What a submission came to. `differs`: in which fields it differs from the task that existed.

    `same_intent_as`: another task that wanted the same when this one was filed. `held_for_approval`: see `Task`.
    """

    task_id: str
    status: TaskStatus
    created: bool
    intent_matches: bool
    differs: tuple[str, ...] = ()
    same_intent_as: str | None = None
    held_for_approval: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """One row of the mirror: what is known of one order state of a task."""

    state: OrderState
    payable_yen: int | None
    pay_deadline: str | None
    site_order_id: str | None
    evidence_ref: str | None
    detail: str
    error_code: int | None
    reported_at: str


@dataclass(frozen=True, slots=True)
class Task:
    """A task as stored. `row` orders tasks by submission; `intent_digest` stands for an intent that was dropped.

    `slot`: which one it occupies while it is active. `queued_us`: when it last came into the queue, by the service
    clock. `order_known`: a worker told of an order. `resolved_at`: when a person last stated how it ended;
    `order_stated`: that statement says that there is an order. `terms`: of its last permit, else those last shown.
    `held_until`: a queued task is kept back until then, by the UTC text of the gateway's clock. `submitted_by`: the
    identity that filed it; None where nobody wrote it down. `approval_reasons`: why it needs an approval; none: it
    needs none.
    """

    row: int
    task_id: str
    site: str
    intent_json: str
    callback_url: str | None
    traceparent: str
    status: TaskStatus
    slot: str | None
    lease_owner: str | None
    lease_expires_at: str | None
    lease_deadline_us: int | None
    lease_count: int
    queued_us: int | None
    latest_state: OrderState | None
    latest_lease: int
    latest_sequence: int
    end_state: OrderState | None
    end_status: TaskStatus | None
    order_known: bool
    may_have_clicked: bool
    submit_permitted_at: str | None
    created_at: str
    updated_at: str
    resolved_at: str | None
    order_stated: bool
    intent_digest: str | None = None
    account: str = ONLY_ACCOUNT
    labels_json: str = NO_LABELS
    max_total_yen: int | None = None
    terms: Terms | None = None
    not_before: str | None = None
    not_after: str | None = None
    held_until: str | None = None
    stop_before_submit: bool = False
    cancel_requested_at: str | None = None
    same_intent_as: str | None = None
    submitted_by: str | None = None
    approval_reasons: tuple[ApprovalReason, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether it was filed without a condition that the permit judges."""
        capped = self.max_total_yen is not None
        return not (capped or self.not_after is not None or self.stop_before_submit or self.requires_approval)

    @property
    def requires_approval(self) -> bool:
        """Whether no permit is granted without an approval of somebody else than who filed it."""
        return bool(self.approval_reasons)

    @property
    def is_held_for_approval(self) -> bool:
        """Whether it waits in the queue for its approval."""
        return self.status is TaskStatus.QUEUED and self.held_until == HELD_FOR_APPROVAL

    @property
    def target(self) -> Target:
        """Return the site and the account that order."""
        return Target(self.site, self.account)

    @property
    def placement(self) -> Placement:
        """Say what is known of an order on the site (docs/specification.md#placement)."""
        return Placement.CERTAIN if self.order_stated else self.placement_by_workers

    @property
    def placement_by_workers(self) -> Placement:
        """Say what leases and reports tell of an order, whatever a person stated since."""
        if self.order_known:
            return Placement.CERTAIN
        return Placement.POSSIBLE if self.may_have_clicked else Placement.IMPOSSIBLE


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Which tasks a list shows; None: any."""

    status: TaskStatus | None = None
    site: str | None = None
    account: str | None = None


@dataclass(frozen=True, slots=True)
class TaskDetail:
    """A task with its reports, the oldest first, and what was last decided where it needs an approval."""

    task: Task
    reports: tuple[Report, ...]
    approval: Approval | None = None

    @property
    def has_ended(self) -> bool:
        """Whether the worker is done with the task; a person or a late report may still change it."""
        return self.task.status in ENDED


@dataclass(frozen=True, slots=True)
class NewReport:
    """A checked report. `sequence` is None over REST, `terminal_status` None where the state decides."""

    state: OrderState | None
    payable_yen: int | None
    pay_deadline: str | None
    site_order_id: str | None
    evidence_ref: str | None
    detail: str
    error_code: int | None
    sequence: int | None
    terminal: bool
    terminal_status: TaskStatus | None


@dataclass(frozen=True, slots=True)
class Reported:
    """What a report came to. `recorded` is False if the state had been reported before."""

    task_id: str
    status: TaskStatus
    recorded: bool
