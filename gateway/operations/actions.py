"""What a person decides about an order (docs/specification.md#decisions): requeue, withdraw, resolve, expire now.

Each asks the transition table first. What it refuses goes into the history too, with who asked.
"""

from datetime import timedelta

from gateway.domain.instant import Instant
from gateway.domain.leases import LeaseRecord
from gateway.domain.models import Actor, Policy, Task, TaskDetail
from gateway.domain.operations import Resolution
from gateway.domain.refusals import Reason, Refusal
from gateway.domain.states import NOTHING_PLACED, Placement, TaskStatus
from gateway.domain.transitions import Event, allowed, allows, check
from gateway.operations.second_person import propose, resolving_needs_another
from gateway.operations.statement import (
    another_number,
    earlier_statement,
    mirror_statement,
    needs_a_number,
    says_nothing_new,
    state_of,
)
from gateway.orders.expire import expire
from gateway.orders.history import record_refusal
from gateway.orders.hold import expire_if_due
from gateway.orders.numbers import note_number
from gateway.orders.settle import may_have_clicked, settled_us
from gateway.orders.submit import not_found
from gateway.orders.transition import transition
from gateway.store import leases, order_numbers, tasks
from gateway.store.port import ReadTransaction, Transaction
from gateway.store.reports import with_reports


def requeue(tx: Transaction, now: Instant, task_id: str, reason: str, actor: Actor) -> TaskDetail | Refusal:
    """Put a task that is stale, or needs a person while an order is impossible, back into the queue.

    Its lease_count is kept, so the next lease is a recovered one. How a worker had ended it counts no more.
    """
    task = _allowed_task(tx, now, Event.REQUEUE, task_id, actor)
    if isinstance(task, Refusal):
        return task
    queued = transition(
        tx, now, task, Event.REQUEUE, TaskStatus.QUEUED, actor,
        reason=reason, queued_us=now.elapsed_us, end_state=None, end_status=None,
    )  # fmt: skip
    return with_reports(tx, queued)


def withdraw(tx: Transaction, now: Instant, task_id: str, reason: str, actor: Actor) -> TaskDetail | Refusal:
    """Take a requeued task out of the queue again; it is stale as before, and alerts as before."""
    task = _allowed_task(tx, now, Event.WITHDRAW, task_id, actor)
    if isinstance(task, Refusal):
        return task
    return with_reports(tx, transition(tx, now, task, Event.WITHDRAW, TaskStatus.STALE, actor, reason=reason))


def expire_now(tx: Transaction, now: Instant, task_id: str, reason: str, actor: Actor) -> TaskDetail | Refusal:
    """End the lease of a worker that is known to be dead; the task is stale."""
    task = _allowed_task(tx, now, Event.EXPIRE_NOW, task_id, actor)
    if isinstance(task, Refusal):
        return task
    return with_reports(tx, expire(tx, now, task, actor, reason, Event.EXPIRE_NOW))


def resolve(tx: Transaction, now: Instant, policy: Policy, told: Resolution, actor: Actor) -> TaskDetail | Refusal:
    """Record what happened on the site, as the person states it, and end the task.

    To failed only when an order is impossible, or after the settle time; to succeeded while it is impossible only with
    its number or against the gateway's word. A statement that says nothing new is refused, so that a repeat after a
    lost answer shows where the task stands. It adds to what workers told and changes none of it; what an earlier
    statement said it replaces.
    """
    task = _allowed_task(tx, now, Event.RESOLVE, told.task_id, actor)
    if isinstance(task, Refusal):
        return task
    refusal = resolution_refused(tx, now, policy, task, told)
    if refusal is not None:
        record_refusal(tx, now, task, "resolve_refused", actor, refusal)
        return refusal
    if resolving_needs_another(policy, task, told.outcome, actor):
        return propose(tx, now, policy, told, actor)
    numbers = order_numbers.of_task(tx, task.task_id)
    state = state_of(task, told)
    placed = told.outcome is TaskStatus.SUCCEEDED or (state is not None and state not in NOTHING_PLACED)
    before = earlier_statement(task, numbers)
    latest_state = mirror_statement(tx, now, task, told, state, numbers, placed=placed)
    note_number(tx, now, task, told.site_order_id, stated=True)
    said = {"state": told.state, "site_order_id": told.site_order_id, "placement": task.placement, **before}
    resolved = transition(
        tx, now, task, Event.RESOLVE, told.outcome, actor,
        reason=told.reason, details=said, latest_state=latest_state, order_stated=placed, resolved_at=now.utc,
    )  # fmt: skip
    return with_reports(tx, resolved)


def resolution_refused(
    tx: ReadTransaction, now: Instant, policy: Policy, task: Task, told: Resolution
) -> Refusal | None:
    """Return why a statement is not taken of a task that the table lets be resolved; None if it is."""
    numbers = order_numbers.of_task(tx, task.task_id)
    return (
        says_nothing_new(task, told, numbers)
        or needs_a_number(task, told)
        or another_number(task, told, numbers)
        or _not_settled(tx, now, policy, task, told.outcome)
    )


def settles_in(now: Instant, policy: Policy, task: Task, held: tuple[LeaseRecord, ...]) -> timedelta | None:
    """Return how long a person has to wait before resolving the task to failed; None if it is allowed now, or never.

    Where a report tells of an order though no lease allowed a click, every lease counts.
    """
    if task.placement_by_workers is Placement.IMPOSSIBLE or not _can_fail(task):
        return None
    settled = settled_us(policy, [lease for lease in held if may_have_clicked(lease)] or held)
    left_us = 0 if settled is None else settled - now.elapsed_us
    return timedelta(microseconds=left_us) if left_us > 0 else None


def _can_fail(task: Task) -> bool:
    return allows(Event.RESOLVE, task) and (task.status is not TaskStatus.FAILED or task.resolved_at is None)


def _allowed_task(tx: Transaction, now: Instant, event: Event, task_id: str, actor: Actor) -> Task | Refusal:
    task = tasks.find(tx, task_id)
    if task is None:
        return not_found(task_id)
    task = expire_if_due(tx, now, task)
    refusal = check(event, task)
    if refusal is None:
        return task
    record_refusal(tx, now, task, f"{event}_refused", actor, refusal)
    return refusal


def _not_settled(tx: ReadTransaction, now: Instant, policy: Policy, task: Task, outcome: TaskStatus) -> Refusal | None:
    if outcome is not TaskStatus.FAILED:
        return None
    left = settles_in(now, policy, task, leases.of_task(tx, task.task_id))
    if left is None:
        return None
    late = "" if task.placement is Placement.CERTAIN else ", and the site may show it late"
    return Refusal(
        Reason.PERMIT_NOT_SETTLED,
        f"an order of task {task.task_id} is {task.placement}{late}: it can be resolved to failed in "
        f"{left.total_seconds():.0f} s, to succeeded now",
        current_status=task.status,
        allowed=allowed(task),
        retry_after=left,
    )
