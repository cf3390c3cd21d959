"""The methods of OperationsService about one decision for many tasks; operations.proto says what each does."""

from itertools import islice
from typing import Final

from ordergateway.v1 import operations_pb2

from gateway.api.answers import converted
from gateway.api.call import Call
from gateway.api.codec import bulk_decisions as codec
from gateway.api.codec.operations import reason
from gateway.api.codec.search import make_search_token, search_position
from gateway.domain import fields
from gateway.domain.models import Actor, Policy
from gateway.operations.bulk import DecidedTask, decide, list_outcomes
from gateway.store.port import Store

_A_TRANSACTION: Final = 20
"""So many tasks are decided in one transaction, so that others get their turn."""


class BulkDecisions:
    """Those methods, free of any transport."""

    def __init__(self, store: Store, policy: Policy) -> None:
        self._store = store
        self._policy = policy

    async def list_decision_outcomes(
        self, request: operations_pb2.ListDecisionOutcomesRequest, call: Call
    ) -> operations_pb2.ListDecisionOutcomesResponse:
        """Return one page of what a decision would come to."""
        kind = codec.decision_kind(request.decision)
        wanted = codec.some_tasks(request.filter, self._policy)
        after = search_position(request.page_token, wanted)
        size = fields.page_size("page_size", request.page_size)
        actor = Actor(call.identity.name)
        page = await self._store.read(list_outcomes, self._policy, kind, wanted, after, size, actor)
        return operations_pb2.ListDecisionOutcomesResponse(
            outcomes=await converted(lambda outcome: codec.outcome_message(kind, outcome), page.items),
            next_page_token=make_search_token(page.next_after, wanted),
        )

    async def decide_orders(
        self, request: operations_pb2.DecideOrdersRequest, call: Call
    ) -> operations_pb2.DecideOrdersResponse:
        """Take one decision about several tasks."""
        kind, why = codec.decision_kind(request.decision), reason(request)
        seen = iter(codec.seen_tasks(request.tasks))
        decided: list[DecidedTask] = []
        while few := list(islice(seen, _A_TRANSACTION)):
            decided += await self._store.write(decide, self._policy, kind, few, why, Actor(call.identity.name))
        return operations_pb2.DecideOrdersResponse(results=[codec.decided_message(each) for each in decided])
