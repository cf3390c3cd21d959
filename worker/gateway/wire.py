"""The worker's values in the contract's terms, and back."""

from datetime import UTC, datetime

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from ordergateway.v1 import order_leases_pb2 as pb
from ordergateway.v1 import orders_pb2

from worker.gateway.bounds import Bounds
from worker.journal.records import LeasedTask, OrderStatus, Report
from worker.orders.state import OrderState

_TO_WIRE = {state: orders_pb2.OrderState.Value(f"ORDER_STATE_{state.name}") for state in OrderState}
_FROM_WIRE = {number: state for state, number in _TO_WIRE.items()}
_STATUS_TO_WIRE = {
    OrderStatus.SUCCEEDED: orders_pb2.TASK_STATUS_SUCCEEDED,
    OrderStatus.FAILED: orders_pb2.TASK_STATUS_FAILED,
    OrderStatus.NEEDS_HUMAN: orders_pb2.TASK_STATUS_NEEDS_HUMAN,
}


def state_from_wire(number: "orders_pb2.OrderState.ValueType") -> OrderState | None:
    """Return the order state; None for unspecified and for one that this version does not know."""
    return _FROM_WIRE.get(number)


def from_timestamp(timestamp: Timestamp) -> datetime:
    """Aware, UTC."""
    return timestamp.ToDatetime(tzinfo=UTC)


def to_timestamp(moment: datetime) -> Timestamp:
    """From an aware moment."""
    timestamp = Timestamp()
    timestamp.FromDatetime(moment)
    return timestamp


def to_seconds(duration: Duration, bounds: Bounds) -> float:
    """Seconds of a duration that came from outside, within bounds."""
    return bounds.clamp(duration.seconds + duration.nanos / 1e9)


def to_duration(seconds: float) -> Duration:
    """Return a duration of that many seconds."""
    duration = Duration()
    duration.FromNanoseconds(round(seconds * 1e9))
    return duration


def leased_task(lease: pb.Lease) -> LeasedTask:
    """Return what the journal keeps of a lease."""
    return LeasedTask(
        task_id=lease.task_id,
        site=lease.site,
        account=lease.account,
        intent_json=lease.intent_json,
        task_created_at=from_timestamp(lease.task_created_at),
        lease_token=lease.lease_token,
        lease_count=lease.lease_count,
    )


def report_to_wire(report: Report, worker_id: str) -> pb.ReportOrderRequest:
    """Return a report of the outbox as the contract's request."""
    request = pb.ReportOrderRequest(
        task_id=report.task_id,
        worker_id=worker_id,
        lease_token=report.lease_token,
        sequence=report.sequence,
        state=_TO_WIRE[report.state],
        payable_yen=report.payable_yen,
        site_order_id=report.site_order_id,
        evidence_ref=report.evidence_ref,
        detail=report.detail,
        error_code=report.error_code,
    )
    if report.pay_deadline is not None:
        request.pay_deadline.CopyFrom(to_timestamp(report.pay_deadline))
    if report.terminal_status is not None:
        request.terminal = True
        request.terminal_status = _STATUS_TO_WIRE[report.terminal_status]
    return request
