"""What an operator does about budgets, and the alerts near their end (docs/specification.md#budgets)."""

from dataclasses import dataclass

from gateway.domain.budgets import MAX_BUDGETS, Budget, BudgetPeriod, BudgetScope, BudgetState, LedgerEntry
from gateway.domain.instant import Instant
from gateway.domain.models import Actor, AlertKind, Policy
from gateway.domain.paging import Page
from gateway.domain.refusals import Reason, Refusal
from gateway.orders.history import record_general
from gateway.store import alerts, budgets
from gateway.store.port import ABOVE_ALL_ROWS, ReadTransaction, Transaction


@dataclass(frozen=True, slots=True)
class BudgetOrder:
    """What an operator wants a budget to be."""

    budget_id: str
    scope: BudgetScope
    period: BudgetPeriod
    limit_yen: int
    reason: str


@dataclass(frozen=True, slots=True)
class BudgetDetail:
    """A budget, and a page of its ledger, newest first; `next_after` of the page: where the next one begins."""

    state: BudgetState
    entries: Page[LedgerEntry, int]


def set_budget(
    tx: Transaction, now: Instant, policy: Policy, wanted: BudgetOrder, actor: Actor
) -> BudgetState | Refusal:
    """Let a budget stand, or change the limit of one; the same again changes nothing.

    Its scope, period and time zone stay what they were when it was set first, also after it was removed.
    """
    known = budgets.find(tx, wanted.budget_id)
    if known is not None and (known.scope, known.period) != (wanted.scope, wanted.period):
        return Refusal(
            Reason.STATUS_CONFLICT,
            f"budget {known.budget_id} is of {known.scope.spoken} a {known.period}, and its ledger goes on as that: "
            "remove it, and set one of another name",
        )
    stands = known is not None and known.removed_at is None
    if known is not None and stands and known.limit_yen == wanted.limit_yen:
        return _state(tx, now, known)
    if not stands and budgets.standing_count(tx) >= MAX_BUDGETS:
        return Refusal(Reason.TOO_MANY, f"{MAX_BUDGETS:,} budgets stand, which is the limit; remove one first")
    zone = policy.budget_zone if known is None else known.zone
    budget = Budget(wanted.budget_id, wanted.scope, wanted.period, zone, wanted.limit_yen, now.utc, actor.identity)
    budgets.put(tx, budget)
    record_general(
        tx, now, "budget_set", actor, reason=wanted.reason, budget=budget.budget_id, scope=str(budget.scope),
        period=budget.period.value, zone=zone, limit_yen=budget.limit_yen,
        before_yen=None if known is None else known.limit_yen,
    )  # fmt: skip
    return _state(tx, now, budget)


def remove_budget(tx: Transaction, now: Instant, budget_id: str, reason: str, actor: Actor) -> Refusal | None:
    """Let a budget stand no more. What its ledger holds stays, and is followed."""
    if not budgets.remove(tx, now, budget_id):
        return _not_found(budget_id)
    record_general(tx, now, "budget_remove", actor, reason=reason, budget=budget_id)
    return None


def list_budgets(tx: ReadTransaction, now: Instant) -> tuple[BudgetState, ...]:
    """Return the budgets that stand, by id."""
    return budgets.standing(tx, now)


def show_budget(
    tx: ReadTransaction, now: Instant, budget_id: str, below: int | None, count: int
) -> BudgetDetail | Refusal:
    """Return a budget, also one that was removed, with up to `count` entries of smaller numbers than `below`."""
    budget = budgets.find(tx, budget_id)
    if budget is None:
        return _not_found(budget_id)
    found = budgets.newest_entries(tx, budget_id, ABOVE_ALL_ROWS if below is None else below, count + 1)
    shown = tuple(found[:count])
    return BudgetDetail(_state(tx, now, budget), Page(shown, shown[-1].number if len(found) > count else None))


def watch_budgets(tx: Transaction, now: Instant, policy: Policy) -> int:
    """Raise an alert for each budget that is nearly used, or used up, clear those of the others; return the changes."""
    due = {found[0]: found for state in budgets.standing(tx, now) if (found := _due(policy, state)) is not None}
    changes = 0
    for kind in (AlertKind.BUDGET_NEARLY_USED, AlertKind.BUDGET_USED_UP):
        subjects = {budget_id for budget_id, of_kind, _ in due.values() if of_kind is kind}
        standing = alerts.standing_subjects(tx, kind)
        for budget_id in sorted(standing - subjects):
            alerts.clear(tx, now, kind, budget_id)
        for budget_id in sorted(subjects - standing):
            alerts.raise_once(tx, now, kind, budget_id, due[budget_id][2])
        changes += len(standing ^ subjects)
    return changes


def _due(policy: Policy, state: BudgetState) -> tuple[str, AlertKind, str] | None:
    budget, used = state.budget, state.use.yen
    if not budget.limit_yen:
        return None  # whoever allows nothing needs not be told that nothing is left
    told = f"{used} of the {budget.limit_yen} yen of budget {budget.budget_id} ({budget.scope.spoken})"
    renews = f"it renews at {state.window.ends_at}"
    if used >= budget.limit_yen:
        why = f"{told} are used: no permit is granted under it; {renews}, or raise it"
        return budget.budget_id, AlertKind.BUDGET_USED_UP, why
    if used * 100 >= budget.limit_yen * policy.budget_alert_percent:
        return budget.budget_id, AlertKind.BUDGET_NEARLY_USED, f"{told} are used; {renews}"
    return None


def _state(tx: ReadTransaction, now: Instant, budget: Budget) -> BudgetState:
    window = budget.window(now)
    return BudgetState(budget, window, budgets.use(tx, budget, window))


def _not_found(budget_id: str) -> Refusal:
    return Refusal(Reason.BUDGET_NOT_FOUND, f"there is no budget {budget_id}")
