"""Variants that lack one of the rules of budgets."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import gateway.orders.permit
from gateway.domain.budgets import Budget, BudgetUse, EntryState
from gateway.domain.instant import parse_utc
from gateway.domain.transitions import Event
from gateway.orders import reservations
from gateway.store import budgets, tasks
from gateway.store.named_sql import statements
from tests.simulation.layout import World
from tests.simulation.mutants.registry import mutant_in, replaced, without

conditions = mutant_in(World.CONDITIONS)
WITHIN = "TRIGGER budget_entries_within_the_budget"
IN_THE_LEDGER = "TRIGGER leases_permit_in_the_ledger"
SNAPSHOT_SECONDS = 30


@conditions
def budget_ignored(stack: ExitStack) -> None:
    """A permit is granted whatever is left, and no trigger of the database prevents it."""
    replaced(stack, gateway.orders.permit, "exceeded", lambda *_about: None)
    without(stack, WITHIN)


@conditions
def nothing_reserved(stack: ExitStack) -> None:
    """A permit that a budget has room for reserves nothing, and no trigger of the database prevents it."""
    replaced(stack, gateway.orders.permit, "reserve", lambda *_about: {})
    without(stack, IN_THE_LEDGER)


@conditions
def budget_read_outside_the_transaction(stack: ExitStack) -> None:
    """What is left is that of a snapshot of before, and no trigger of the database prevents it."""
    use = budgets.use
    seen: dict[tuple[str, str], tuple[Any, BudgetUse]] = {}

    def mutated(now: Any) -> Callable[..., BudgetUse]:
        def read(tx: Any, budget: Budget, window: Any) -> BudgetUse:
            key = (budget.budget_id, window.starts_at)
            at, found = seen.get(key, (None, BudgetUse()))
            if at is None or abs((parse_utc(now.utc) - at).total_seconds()) > SNAPSHOT_SECONDS:
                at, found = parse_utc(now.utc), use(tx, budget, window)
                seen[key] = (at, found)
            return found

        return read

    exceeded = gateway.orders.permit.exceeded

    def judged(tx: Any, now: Any, *about: Any) -> Any:
        with ExitStack() as inner:
            replaced(inner, budgets, "use", mutated(now))
            return exceeded(tx, now, *about)

    replaced(stack, gateway.orders.permit, "exceeded", judged)
    without(stack, WITHIN)


@conditions
def reservation_not_released(stack: ExitStack) -> None:
    """What a person resolves to failed, or the site has cancelled, stays reserved."""
    count = reservations._count

    def mutated(tx: Any, now: Any, task: Any, actor: Any, state: EntryState, yen: int | None) -> None:
        if state is not EntryState.RELEASED:
            count(tx, now, task, actor, state, yen)

    replaced(stack, reservations, "_count", mutated)


@conditions
def reservation_released_twice(stack: ExitStack) -> None:
    """What is released is taken off the sum of its period twice."""
    again = (
        "UPDATE budget_periods SET reserved_yen = max(0, reserved_yen - :reserved), "
        "settled_yen = max(0, settled_yen - :settled) WHERE budget_id = :budget_id AND starts_at = :starts_at"
    )
    statements()["mutant_release_again"] = again
    stack.callback(statements().pop, "mutant_release_again")
    count_anew = budgets.count_anew

    def mutated(tx: Any, now: Any, entry: Any, state: EntryState, yen: int) -> None:
        count_anew(tx, now, entry, state, yen)
        if state is EntryState.RELEASED:
            settled = entry.state is EntryState.SETTLED
            tx.change_any(
                "mutant_release_again", budget_id=entry.budget_id, starts_at=entry.starts_at,
                reserved=0 if settled else entry.counted_yen, settled=entry.counted_yen if settled else 0,
            )  # fmt: skip

    replaced(stack, budgets, "count_anew", mutated)


@conditions
def reservation_released_in_doubt(stack: ExitStack) -> None:
    """An end as needs_human releases what may have been ordered."""
    follow = reservations.follow

    def mutated(tx: Any, now: Any, event: Event, task: Any, actor: Any, said: Any) -> None:
        follow(tx, now, event, task, actor, said)
        if event in (Event.FINISH, Event.EXPIRE) and task.submit_permitted_at and not task.order_known:
            reservations._count(tx, now, task, actor, EntryState.RELEASED, 0)

    replaced(stack, reservations, "follow", mutated)


@conditions
def second_permit_counted_twice(stack: ExitStack) -> None:
    """A second permit of a task does not take the place of the first."""
    replaced(stack, reservations, "_standing", lambda _tx, _task: [])


@conditions
def budget_day_begins_in_utc(stack: ExitStack) -> None:
    """A day, a week and a month begin at midnight UTC, whatever the zone of the budget."""
    window = Budget.window
    replaced(stack, Budget, "window", lambda budget, now: window(replace(budget, zone="UTC"), now))


@conditions
def settled_with_what_the_items_cost(stack: ExitStack) -> None:
    """A report settles what the items cost, without the postage."""
    count_anew = budgets.count_anew

    def mutated(tx: Any, now: Any, entry: Any, state: EntryState, yen: int) -> None:
        terms = tasks.get(tx, entry.task_id).terms
        if state is EntryState.SETTLED and terms is not None:
            yen = sum(item.quantity * (item.unit_price_yen or 0) for item in terms.items)
        if (entry.state, entry.counted_yen) != (state, yen):
            count_anew(tx, now, entry, state, yen)

    replaced(stack, budgets, "count_anew", mutated)
