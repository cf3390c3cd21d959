"""Leases of orders, and what their holders do, between the contract's messages and the domain's values.

What reads a request raises RefusedError INVALID_FIELD with the field's path and the limit.
"""

from datetime import timedelta
from typing import Final

from google.protobuf import duration_pb2
from ordergateway.v1 import order_leases_pb2

from gateway.api.codec.orders import order_state, order_state_to, task_status
from gateway.api.codec.terms import terms
from gateway.api.codec.times import datetime_of, duration, timedelta_of, timestamp
from gateway.domain import fields
from gateway.domain.instant import utc_text
from gateway.domain.labels import labels_of
from gateway.domain.leases import (
    Command,
    Holder,
    Lease,
    LeaseRequest,
    OtherOrders,
    Permit,
    PermitRequest,
    Renewed,
    Verdict,
    Verification,
    Via,
)
from gateway.domain.models import NewReport, Policy
from gateway.domain.refusals import invalid
from gateway.domain.states import ENDED, OrderState

_DEFAULT_WAIT: Final = timedelta(seconds=30)
_VERDICT = {
    Verdict.NOT_ORDERED: order_leases_pb2.Verification.VERDICT_NOT_ORDERED,
    Verdict.ORDERED: order_leases_pb2.Verification.VERDICT_ORDERED,
    Verdict.UNKNOWN: order_leases_pb2.Verification.VERDICT_UNKNOWN,
}
_VERDICT_BACK: Final = {number: verdict for verdict, number in _VERDICT.items()}


def lease_request(request: order_leases_pb2.LeaseOrdersRequest, policy: Policy, identity: str) -> LeaseRequest:
    """Check who waits for an order."""
    return LeaseRequest(
        worker_id=fields.key("worker_id", request.worker_id),
        session_id=fields.opaque_id("session_id", request.session_id),
        journal_id=fields.opaque_id("journal_id", request.journal_id),
        sites=fields.sites("sites", request.sites, policy.sites),
        via=Via.GRPC,
        identity=identity,
        accounts=fields.accounts("accounts", request.accounts),
        stream_number=_stream_number(request),
    )


def _stream_number(request: order_leases_pb2.LeaseOrdersRequest) -> int:
    if request.stream_number < 0:
        raise invalid("stream_number", "must be a whole number of at least 1, or 0 where streams are not counted")
    return request.stream_number


def wait_of(request: order_leases_pb2.LeaseOrdersRequest, policy: Policy) -> timedelta:
    """Check how long to wait."""
    given = timedelta_of("wait", request.wait) if request.HasField("wait") else None
    return fields.wait("wait", given, longest=policy.longest_wait, default=_DEFAULT_WAIT)


def reclaim_request(request: order_leases_pb2.ReclaimOrderRequest, policy: Policy, identity: str) -> LeaseRequest:
    """Check who reclaims a task, on which sites and with which accounts; a worker that names no site serves any."""
    return LeaseRequest(
        worker_id=fields.key("worker_id", request.worker_id),
        session_id=fields.opaque_id("session_id", request.session_id),
        journal_id=fields.opaque_id("journal_id", request.journal_id),
        sites=fields.sites("sites", request.sites, policy.sites) if request.sites else policy.sites,
        via=Via.GRPC,
        identity=identity,
        accounts=fields.accounts("accounts", request.accounts),
    )


def command(requested_by: str, reason: str) -> Command:
    """Check who gave the command to reclaim, and why; either may be empty."""
    return Command(
        fields.text("requested_by", requested_by, limit=fields.MAX_REQUESTED_BY_CHARACTERS),
        fields.text("reason", reason, limit=fields.MAX_REASON_CHARACTERS),
    )


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


def _required_state(number: int) -> OrderState:
    state = order_state("state", number)
    if state is None:
        raise invalid("state", "is required")
    return state


def permit_request(request: order_leases_pb2.RequestSubmitPermitRequest, identity: str) -> PermitRequest:
    """Check a request for leave to click."""
    return PermitRequest(
        holder=holder(request, identity),
        journal_id=fields.opaque_id("journal_id", request.journal_id),
        attests_no_click_record=request.attests_no_click_record,
        verification=_verification(request.verification) if request.HasField("verification") else None,
        terms=terms(request.terms) if request.HasField("terms") else None,
    )


def _verification(message: order_leases_pb2.Verification) -> Verification:
    if message.verdict not in _VERDICT_BACK:
        raise invalid("verification.verdict", "is required: not_ordered, ordered or unknown")
    begun_at = timedelta_of("verification.begun_at_lease_age", message.begun_at_lease_age)
    if not message.HasField("begun_at_lease_age") or begun_at < timedelta(0):
        raise invalid("verification.begun_at_lease_age", "is required and must not be negative")
    return Verification(
        verdict=_VERDICT_BACK[message.verdict],
        window_fully_covered=message.window_fully_covered,
        evidence_ref=fields.evidence_ref("verification.evidence_ref", message.evidence_ref or None),
        begun_at=begun_at,
    )


def verification_message(look: Verification) -> order_leases_pb2.Verification:
    """Write what a look at the site came to."""
    begun_at = duration_pb2.Duration()
    begun_at.FromTimedelta(look.begun_at)
    return order_leases_pb2.Verification(
        verdict=_VERDICT[look.verdict],
        window_fully_covered=look.window_fully_covered,
        evidence_ref=look.evidence_ref or "",
        begun_at_lease_age=begun_at,
    )


def lease_message(lease: Lease, policy: Policy) -> order_leases_pb2.Lease:
    """Write a lease, its token included."""
    return order_leases_pb2.Lease(
        task_id=lease.task_id,
        site=lease.site,
        intent_json=lease.intent_json,
        lease_expires_at=timestamp(lease.lease_expires_at),
        lease_count=lease.lease_count,
        known_state=order_state_to(lease.known_state),
        lease_token=lease.token,
        task_created_at=timestamp(lease.task_created_at),
        other_site_order_ids=lease.others.site_order_ids,
        other_site_order_ids_truncated=lease.others.incomplete,
        lease_ttl=duration(policy.lease_ttl),
        acknowledge_within=duration(policy.acknowledge_within),
        traceparent=lease.traceparent,
        account=lease.account,
        labels=labels_of(lease.labels_json),
        stop_before_submit=lease.stop_before_submit,
    )


def renewed_message(renewed: Renewed, policy: Policy) -> order_leases_pb2.RenewLeaseResponse:
    """Write the answer to a renewal."""
    return order_leases_pb2.RenewLeaseResponse(
        task_id=renewed.task_id,
        lease_expires_at=timestamp(renewed.lease_expires_at),
        lease_count=renewed.lease_count,
        lease_ttl=duration(policy.lease_ttl),
        lease_age=duration(renewed.lease_age),
        other_orders=None if renewed.others is None else _other_orders(renewed.others),
    )


def _other_orders(others: OtherOrders) -> order_leases_pb2.OtherOrders:
    return order_leases_pb2.OtherOrders(site_order_ids=others.site_order_ids, incomplete=others.incomplete)


def permit_message(permit: Permit) -> order_leases_pb2.RequestSubmitPermitResponse:
    """Write a permit."""
    return order_leases_pb2.RequestSubmitPermitResponse(
        task_id=permit.task_id,
        permitted_at=timestamp(permit.permitted_at),
        valid_for=duration(permit.valid_for),
    )
