"""Budgets and their ledger. Triggers add the ledger up by period, and refuse what is beyond a budget."""

from gateway.domain.budgets import (
    Budget,
    BudgetPeriod,
    BudgetScope,
    BudgetState,
    BudgetUse,
    EntryState,
    LedgerEntry,
    Window,
    scope_of,
)
from gateway.domain.instant import Instant
from gateway.domain.models import Task
from gateway.store.port import ReadTransaction, Row, Transaction


def put(tx: Transaction, budget: Budget) -> None:
    """Let a budget stand, or change its limit. Its scope, period and time zone stay what they are."""
    tx.change_one(
        "budget_set",
        budget_id=budget.budget_id,
        scope=str(budget.scope),
        period=budget.period,
        zone=budget.zone,
        limit_yen=budget.limit_yen,
        at=budget.set_at,
        by=budget.set_by,
    )


def remove(tx: Transaction, now: Instant, budget_id: str) -> bool:
    """Let a budget stand no more; its ledger stays. False if it does not stand."""
    return tx.change("budget_remove", budget_id=budget_id, at=now.utc) > 0


def find(tx: ReadTransaction, budget_id: str) -> Budget | None:
    """Return a budget, also one that was removed, or None."""
    row = tx.one("budget_get", budget_id=budget_id)
    return None if row is None else _budget(row)


def standing(tx: ReadTransaction, now: Instant) -> tuple[BudgetState, ...]:
    """Return every budget that stands, by id, with what of it is used in its period of now."""
    states, windows = [], dict[tuple[BudgetPeriod, str], Window]()
    for row in tx.all("budgets_standing"):
        budget = _budget(row)
        # Mostly they share one zone, and reckoning a period takes longer than reading a row.
        window = windows.get((budget.period, budget.zone)) or budget.window(now)
        windows[budget.period, budget.zone] = window
        states.append(BudgetState(budget, window, _use(row) if row["starts_at"] == window.starts_at else BudgetUse()))
    return tuple(states)


def standing_count(tx: ReadTransaction) -> int:
    """Return how many budgets stand."""
    row = tx.one("budgets_standing_count")
    return 0 if row is None else int(row["count"])


def of_task(tx: ReadTransaction, task: Task) -> tuple[Budget, ...]:
    """Return the budgets that stand and that an order of this task counts for, by id."""
    rows = tx.all(
        "budgets_of_task",
        of_site=str(BudgetScope(site=task.site)),
        of_target=str(BudgetScope(site=task.site, account=task.account)),
        of_identity=None if task.submitted_by is None else str(BudgetScope(identity=task.submitted_by)),
    )
    return tuple(map(_budget, rows))


def use(tx: ReadTransaction, budget: Budget, window: Window) -> BudgetUse:
    """Return what of a budget is used in a period."""
    row = tx.one("budget_period_get", budget_id=budget.budget_id, starts_at=window.starts_at)
    return BudgetUse() if row is None else _use(row)


def reserve(tx: Transaction, now: Instant, budget: Budget, task: Task, yen: int) -> None:
    """Reserve yen for the lease that the task has now. Raises the database's violation where that is beyond it."""
    window = budget.window(now)
    tx.change_any("budget_period_open", budget_id=budget.budget_id, starts_at=window.starts_at)
    tx.insert(
        "budget_entry_insert",
        budget_id=budget.budget_id,
        starts_at=window.starts_at,
        task_id=task.task_id,
        lease_number=task.lease_count,
        yen=yen,
        at=now.utc,
    )


def count_anew(tx: Transaction, now: Instant, entry: LedgerEntry, state: EntryState, yen: int) -> None:
    """Let an entry count otherwise than it does. Raises RowCountError if it counts so already."""
    tx.change_one("budget_entry_count_anew", entry=entry.number, state=state, yen=yen, at=now.utc)


def entries_of_task(tx: ReadTransaction, task_id: str) -> list[LedgerEntry]:
    """Return what the permits of a task have reserved, the first one first."""
    return [_entry(row) for row in tx.all("budget_entries_of_task", task_id=task_id)]


def newest_entries(tx: ReadTransaction, budget_id: str, below: int, count: int) -> list[LedgerEntry]:
    """Return up to `count` entries of a budget with smaller numbers than `below`, newest first."""
    return [_entry(row) for row in tx.all("budget_entries_newest", budget_id=budget_id, below=below, count=count)]


def _budget(row: Row) -> Budget:
    return Budget(
        budget_id=row["budget_id"],
        scope=scope_of(row["scope"]),
        period=BudgetPeriod(row["period"]),
        zone=row["zone"],
        limit_yen=row["limit_yen"],
        set_at=row["set_at"],
        set_by=row["set_by"],
        removed_at=row["removed_at"],
    )


def _use(row: Row) -> BudgetUse:
    return BudgetUse(row["reserved_yen"], row["settled_yen"])


def _entry(row: Row) -> LedgerEntry:
    return LedgerEntry(
        number=row["entry"],
        budget_id=row["budget_id"],
        starts_at=row["starts_at"],
        task_id=row["task_id"],
        lease_number=row["lease_number"],
        granted_at=row["granted_at"],
        reserved_yen=row["reserved_yen"],
        state=EntryState(row["state"]),
        counted_yen=row["counted_yen"],
        changed_at=row["changed_at"],
    )
