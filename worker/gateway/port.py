"""What the worker asks of the gateway, apart from how the question travels.

`gateway_client` asks over gRPC; a simulation passes a transport of its own with the same methods.
"""

from collections.abc import Sequence
from typing import Protocol

from ordergateway.v1 import errors_pb2, orders_pb2
from ordergateway.v1 import order_leases_pb2 as pb

BAD_CREDENTIALS = (
    "the gateway does not accept the token, check RAKUTEN_WORKER_TOKEN (or, where that is not set, RAKUTEN_API_TOKEN)"
)
"""What the log says of a refusal for the token's sake."""


class GatewayError(Exception):
    """A call brought no answer of the expected kind."""


class Unreachable(GatewayError):  # noqa: N818 -- a state of affairs, not a fault of the caller
    """No answer of the gateway: it is away, too slow or broken, or something else answered in its place.

    The call may have had its effect; it may be repeated.
    """


class InvalidAnswer(Unreachable):
    """An answer came that the contract does not allow, so it is not acted on; the call may be repeated as a lost one.

    The message is one line that names the call and the field.
    """

    def __init__(self, method: str, why: str) -> None:
        super().__init__(f"the gateway's answer to {method} cannot be used: {why}")


class Refused(GatewayError):  # noqa: N818 -- an answer, not a fault
    """The gateway itself refused the call, for good or for now; nothing changed but its history.

    `reason` is the one that it named, `fields` those that it found fault with. `retry_after` in seconds, None where
    waiting does not help. `is_credentials`: the token is missing, wrong or of another role; this alone may be the word
    of something on the way.
    """

    def __init__(
        self,
        message: str,
        *,
        reason: "errors_pb2.ErrorReason.ValueType",
        status: "orders_pb2.TaskStatus.ValueType" = orders_pb2.TASK_STATUS_UNSPECIFIED,
        recorded_late: bool = False,
        retry_after: float | None = None,
        fields: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.status = status
        self.recorded_late = recorded_late
        self.retry_after = retry_after
        self.fields = fields

    @property
    def reason_name(self) -> str:
        """The reason in words for a log, for example `LEASE_INVALID`."""
        try:
            return errors_pb2.ErrorReason.Name(self.reason).removeprefix("ERROR_REASON_")
        except ValueError:
            return str(self.reason)

    @property
    def is_credentials(self) -> bool:
        """True if another token, not another call, is what helps."""
        return self.reason in (
            errors_pb2.ERROR_REASON_UNAUTHENTICATED,
            errors_pb2.ERROR_REASON_PERMISSION_DENIED,
        )


class OrderLeases(Protocol):
    """The contract's OrderLeaseService for one worker, session and journal. All of it raises Unreachable and Refused.

    A repeat of any call is safe by contract.
    """

    async def lease(self, sites: Sequence[str], wait: float) -> pb.Lease | None:
        """Wait up to that many seconds for an order; None if there was none."""
        ...

    async def renew(
        self, task_id: str, lease_token: str, *, seconds: float, with_other_orders: bool = False
    ) -> pb.RenewLeaseResponse:
        """Acknowledge or extend a lease; give up after that many seconds.

        `with_other_orders`: the answer tells of the orders of other tasks, too.
        """
        ...

    async def report(self, request: pb.ReportOrderRequest) -> pb.ReportOrderResponse:
        """Tell what happened."""
        ...

    async def request_permit(
        self,
        task_id: str,
        lease_token: str,
        *,
        attests_no_click_record: bool,
        verification: pb.Verification | None,
        terms: orders_pb2.Terms | None,
    ) -> pb.RequestSubmitPermitResponse:
        """Ask for leave to make the one irreversible click, on the terms of the confirmation page."""
        ...

    async def reclaim(self, task_id: str, sites: Sequence[str], *, requested_by: str, reason: str) -> pb.Lease:
        """Take a stale task again, on that person's command."""
        ...

    async def probe(self) -> None:
        """Return if the gateway answers and takes the token. Nothing changes there."""
        ...
