"""From the contract's messages to checked requests, the same for gRPC and Connect.

Each function raises RefusedError INVALID_FIELD with the field's path and the limit.
"""

import base64
import binascii
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from google.protobuf import duration_pb2, timestamp_pb2
from ordergateway.v1 import order_leases_pb2, orders_pb2

from gateway.api.codec.messages import order_state_from, task_status_from
from gateway.domain import fields
from gateway.domain.instant import utc_text
from gateway.domain.models import (
    Command,
    Holder,
    LeaseRequest,
    NewReport,
    PermitRequest,
    Policy,
    Submission,
    Verdict,
    Verification,
    Via,
)
from gateway.domain.refusals import invalid
from gateway.domain.states import ENDED, OrderState, TaskStatus

_DEFAULT_WAIT: Final = timedelta(seconds=30)
_LONGEST_PAGE_TOKEN: Final = 16 * 1024
_MOST_SECONDS: Final = 315_576_000_000
_MOST_NANOS: Final = 999_999_999
_VERDICTS: Final = {
    order_leases_pb2.Verification.VERDICT_NOT_ORDERED: Verdict.NOT_ORDERED,
    order_leases_pb2.Verification.VERDICT_ORDERED: Verdict.ORDERED,
    order_leases_pb2.Verification.VERDICT_UNKNOWN: Verdict.UNKNOWN,
}


def submission(
    request: orders_pb2.SubmitOrderRequest, policy: Policy, new_task_id: Callable[[], str], traceparent: str
) -> Submission:
    """Check a request to file a task; `new_task_id` makes one where the upstream sent none."""
    return Submission(
        task_id=fields.new_key("task_id", request.task_id) if request.task_id else new_task_id(),
        site=fields.site("site", request.site, policy.sites),
        intent_json=fields.json_object("intent_json", request.intent_json, max_bytes=policy.max_intent_bytes),
        callback_url=fields.callback_url(
            "callback_url", request.callback_url if request.HasField("callback_url") else None
        ),
        traceparent=traceparent,
    )


def lease_request(request: order_leases_pb2.LeaseOrdersRequest, policy: Policy, identity: str) -> LeaseRequest:
    """Check who waits for an order."""
    return LeaseRequest(
        worker_id=fields.key("worker_id", request.worker_id),
        session_id=fields.opaque_id("session_id", request.session_id),
        journal_id=fields.opaque_id("journal_id", request.journal_id),
        sites=fields.sites("sites", request.sites, policy.sites),
        via=Via.GRPC,
        identity=identity,
    )


def reclaim_request(request: order_leases_pb2.ReclaimOrderRequest, policy: Policy, identity: str) -> LeaseRequest:
    """Check who reclaims a task; the site is the task's own."""
    return LeaseRequest(
        worker_id=fields.key("worker_id", request.worker_id),
        session_id=fields.opaque_id("session_id", request.session_id),
        journal_id=fields.opaque_id("journal_id", request.journal_id),
        sites=policy.sites,
        via=Via.GRPC,
        identity=identity,
    )


def command(requested_by: str, reason: str) -> Command:
    """Check who gave the command to reclaim, and why; either may be empty."""
    return Command(
        fields.text("requested_by", requested_by, limit=fields.MAX_REQUESTED_BY_CHARACTERS),
        fields.text("reason", reason, limit=fields.MAX_REASON_CHARACTERS),
    )


def wait_of(request: order_leases_pb2.LeaseOrdersRequest, policy: Policy) -> timedelta:
    """Check how long to wait."""
    given = timedelta_of("wait", request.wait) if request.HasField("wait") else None
    return fields.wait("wait", given, longest=policy.longest_wait, default=_DEFAULT_WAIT)


def holder(
    request: order_leases_pb2.RenewLeaseRequest
    | order_leases_pb2.ReportOrderRequest
    | order_leases_pb2.RequestSubmitPermitRequest,
    identity: str,
) -> Holder:
    """Check who claims to hold a lease; over gRPC the token is required."""
    return Holder(
        task_id=fields.key("task_id", request.task_id),
        worker_id=fields.key("worker_id", request.worker_id),
        token=fields.lease_token("lease_token", request.lease_token),
        identity=identity,
    )


