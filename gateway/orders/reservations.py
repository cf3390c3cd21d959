"""What permits reserve of budgets, and what becomes of it (docs/specification.md#budgets).

Reserved with the permit, in its transaction. Settled by what a worker tells of the order, released where there is none,
and left as it is while nobody knows.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

from gateway.domain.budgets import Budget, BudgetState, BudgetUse, EntryState, LedgerEntry
from gateway.domain.instant import Instant
from gateway.domain.models import Actor, Task
from gateway.domain.refusals import Reason
from gateway.domain.states import NOTHING_PLACED, OrderState, TaskStatus
from gateway.domain.terms import Terms
from gateway.domain.transitions import Event
from gateway.orders.history import record
from gateway.store import budgets, reports
from gateway.store.port import ReadTransaction, Transaction

_OF_WORKERS: Final = (Event.REPORT, Event.FINISH, Event.REPORT_AFTER_END)
_PAID: Final = (OrderState.PAID, OrderState.SHIPPED, OrderState.DELIVERED)
"""A worker that tells no amount with them has paid what the permit was for: it pays no other."""
_CALLED: Final = {
    EntryState.RESERVED: "budget_reserve",
    EntryState.SETTLED: "budget_settle",
    EntryState.RELEASED: "budget_release",
}
"""Kinds of event, by what an entry counts as from then on."""


def exceeded(
    tx: ReadTransaction, now: Instant, task: Task, terms: Terms | None
) -> tuple[Reason, str, timedelta | None] | None:
    """Return why a permit for these terms is beyond a budget, and when to ask again; None if all budgets have room.

    Of several budgets that have none, the one that has none for the longest time is named.
    """
    under = budgets.of_task(tx, task)
    if not under:
        return None
    if terms is None:
        why = "the worker, older than contract version 1.1, does not show what it would pay"
        return Reason.PERMIT_TERMS_REQUIRED, f"budget {under[0].budget_id} counts it, and {why}: update it", None
    replaced = _standing(tx, task)
    states = [_without(tx, now, budget, replaced) for budget in under]
    short = [state for state in states if not state.has_room_for(terms.payable_yen)]
    if not short:
        return None
    worst = max(short, key=lambda state: (terms.payable_yen > state.budget.limit_yen, state.window.ends_at))
    return Reason.BUDGET_EXCEEDED, *_told(now, worst, terms.payable_yen)


def reserve(tx: Transaction, now: Instant, task: Task, terms: Terms | None) -> dict[str, int]:
    """Reserve the amount of the permit that the task is given now; return what is left of each budget, by its id.

    What an earlier permit of the task had reserved is released: the rules of the permit know that it clicked nothing.
    """
    if terms is None:
        return {}
    for entry in _standing(tx, task):
        budgets.count_anew(tx, now, entry, EntryState.RELEASED, 0)
    left = {}
    for budget in budgets.of_task(tx, task):
        budgets.reserve(tx, now, budget, task, terms.payable_yen)
        left[budget.budget_id] = _state(tx, now, budget).left_yen
    return left


def follow(tx: Transaction, now: Instant, event: Event, task: Task, actor: Actor, said: Mapping[str, Any]) -> None:
    """Let the ledger follow what happened to a task; `said` is what its history keeps of it."""
    if task.submit_permitted_at is None:
        return
    if event is Event.RESOLVE:
        if task.status is TaskStatus.FAILED:
            _count(tx, now, task, actor, EntryState.RELEASED, 0)
        else:
            _count(tx, now, task, actor, EntryState.SETTLED, reports.amount_of_order(tx, task.task_id))
    elif event in _OF_WORKERS and _tells_of_an_order(said):
        _follow_report(tx, now, task, actor, said)


def _follow_report(tx: Transaction, now: Instant, task: Task, actor: Actor, said: Mapping[str, Any]) -> None:
    paid = reports.amount_of_order(tx, task.task_id)
    if task.latest_state is OrderState.CANCELLED:
        _count(tx, now, task, actor, EntryState.RELEASED, 0)
    elif paid is not None or said.get("state") in _PAID:
        _count(tx, now, task, actor, EntryState.SETTLED, paid)
    else:
        reserve_again(tx, now, task, actor)


def reserve_again(tx: Transaction, now: Instant, task: Task, actor: Actor) -> None:
    """Let what was released count again, since word has come that there is an order after all."""
    released = [entry for entry in _latest(tx, task) if entry.state is EntryState.RELEASED]
    _write(tx, now, task, actor, EntryState.RESERVED, [(entry, entry.reserved_yen) for entry in released])


def _count(tx: Transaction, now: Instant, task: Task, actor: Actor, state: EntryState, yen: int | None) -> None:
    """Let the entries of a task's last permit count so; `yen` None: what each has reserved."""
    counted = [(entry, entry.reserved_yen if yen is None else yen) for entry in _latest(tx, task)]
    changed = [(entry, amount) for entry, amount in counted if (entry.state, entry.counted_yen) != (state, amount)]
    _write(tx, now, task, actor, state, changed)


