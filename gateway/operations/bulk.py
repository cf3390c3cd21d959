"""One decision about many tasks (docs/specification.md#decisions): what it would come to for each, and taking it.

Each task is judged by itself, by the rules of its own decision. What was shown is what is decided about: a task that
has changed since is left as it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gateway.domain.instant import Instant
from gateway.domain.models import Actor, Policy, Task, TaskDetail
from gateway.domain.operations import Resolution
from gateway.domain.paging import Page
from gateway.domain.refusals import Reason, Refusal
from gateway.domain.search import Position, TaskSearch
from gateway.domain.states import TaskStatus
from gateway.domain.transitions import Event, allowed, check
from gateway.operations.actions import requeue, resolution_refused, resolve
from gateway.operations.second_person import resolving_needs_another
from gateway.orders.cancel import cancel, cancel_refused
from gateway.orders.history import record_refusal
from gateway.orders.search import search_tasks
from gateway.orders.submit import not_found
from gateway.store import tasks
from gateway.store.port import ReadTransaction, Transaction


class DecisionKind(StrEnum):
    """What a person can decide about many tasks at once."""

    REQUEUE = "requeue"
    CANCEL = "cancel"
    RESOLVE_FAILED = "resolve_failed"
    RESOLVE_SUCCEEDED = "resolve_succeeded"


BECOMES: Final = {
    DecisionKind.REQUEUE: TaskStatus.QUEUED,
    DecisionKind.CANCEL: TaskStatus.FAILED,
    DecisionKind.RESOLVE_FAILED: TaskStatus.FAILED,
    DecisionKind.RESOLVE_SUCCEEDED: TaskStatus.SUCCEEDED,
}
"""The status that a decision gives a task."""

_EVENTS: Final = {
    DecisionKind.REQUEUE: Event.REQUEUE,
    DecisionKind.CANCEL: Event.CANCEL,
    DecisionKind.RESOLVE_FAILED: Event.RESOLVE,
    DecisionKind.RESOLVE_SUCCEEDED: Event.RESOLVE,
}


@dataclass(frozen=True, slots=True)
class SeenTask:
    """A task as it was shown: its key, and when it had last changed, as UTC text."""

    task_id: str
    updated_at: str


@dataclass(frozen=True, slots=True)
class DecisionOutcome:
    """What a decision would come to for a task: `refusal` says why it would not be taken.

    `needs_second_person`: it would be proposed.
    """

    task: Task
    refusal: Refusal | None
    needs_second_person: bool = False


@dataclass(frozen=True, slots=True)
class DecidedTask:
    """What became of a task: its status afterwards (None: there is no such task), and why it was left as it was."""

    task_id: str
    status: TaskStatus | None
    refusal: Refusal | None


def list_outcomes(
    tx: ReadTransaction,
    now: Instant,
    policy: Policy,
    kind: DecisionKind,
    wanted: TaskSearch,
    after: Position | None,
    count: int,
    actor: Actor,
) -> Page[DecisionOutcome, Position]:
    """Return a page of the wanted tasks, as `search_tasks` does, with what the decision of `actor` would come to."""
    page = search_tasks(tx, now, wanted, after, count)
    return Page(tuple(_outcome(tx, now, policy, kind, found.task, actor) for found in page.items), page.next_after)


def decide(
    tx: Transaction,
    now: Instant,
    policy: Policy,
    kind: DecisionKind,
    seen: Sequence[SeenTask],
    reason: str,
    actor: Actor,
) -> list[DecidedTask]:
    """Take the decision about each of these tasks that stands as it was seen; in this transaction."""
    return [_decide(tx, now, policy, kind, each, reason, actor) for each in seen]


def _decide(
    tx: Transaction, now: Instant, policy: Policy, kind: DecisionKind, seen: SeenTask, reason: str, actor: Actor
) -> DecidedTask:
    task = tasks.find(tx, seen.task_id)
    if task is None:
        return DecidedTask(seen.task_id, None, not_found(seen.task_id))
    if task.updated_at != seen.updated_at:
        refusal = _changed(task)
        record_refusal(tx, now, task, f"{_EVENTS[kind]}_refused", actor, refusal)
        return DecidedTask(seen.task_id, task.status, refusal)
    done = _take(tx, now, policy, kind, seen.task_id, reason, actor)
    if isinstance(done, Refusal):
        return DecidedTask(seen.task_id, tasks.get(tx, seen.task_id).status, done)
    return DecidedTask(seen.task_id, done.task.status, None)


def _take(
    tx: Transaction, now: Instant, policy: Policy, kind: DecisionKind, task_id: str, reason: str, actor: Actor
) -> TaskDetail | Refusal:
    match kind:
        case DecisionKind.REQUEUE:
            return requeue(tx, now, task_id, reason, actor)
        case DecisionKind.CANCEL:
            return cancel(tx, now, task_id, reason, actor)
        case DecisionKind.RESOLVE_FAILED | DecisionKind.RESOLVE_SUCCEEDED:
            return resolve(tx, now, policy, _statement(kind, task_id, reason), actor)


def _outcome(
    tx: ReadTransaction, now: Instant, policy: Policy, kind: DecisionKind, task: Task, actor: Actor
) -> DecisionOutcome:
    refusal = _refused(tx, now, policy, kind, task)
    if refusal is not None or _EVENTS[kind] is not Event.RESOLVE:
        return DecisionOutcome(task, refusal, needs_second_person=False)
    outcome = _statement(kind, task.task_id, "").outcome
    return DecisionOutcome(task, None, resolving_needs_another(policy, task, outcome, actor))


def _refused(tx: ReadTransaction, now: Instant, policy: Policy, kind: DecisionKind, task: Task) -> Refusal | None:
    refusal = check(_EVENTS[kind], task)
    if refusal is not None or kind is DecisionKind.REQUEUE:
        return refusal
    if kind is DecisionKind.CANCEL:
        return cancel_refused(task)
    return resolution_refused(tx, now, policy, task, _statement(kind, task.task_id, ""))


def _statement(kind: DecisionKind, task_id: str, reason: str) -> Resolution:
    return Resolution(task_id, reason, BECOMES[kind], state=None, site_order_id=None)


def _changed(task: Task) -> Refusal:
    return Refusal(
        Reason.STATUS_CONFLICT,
        f"task {task.task_id} has changed since it was shown, at {task.updated_at}, and is {task.status}: look again",
        current_status=task.status,
        allowed=allowed(task),
    )
