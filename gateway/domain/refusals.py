"""Refusals: what the gateway says when a rule forbids what was asked.

A refusal is a value that a use case returns, not an exception, so that the history entry it leaves commits with it.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from gateway.domain.account_queries import QueryStatus
from gateway.domain.states import TaskStatus


class Reason(StrEnum):
    """Which rule refused. The names are those of ErrorReason in errors.proto, where each is explained."""

    INVALID_FIELD = "invalid_field"
    TASK_NOT_FOUND = "task_not_found"
    LEASE_INVALID = "lease_invalid"
    STATUS_CONFLICT = "status_conflict"
    ANOTHER_TASK_ACTIVE = "another_task_active"
    QUERY_NOT_FOUND = "query_not_found"
    QUERY_LEASE_INVALID = "query_lease_invalid"
    DISPATCH_PAUSED = "dispatch_paused"
    PERMIT_ORDER_KNOWN = "permit_order_known"
    PERMIT_NOT_VERIFIED = "permit_not_verified"
    PERMIT_OTHER_JOURNAL = "permit_other_journal"
    PERMIT_NOT_ATTESTED = "permit_not_attested"
    PERMIT_NOT_SETTLED = "permit_not_settled"
    PERMIT_EXPIRED = "permit_expired"
    LEASE_NOT_ACKNOWLEDGED = "lease_not_acknowledged"
    WORKER_NOT_FOUND = "worker_not_found"
    CALLBACK_NOT_FOUND = "callback_not_found"
    FEATURE_OFF = "feature_off"
    UNAUTHENTICATED = "unauthenticated"
    PERMISSION_DENIED = "permission_denied"
    TOO_LARGE = "too_large"
    TOO_MANY = "too_many"
    STORE_UNAVAILABLE = "store_unavailable"
    SHUTTING_DOWN = "shutting_down"
    INTERNAL = "internal"
    TERMS_OVER_CAP = "terms_over_cap"
    PERMIT_TERMS_REQUIRED = "permit_terms_required"
    PERMIT_TERMS_CHANGED = "permit_terms_changed"
    TOO_LATE = "too_late"
    PERMIT_DRY_RUN = "permit_dry_run"
    CANCEL_REQUESTED = "cancel_requested"
    CANCEL_TOO_LATE = "cancel_too_late"
    BUDGET_EXCEEDED = "budget_exceeded"
    BUDGET_NOT_FOUND = "budget_not_found"
    APPROVAL_REQUIRED = "approval_required"
    APPROVAL_EXPIRED = "approval_expired"
    SECOND_PERSON_REQUIRED = "second_person_required"
    PROPOSAL_NOT_FOUND = "proposal_not_found"


@dataclass(frozen=True, slots=True)
class Violation:
    """One refused field: its path in the request and one sentence with the limit."""

    field: str
    description: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request was refused, with what the caller needs to go on (errors.proto, ErrorDetail)."""

    reason: Reason
    message: str
    violations: tuple[Violation, ...] = field(default=())
    current_status: TaskStatus | None = None
    current_query_status: QueryStatus | None = None
    allowed: tuple[str, ...] = field(default=())
    recorded_late: bool = False
    retry_after: timedelta | None = None
    proposal_id: int = 0


class RefusedError(Exception):
    """A refusal on its way to the caller, raised outside transactions only."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


def invalid(field_name: str, description: str) -> RefusedError:
    """Make the refusal of one field."""
    return RefusedError(
        Refusal(
            Reason.INVALID_FIELD,
            f"{field_name}: {description}",
            violations=(Violation(field_name, description),),
        )
    )
