"""Everything about one task on one page, and the tasks that wait with what may be decided about each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gateway.domain.callbacks import Callback
from gateway.domain.catalog import CatalogOrder
from gateway.domain.instant import Instant
from gateway.domain.leases import LeaseRecord
from gateway.domain.models import Actor, Policy
from gateway.domain.operations import Decision, HistoryEvent
from gateway.domain.paging import Page
from gateway.domain.refusals import Refusal
from gateway.operations.choices import Choice, choices
from gateway.operations.decisions import decision_about, list_decisions
from gateway.orders.submit import not_found
from gateway.store import callbacks, catalog, history, leases, order_numbers, tasks
from gateway.store.port import ABOVE_ALL_ROWS, ReadTransaction

MAX_EVENTS: Final = 200
"""Events that a dossier shows, the newest ones; the history has them all."""

MAX_CALLBACKS: Final = 50
MAX_LEASES: Final = 100
MAX_NUMBERS: Final = 10

Choices = Mapping[Choice, Refusal | None]


@dataclass(frozen=True, slots=True)
class Case:
    """A task to decide about, and what may be decided about it."""

    decision: Decision
    choices: Choices


@dataclass(frozen=True, slots=True)
class Dossier:
    """A task with all that is known of it. `numbers`: order numbers, and the tasks that were told the same one.

    `seen_at` is when it was read, as UTC text.
    """

    case: Case
    leases: tuple[LeaseRecord, ...]
    events: tuple[HistoryEvent, ...]
    callbacks: tuple[Callback, ...]
    numbers: Mapping[str, tuple[str, ...]]
    on_site: tuple[CatalogOrder, ...]
    seen_at: str


def list_cases(
    tx: ReadTransaction, now: Instant, policy: Policy, actor: Actor, after: tuple[int, int] | None, count: int
) -> Page[Case, tuple[int, int]]:
    """Return a page of the tasks that wait for a person, as `list_decisions` does, with what `actor` may decide."""
    page = list_decisions(tx, now, policy, after, count)
    return Page(tuple(_case(tx, now, policy, actor, decision) for decision in page.items), page.next_after)


def dossier(tx: ReadTransaction, now: Instant, policy: Policy, actor: Actor, task_id: str) -> Dossier | Refusal:
    """Return everything about a task, for `actor` to decide."""
    task = tasks.find(tx, task_id)
    if task is None:
        return not_found(task_id)
    numbers = list(order_numbers.of_task(tx, task_id))[:MAX_NUMBERS]
    shown = (catalog.find_order(tx, task.target, number) for number in numbers)
    return Dossier(
        case=_case(tx, now, policy, actor, decision_about(tx, now, policy, task)),
        leases=leases.of_task(tx, task_id)[-MAX_LEASES:],
        events=tuple(history.newest(tx, task_id, (), first=0, below=ABOVE_ALL_ROWS, count=MAX_EVENTS)),
        callbacks=tuple(callbacks.newest(tx, None, task_id, count=MAX_CALLBACKS)),
        numbers={number: tuple(order_numbers.other_tasks_with(tx, task, number)) for number in numbers},
        on_site=tuple(order for order in shown if order is not None),
        seen_at=now.utc,
    )


def _case(tx: ReadTransaction, now: Instant, policy: Policy, actor: Actor, decision: Decision) -> Case:
    return Case(decision, choices(tx, now, policy, decision.task.task, actor))