def _write(
    tx: Transaction,
    now: Instant,
    task: Task,
    actor: Actor,
    state: EntryState,
    counted: Iterable[tuple[LedgerEntry, int]],
) -> None:
    told = {}
    for entry, yen in counted:
        budgets.count_anew(tx, now, entry, state, yen)
        told[entry.budget_id] = yen
    if told:
        record(tx, now, task, _CALLED[state], actor, budgets=told)


def _latest(tx: ReadTransaction, task: Task) -> list[LedgerEntry]:
    """Return the entries of the last permit that reserved anything: those before it were replaced."""
    entries = budgets.entries_of_task(tx, task.task_id)
    return [entry for entry in entries if entry.lease_number == entries[-1].lease_number]


def _standing(tx: ReadTransaction, task: Task) -> list[LedgerEntry]:
    return [entry for entry in budgets.entries_of_task(tx, task.task_id) if entry.state is not EntryState.RELEASED]


def _state(tx: ReadTransaction, now: Instant, budget: Budget) -> BudgetState:
    window = budget.window(now)
    return BudgetState(budget, window, budgets.use(tx, budget, window))


def _without(tx: ReadTransaction, now: Instant, budget: Budget, entries: Iterable[LedgerEntry]) -> BudgetState:
    """Return how a budget would stand if these entries were released."""
    state = _state(tx, now, budget)
    freed = sum(
        entry.counted_yen
        for entry in entries
        if (entry.budget_id, entry.starts_at) == (budget.budget_id, state.window.starts_at)
    )
    return BudgetState(budget, state.window, BudgetUse(state.use.yen - freed))


def _told(now: Instant, state: BudgetState, payable_yen: int) -> tuple[str, timedelta | None]:
    budget = state.budget
    more = f"{payable_yen} yen to pay are more than"
    end = "end it as needs_human, code 5005"
    if payable_yen > budget.limit_yen:
        whole = f"the whole budget {budget.budget_id} of {budget.limit_yen} yen a {budget.period}"
        return f"{more} {whole} ({budget.scope.spoken}); {end}", None
    renews = f"{budget.limit_yen} yen a {budget.period}), which renews at {state.window.ends_at}"
    if state.use.yen > budget.limit_yen:
        over = f"more than it holds is used of budget {budget.budget_id} ({budget.scope.spoken}, {renews}"
        return f"{over}; {end}", state.window.renews_in(now)
    left = f"the {state.left_yen} yen left of budget {budget.budget_id} ({budget.scope.spoken}"
    return f"{more} {left}, {renews}; {end}", state.window.renews_in(now)


def _tells_of_an_order(said: Mapping[str, Any]) -> bool:
    return "site_order_id" in said or said.get("state") not in NOTHING_PLACED
