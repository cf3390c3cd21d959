"""Proposals between the contract's messages and the domain's values."""

from typing import Protocol

from ordergateway.v1 import operations_pb2

from gateway.api.codec.orders import order_state_to, task_status_to
from gateway.api.codec.times import duration, timestamp
from gateway.domain.approvals import Consent
from gateway.domain.operations import Proposal, ProposalStatus, Resolution, Resumption
from gateway.domain.proposals import in_words
from gateway.domain.refusals import invalid

_STATUS = {status: operations_pb2.ProposalStatus.Value(f"PROPOSAL_STATUS_{status.name}") for status in ProposalStatus}


class _Numbered(Protocol):
    @property
    def proposal_id(self) -> int: ...


def proposal_id(request: _Numbered) -> int:
    """Check which proposal is meant. Raises RefusedError INVALID_FIELD."""
    if request.proposal_id < 1:
        raise invalid("proposal_id", "is required: the number of a proposal")
    return request.proposal_id


def proposal_message(proposal: Proposal) -> operations_pb2.Proposal:
    """Write a proposal."""
    message = operations_pb2.Proposal(
        proposal_id=proposal.proposal_id,
        status=_STATUS[proposal.status],
        summary=in_words(proposal.decision),
        proposed_by=proposal.proposed_by,
        proposed_at=timestamp(proposal.proposed_at),
        valid_until=timestamp(proposal.valid_until),
        closed_by=proposal.closed_by or "",
        closed_at=timestamp(proposal.closed_at),
        closed_reason=proposal.closed_reason,
    )
    match proposal.decision:
        case Resolution() as told:
            message.resolve.CopyFrom(
                operations_pb2.ResolveOrderRequest(
                    task_id=told.task_id,
                    reason=told.reason,
                    outcome=task_status_to(told.outcome),
                    state=order_state_to(told.state),
                    site_order_id=told.site_order_id,
                    although_impossible=told.although_impossible,
                )
            )
        case Consent() as told:
            message.approve.CopyFrom(
                operations_pb2.ApproveOrderRequest(
                    task_id=told.task_id,
                    reason=told.reason,
                    max_total_yen=told.max_total_yen,
                    valid_for=None if told.valid_for is None else duration(told.valid_for),
                )
            )
        case Resumption(reason):
            message.resume.CopyFrom(operations_pb2.ResumeDispatchRequest(reason=reason))
    return message
