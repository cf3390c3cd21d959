"""The part of OperationsService about second persons; operations.proto says what each method does."""

from ordergateway.v1 import operations_pb2

from gateway.api.answers import accepted
from gateway.api.call import Call
from gateway.api.codec.operations import reason
from gateway.api.codec.page_tokens import make_page_token, page_token
from gateway.api.codec.proposals import proposal_id, proposal_message
from gateway.domain import fields
from gateway.domain.models import Actor, Policy
from gateway.operations.proposals import confirm, list_proposals, withdraw_proposal
from gateway.store.port import Store


class ProposalOperations:
    """See what was proposed, confirm it as somebody else, or withdraw it."""

    _store: Store
    _policy: Policy

    async def list_proposals(
        self, request: operations_pb2.ListProposalsRequest, call: Call
    ) -> operations_pb2.ListProposalsResponse:
        """Return one page of proposals."""
        filters = ["all" if request.include_closed else "waiting"]
        below = page_token(request.page_token, filters)
        size = fields.page_size("page_size", request.page_size)
        page = await self._store.read(list_proposals, request.include_closed, below, size)
        return operations_pb2.ListProposalsResponse(
            proposals=[proposal_message(proposal) for proposal in page.items],
            next_page_token=make_page_token(page.next_after, filters),
        )

    async def confirm_proposal(
        self, request: operations_pb2.ConfirmProposalRequest, call: Call
    ) -> operations_pb2.ConfirmProposalResponse:
        """Take the decision that somebody else has proposed."""
        number, why, actor = proposal_id(request), reason(request), Actor(call.identity.name)
        done = accepted(await self._store.write(confirm, self._policy, number, why, actor))
        return operations_pb2.ConfirmProposalResponse(
            proposal=proposal_message(done.proposal), already_confirmed=done.repeated
        )

    async def withdraw_proposal(
        self, request: operations_pb2.WithdrawProposalRequest, call: Call
    ) -> operations_pb2.WithdrawProposalResponse:
        """Let a proposal wait no more."""
        number, why, actor = proposal_id(request), reason(request), Actor(call.identity.name)
        done = accepted(await self._store.write(withdraw_proposal, number, why, actor))
        return operations_pb2.WithdrawProposalResponse(proposal=proposal_message(done))
