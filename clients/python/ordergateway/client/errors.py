"""What a call may raise: refusals by their reason, and the lack of an answer."""

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Final

import grpc

from ordergateway.v1 import errors_pb2 as pb
from ordergateway.v1 import orders_pb2


class GatewayError(Exception):
    """A call has failed. `code` is gRPC's status."""

    def __init__(self, message: str, code: grpc.StatusCode) -> None:
        super().__init__(message)
        self.code = code


class UnansweredError(GatewayError):
    """No answer of the gateway was read, so nothing is known of the call: it may have been carried out.

    The same call under the same task_id may be made again later. `words`: what gRPC says of the connection.
    """

    def __init__(self, message: str, code: grpc.StatusCode, words: str = "") -> None:
        super().__init__(message, code)
        self.words = words


class DeadlineExceededError(UnansweredError):
    """The time that the caller gave has passed. What went wrong last is the exception's cause."""


class RefusedError(GatewayError):
    """The gateway has refused the call. Its attributes are those of ErrorDetail in ordergateway/v1/errors.proto.

    Branch on the class or on `reason`, never on the text.
    """

    def __init__(self, detail: pb.ErrorDetail, code: grpc.StatusCode) -> None:
        super().__init__(detail.message, code)
        self.detail = detail

    @property
    def reason(self) -> "pb.ErrorReason.ValueType":
        """Which rule refused, for example `errors_pb2.ERROR_REASON_TASK_NOT_FOUND`."""
        return self.detail.reason

    @property
    def reason_name(self) -> str:
        """The reason in words for people, for example `TASK_NOT_FOUND`; its number where this contract has no name."""
        if self.reason not in pb.ErrorReason.values():
            return str(self.reason)
        return pb.ErrorReason.Name(self.reason).removeprefix("ERROR_REASON_")

    @property
    def violations(self) -> dict[str, str]:
        """The refused fields by their paths, with what is wrong; only of InvalidFieldError."""
        return {violation.field: violation.description for violation in self.detail.violations}

    @property
    def current_status(self) -> "orders_pb2.TaskStatus.ValueType":
        """Where the task stands now; unspecified where no task is concerned."""
        return self.detail.current_status

    @property
    def allowed(self) -> tuple[str, ...]:
        """The operations that the task's status allows now, for example `("withdraw",)`."""
        return tuple(self.detail.allowed)

    @property
    def retry_after(self) -> timedelta | None:
        """How long to wait before the call is made again; None where waiting does not help."""
        return self.detail.retry_after.ToTimedelta() if self.detail.HasField("retry_after") else None


class InvalidFieldError(RefusedError):
    """A field is missing, malformed or beyond its limit: see `violations`. The call fails again as it is."""


class NotFoundError(RefusedError):
    """Nothing has this identifier."""


class StatusConflictError(RefusedError):
    """Where the task stands, this is not possible: see `current_status` and `allowed`."""


class CancelTooLateError(RefusedError):
    """The order may be placed already. Watch the task to see how it ends."""


class UnauthenticatedError(RefusedError):
    """The token is missing or not valid."""


class PermissionDeniedError(RefusedError):
    """The token's role may not do this."""


class TooLargeError(RefusedError):
    """The request is larger than any may be. The call fails again as it is."""


class TooManyError(RefusedError):
    """Too many calls at once, or more accounts than the token may name. Without `retry_after` waiting does not help."""


_BY_REASON: Final[Mapping[int, type[RefusedError]]] = MappingProxyType(
    {
        pb.ERROR_REASON_INVALID_FIELD: InvalidFieldError,
        pb.ERROR_REASON_TASK_NOT_FOUND: NotFoundError,
        pb.ERROR_REASON_QUERY_NOT_FOUND: NotFoundError,
        pb.ERROR_REASON_WORKER_NOT_FOUND: NotFoundError,
        pb.ERROR_REASON_CALLBACK_NOT_FOUND: NotFoundError,
        pb.ERROR_REASON_BUDGET_NOT_FOUND: NotFoundError,
        pb.ERROR_REASON_PROPOSAL_NOT_FOUND: NotFoundError,
        pb.ERROR_REASON_STATUS_CONFLICT: StatusConflictError,
        pb.ERROR_REASON_CANCEL_TOO_LATE: CancelTooLateError,
        pb.ERROR_REASON_UNAUTHENTICATED: UnauthenticatedError,
        pb.ERROR_REASON_PERMISSION_DENIED: PermissionDeniedError,
        pb.ERROR_REASON_TOO_LARGE: TooLargeError,
        pb.ERROR_REASON_TOO_MANY: TooManyError,
    }
)


def refused(detail: pb.ErrorDetail, code: grpc.StatusCode) -> RefusedError:
    """Make the exception of a refusal: RefusedError itself where its reason has no class of its own."""
    return _BY_REASON.get(detail.reason, RefusedError)(detail, code)
