"""The one error table: from a refusal's reason to each transport (docs/protocol.md#replies)."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from google.protobuf import duration_pb2
from ordergateway.v1 import errors_pb2

from gateway.api.codec.account_queries import query_status_to
from gateway.api.codec.orders import task_status_to
from gateway.domain.refusals import Reason, Refusal, RefusedError
from gateway.store.port import StoreDamagedError, StoreUnavailableError


@dataclass(frozen=True, slots=True)
class Answer:
    """How a reason is told: the name of the gRPC and Connect status, the HTTP status, the documented JSON code."""

    status: str
    http: int
    code: int


def _plain(status: str, http: int) -> Answer:
    """Make the row of a generic error, whose JSON code is the HTTP status itself."""
    return Answer(status, http, http)


ERRORS: Final[Mapping[Reason, Answer]] = MappingProxyType(
    {
        Reason.INVALID_FIELD: _plain("INVALID_ARGUMENT", 422),
        Reason.TASK_NOT_FOUND: Answer("NOT_FOUND", 404, 6001),
        Reason.LEASE_INVALID: Answer("FAILED_PRECONDITION", 409, 6002),
        Reason.STATUS_CONFLICT: Answer("FAILED_PRECONDITION", 409, 6003),
        Reason.ANOTHER_TASK_ACTIVE: Answer("ABORTED", 200, 6004),
        Reason.QUERY_NOT_FOUND: Answer("NOT_FOUND", 404, 6005),
        Reason.QUERY_LEASE_INVALID: Answer("FAILED_PRECONDITION", 409, 6006),
        Reason.DISPATCH_PAUSED: _plain("ABORTED", 503),
        Reason.PERMIT_ORDER_KNOWN: Answer("FAILED_PRECONDITION", 409, 6003),
        Reason.PERMIT_NOT_VERIFIED: Answer("FAILED_PRECONDITION", 409, 6003),
        Reason.PERMIT_OTHER_JOURNAL: Answer("FAILED_PRECONDITION", 409, 6003),
        Reason.PERMIT_NOT_ATTESTED: Answer("FAILED_PRECONDITION", 409, 6003),
        Reason.PERMIT_NOT_SETTLED: Answer("ABORTED", 409, 6003),
        Reason.PERMIT_EXPIRED: Answer("FAILED_PRECONDITION", 409, 6003),
        Reason.TERMS_OVER_CAP: Answer("FAILED_PRECONDITION", 409, 6003),
        Reason.PERMIT_TERMS_REQUIRED: Answer("FAILED_PRECONDITION", 409, 6003),
        Reason.PERMIT_TERMS_CHANGED: Answer("FAILED_PRECONDITION", 409, 6003),
        Reason.TOO_LATE: Answer("FAILED_PRECONDITION", 409, 6003),
        Reason.PERMIT_DRY_RUN: Answer("FAILED_PRECONDITION", 409, 6003),
        Reason.CANCEL_REQUESTED: Answer("FAILED_PRECONDITION", 409, 6003),
        Reason.CANCEL_TOO_LATE: Answer("FAILED_PRECONDITION", 409, 6003),
        Reason.BUDGET_EXCEEDED: Answer("FAILED_PRECONDITION", 409, 6003),
        Reason.APPROVAL_REQUIRED: Answer("FAILED_PRECONDITION", 409, 6003),
        Reason.APPROVAL_EXPIRED: Answer("FAILED_PRECONDITION", 409, 6003),
        Reason.SECOND_PERSON_REQUIRED: Answer("FAILED_PRECONDITION", 409, 6003),
        Reason.LEASE_NOT_ACKNOWLEDGED: Answer("FAILED_PRECONDITION", 409, 6002),
        Reason.WORKER_NOT_FOUND: _plain("NOT_FOUND", 404),
        Reason.CALLBACK_NOT_FOUND: _plain("NOT_FOUND", 404),
        Reason.BUDGET_NOT_FOUND: _plain("NOT_FOUND", 404),
        Reason.PROPOSAL_NOT_FOUND: _plain("NOT_FOUND", 404),
        Reason.FEATURE_OFF: _plain("FAILED_PRECONDITION", 501),
        Reason.UNAUTHENTICATED: _plain("UNAUTHENTICATED", 401),
        Reason.PERMISSION_DENIED: _plain("PERMISSION_DENIED", 403),
        Reason.TOO_LARGE: _plain("RESOURCE_EXHAUSTED", 413),
        Reason.TOO_MANY: _plain("RESOURCE_EXHAUSTED", 429),
        Reason.STORE_UNAVAILABLE: _plain("UNAVAILABLE", 503),
        Reason.SHUTTING_DOWN: _plain("UNAVAILABLE", 503),
        Reason.INTERNAL: _plain("INTERNAL", 500),
    }
)


MAX_TEXT_BYTES: Final = 512
"""The longest text of an error. It travels in metadata, of which a gRPC client takes 8 KiB, percent-encoded in part."""


def refusal_of(error: Exception) -> Refusal:
    """Return what an exception of a service's method means to the caller. A fault's own text stays out of it."""
    if isinstance(error, RefusedError):
        return error.refusal
    if isinstance(error, StoreDamagedError):
        return Refusal(
            Reason.STORE_UNAVAILABLE, "the database is damaged and has to be restored; send it again after that"
        )
    if isinstance(error, StoreUnavailableError):
        return Refusal(Reason.STORE_UNAVAILABLE, "the database cannot do this now; send it again later")
    return Refusal(Reason.INTERNAL, "the gateway has a fault; its log says more")


def detail_of(refusal: Refusal) -> errors_pb2.ErrorDetail:
    """Write a refusal as the ErrorDetail that travels with gRPC and Connect errors."""
    retry_after = None
    if refusal.retry_after is not None:
        retry_after = duration_pb2.Duration()
        retry_after.FromTimedelta(refusal.retry_after)
    return errors_pb2.ErrorDetail(
        reason=errors_pb2.ErrorReason.Value(f"ERROR_REASON_{refusal.reason.name}"),
        code=ERRORS[refusal.reason].code,
        message=_short(refusal.message),
        violations=[
            errors_pb2.FieldViolation(field=violation.field, description=_short(violation.description))
            for violation in refusal.violations
        ],
        current_status=task_status_to(refusal.current_status),
        current_query_status=query_status_to(refusal.current_query_status),
        allowed=refusal.allowed,
        recorded_late=refusal.recorded_late,
        retry_after=retry_after,
        proposal_id=refusal.proposal_id,
    )


def _short(text: str) -> str:
    data = text.encode()
    return text if len(data) <= MAX_TEXT_BYTES else data[: MAX_TEXT_BYTES - 3].decode(errors="ignore") + "…"
