"""Approvals between the contract's messages and the domain's values.

What reads a request raises RefusedError INVALID_FIELD with the field's path and the limit.
"""

from collections.abc import Iterable
from datetime import timedelta

from ordergateway.v1 import operations_pb2, orders_pb2

from gateway.api.codec.times import timedelta_of, timestamp
from gateway.domain import fields
from gateway.domain.approvals import MAX_APPROVAL_VALID, Approval, ApprovalReason, Consent, Verdict
from gateway.domain.refusals import invalid

_REASON = {reason: orders_pb2.ApprovalReason.Value(f"APPROVAL_REASON_{reason.name}") for reason in ApprovalReason}
_VERDICT = {verdict: orders_pb2.Approval.Verdict.Value(f"VERDICT_{verdict.name}") for verdict in Verdict}


def consent(request: operations_pb2.ApproveOrderRequest) -> Consent:
    """Check what a person agrees to."""
    return Consent(
        task_id=fields.key("task_id", request.task_id),
        reason=fields.text("reason", request.reason, limit=fields.MAX_REASON_CHARACTERS, required=True),
        max_total_yen=fields.cap("max_total_yen", request.max_total_yen if request.HasField("max_total_yen") else None),
        valid_for=_valid_for(request) if request.HasField("valid_for") else None,
    )


def _valid_for(request: operations_pb2.ApproveOrderRequest) -> timedelta:
    given = timedelta_of("valid_for", request.valid_for)
    if not timedelta(0) < given <= MAX_APPROVAL_VALID:
        raise invalid("valid_for", f"must be more than 0 s and at most {MAX_APPROVAL_VALID.days} days")
    return given


def reasons_to(reasons: Iterable[ApprovalReason]) -> list[orders_pb2.ApprovalReason.ValueType]:
    """Write why a task needs an approval."""
    return [_REASON[reason] for reason in reasons]


def approval_message(approval: Approval | None) -> orders_pb2.Approval | None:
    """Write what was decided; None stays absent."""
    if approval is None:
        return None
    return orders_pb2.Approval(
        verdict=_VERDICT[approval.verdict],
        decided_by=approval.decided_by,
        decided_at=timestamp(approval.decided_at),
        reason=approval.reason,
        max_total_yen=approval.max_total_yen,
        valid_until=timestamp(approval.valid_until),
        used_by_lease=approval.used_by_lease or 0,
        ended_at=timestamp(approval.ended_at),
        intent_sha256=approval.intent_sha256,
    )