def report(request: order_leases_pb2.ReportOrderRequest) -> NewReport:
    """Check what a worker tells of its task."""
    status = task_status("terminal_status", request.terminal_status)
    if status is not None and not request.terminal:
        raise invalid("terminal_status", "is given without terminal")
    if status is not None and status not in ENDED:
        raise invalid("terminal_status", "must be succeeded, failed or needs_human")
    deadline = datetime_of("pay_deadline", request.pay_deadline) if request.HasField("pay_deadline") else None
    if request.sequence < 1:
        raise invalid("sequence", "is required, a whole number of at least 1")
    return NewReport(
        state=_required_state(request.state),
        payable_yen=fields.integer(
            "payable_yen", request.payable_yen if request.HasField("payable_yen") else None, low=0, high=fields.MAX_YEN
        ),
        pay_deadline=None if deadline is None else utc_text(deadline),
        site_order_id=fields.site_order_id(
            "site_order_id", request.site_order_id if request.HasField("site_order_id") else None
        ),
        evidence_ref=fields.evidence_ref(
            "evidence_ref", request.evidence_ref if request.HasField("evidence_ref") else None
        ),
        detail=fields.text("detail", request.detail, limit=fields.MAX_DETAIL_CHARACTERS),
        error_code=fields.integer(
            "error_code",
            request.error_code if request.HasField("error_code") else None,
            low=0,
            high=fields.MAX_ERROR_CODE,
        ),
        sequence=request.sequence,
        terminal=request.terminal,
        terminal_status=status,
    )


def permit_request(request: order_leases_pb2.RequestSubmitPermitRequest, identity: str) -> PermitRequest:
    """Check a request for leave to click."""
    return PermitRequest(
        holder=holder(request, identity),
        journal_id=fields.opaque_id("journal_id", request.journal_id),
        attests_no_click_record=request.attests_no_click_record,
        verification=_verification(request.verification) if request.HasField("verification") else None,
    )


def task_status(field: str, number: int) -> TaskStatus | None:
    """Check a task status; UNSPECIFIED is None."""
    try:
        return task_status_from(number)
    except KeyError:
        raise invalid(field, f"is {number}, which is no status") from None


def page_token(text: str, filters: list[str]) -> int | None:
    """Read a page token made for the same filters; empty is the first page."""
    position = page_position(text, filters, 1)
    return None if position is None else position[0]


def page_position(text: str, filters: list[str], parts: int) -> tuple[int, ...] | None:
    """Read a page token whose position has several parts."""
    if not text:
        return None
    if len(text) > _LONGEST_PAGE_TOKEN:
        raise invalid("page_token", f"is longer than {_LONGEST_PAGE_TOKEN:,} characters")
    try:
        told = json.loads(base64.urlsafe_b64decode(text.encode("ascii")))
        position, made_for = (tuple(told[:parts]), told[parts:]) if isinstance(told, list) else ((), [])
    except (ValueError, binascii.Error, RecursionError, TypeError):
        position, made_for = (), []
    whole = all(isinstance(part, int) and not isinstance(part, bool) and 0 < part < 2**63 for part in position)
    if len(position) != parts or not whole or made_for != filters:
        raise invalid("page_token", "must be next_page_token of a page with the same filters; start without one")
    return position


def make_page_token(position: int | tuple[int, ...] | None, filters: list[str]) -> str:
    """Write a page token; no further page is the empty text."""
    if position is None:
        return ""
    parts = position if isinstance(position, tuple) else (position,)
    return base64.urlsafe_b64encode(json.dumps([*parts, *filters], separators=(",", ":")).encode()).decode("ascii")


def order_state(field: str, number: int) -> OrderState | None:
    """Check an order state; UNSPECIFIED is None."""
    try:
        return order_state_from(number)
    except KeyError:
        raise invalid(field, f"is {number}, which is no order state") from None


def _required_state(number: int) -> OrderState:
    state = order_state("state", number)
    if state is None:
        raise invalid("state", "is required")
    return state


def _verification(message: order_leases_pb2.Verification) -> Verification:
    if message.verdict not in _VERDICTS:
        raise invalid("verification.verdict", "is required: not_ordered, ordered or unknown")
    begun_at = timedelta_of("verification.begun_at_lease_age", message.begun_at_lease_age)
    if not message.HasField("begun_at_lease_age") or begun_at < timedelta(0):
        raise invalid("verification.begun_at_lease_age", "is required and must not be negative")
    return Verification(
        verdict=_VERDICTS[message.verdict],
        window_fully_covered=message.window_fully_covered,
        evidence_ref=fields.evidence_ref("verification.evidence_ref", message.evidence_ref or None),
        begun_at=begun_at,
    )


def timedelta_of(field: str, message: duration_pb2.Duration) -> timedelta:
    """Read a duration."""
    seconds, nanos = message.seconds, message.nanos
    if abs(seconds) > _MOST_SECONDS or abs(nanos) > _MOST_NANOS or seconds * nanos < 0:
        raise invalid(field, "is no valid duration")
    # Rounded down: the smallest negative one stays negative, and a look at the site is not made later than it was.
    return timedelta(seconds=seconds, microseconds=nanos // 1_000)


def datetime_of(field: str, message: timestamp_pb2.Timestamp) -> datetime:
    """Read a time of the years 1 to 9999."""
    try:
        return message.ToDatetime(UTC)
    except (ValueError, OverflowError):
        raise invalid(field, "must be a time between the years 1 and 9999") from None
