"""The part of OperationsService that is about budgets; budgets.proto says what each method is for."""

from ordergateway.v1 import budgets_pb2

from gateway.api.answers import accepted
from gateway.api.call import Call
from gateway.api.codec.budgets import budget_message, budget_order, entry_message
from gateway.api.codec.operations import reason
from gateway.api.codec.page_tokens import make_page_token, page_token
from gateway.domain import fields
from gateway.domain.models import Actor, Policy
from gateway.operations.budgets import list_budgets, remove_budget, set_budget, show_budget
from gateway.store.port import Store


class BudgetOperations:
    """Set, look at and remove budgets."""

    def __init__(self, store: Store, policy: Policy) -> None:
        self._store = store
        self._policy = policy

    async def set_budget(self, request: budgets_pb2.SetBudgetRequest, call: Call) -> budgets_pb2.SetBudgetResponse:
        """Let a budget stand, or change its limit."""
        wanted = budget_order(request, self._policy.sites, reason(request))
        done = accepted(await self._store.write(set_budget, self._policy, wanted, Actor(call.identity.name)))
        return budgets_pb2.SetBudgetResponse(budget=budget_message(done))

    async def list_budgets(
        self, request: budgets_pb2.ListBudgetsRequest, call: Call
    ) -> budgets_pb2.ListBudgetsResponse:
        """Return the budgets that stand."""
        return budgets_pb2.ListBudgetsResponse(
            budgets=[budget_message(state) for state in await self._store.read(list_budgets)]
        )

    async def get_budget(self, request: budgets_pb2.GetBudgetRequest, call: Call) -> budgets_pb2.GetBudgetResponse:
        """Return a budget with a page of its ledger."""
        budget_id = fields.budget_id("budget_id", request.budget_id)
        below = page_token(request.page_token, [budget_id])
        size = fields.page_size("page_size", request.page_size)
        found = accepted(await self._store.read(show_budget, budget_id, below, size))
        return budgets_pb2.GetBudgetResponse(
            budget=budget_message(found.state),
            entries=[entry_message(entry) for entry in found.entries.items],
            next_page_token=make_page_token(found.entries.next_after, [budget_id]),
        )

    async def delete_budget(
        self, request: budgets_pb2.DeleteBudgetRequest, call: Call
    ) -> budgets_pb2.DeleteBudgetResponse:
        """Let a budget stand no more."""
        budget_id = fields.budget_id("budget_id", request.budget_id)
        refusal = await self._store.write(remove_budget, budget_id, reason(request), Actor(call.identity.name))
        accepted(refusal)
        return budgets_pb2.DeleteBudgetResponse()
