"""Budgets and their ledger, between the contract's messages and the domain's values.

What reads a request raises RefusedError INVALID_FIELD with the field's path and the limit.
"""

from collections.abc import Collection

from ordergateway.v1 import budgets_pb2

from gateway.api.codec.times import timestamp
from gateway.domain import fields
from gateway.domain.budgets import BudgetPeriod, BudgetScope, BudgetState, EntryState, LedgerEntry
from gateway.domain.refusals import invalid
from gateway.operations.budgets import BudgetOrder

_PERIOD = {period: budgets_pb2.BudgetPeriod.Value(f"BUDGET_PERIOD_{period.name}") for period in BudgetPeriod}
_PERIOD_BACK = {number: period for period, number in _PERIOD.items()}
_STATE = {state: budgets_pb2.BudgetEntryState.Value(f"BUDGET_ENTRY_STATE_{state.name}") for state in EntryState}


def budget_order(request: budgets_pb2.SetBudgetRequest, sites: Collection[str], reason: str) -> BudgetOrder:
    """Check what a budget is to be; `reason` is checked already."""
    budget_id = fields.budget_id("budget_id", request.budget_id)
    scope = _scope(request.scope, sites)
    period = _PERIOD_BACK.get(request.period)
    if period is None:
        raise invalid("period", "is required: day, week or month")
    if not request.HasField("limit_yen"):
        raise invalid("limit_yen", "is required, in yen")
    limit = fields.whole_number("limit_yen", request.limit_yen, low=0, high=fields.MAX_YEN)
    return BudgetOrder(budget_id, scope, period, limit, reason)


def _scope(wanted: budgets_pb2.BudgetScope, sites: Collection[str]) -> BudgetScope:
    account = fields.account("scope.account", wanted.account) if wanted.HasField("account") else None
    if wanted.identity:
        if wanted.site or account is not None:
            raise invalid("scope.identity", "must stand without a site and an account")
        return BudgetScope(identity=fields.token_name("scope.identity", wanted.identity))
    if wanted.site:
        return BudgetScope(fields.site("scope.site", wanted.site, sites), account)
    if account is not None:
        raise invalid("scope.account", "needs the site that it is on")
    return BudgetScope()


def budget_message(state: BudgetState) -> budgets_pb2.Budget:
    """Write a budget as it stands."""
    budget, scope = state.budget, state.budget.scope
    return budgets_pb2.Budget(
        budget_id=budget.budget_id,
        scope=budgets_pb2.BudgetScope(site=scope.site or "", account=scope.account, identity=scope.identity or ""),
        period=_PERIOD[budget.period],
        time_zone=budget.zone,
        limit_yen=budget.limit_yen,
        reserved_yen=state.use.reserved_yen,
        settled_yen=state.use.settled_yen,
        left_yen=state.left_yen,
        starts_at=timestamp(state.window.starts_at),
        renews_at=timestamp(state.window.ends_at),
        set_at=timestamp(budget.set_at),
        set_by=budget.set_by,
        removed_at=timestamp(budget.removed_at),
    )


def entry_message(entry: LedgerEntry) -> budgets_pb2.BudgetEntry:
    """Write an entry of the ledger."""
    return budgets_pb2.BudgetEntry(
        task_id=entry.task_id,
        lease_number=entry.lease_number,
        granted_at=timestamp(entry.granted_at),
        period_starts_at=timestamp(entry.starts_at),
        reserved_yen=entry.reserved_yen,
        state=_STATE[entry.state],
        counted_yen=entry.counted_yen,
        changed_at=timestamp(entry.changed_at),
    )
