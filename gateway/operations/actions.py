"""What a person decides about an order (docs/specification.md#decisions): requeue, withdraw, resolve, expire now.

Each asks the transition table first. What it refuses goes into the history too, with who asked.
"""

from datetime import timedelta
from typing import Final

from gateway.domain.instant import Instant
from gateway.domain.models import Actor, AlertKind, LeaseRecord, Policy, Task, TaskDetail
from gateway.domain.operations import Resolution
from gateway.domain.refusals import Reason, Refusal
from gateway.domain.states import NOTHING_PLACED, Placement, TaskStatus
from gateway.domain.transitions import Event, allowed, allows, check
from gateway.operations.statement import (
    another_number,
    earlier_statement,
    mirror_statement,
    needs_a_number,
    numbers_of,
    says_nothing_new,
    state_of,
)
from gateway.orders.callbacks import call_back
from gateway.orders.expire import expire, what_to_do
from gateway.orders.history import QUEUE, clear_alert, raise_alert, record, record_refusal
from gateway.orders.hold import expire_if_due
from gateway.orders.numbers import note_number
from gateway.orders.settle import may_have_clicked, settled_us
from gateway.orders.submit import not_found
from gateway.store.port import ReadTransaction, Transaction
from gateway.store.rows import find_task, get_task, lease_from, with_reports

CLEARED_BY_RESOLVING: Final = (
    AlertKind.TASK_STALE,
    AlertKind.TASK_NEEDS_HUMAN,
    AlertKind.LATE_REPORT,
    AlertKind.CONTRADICTING_REPORT,
    AlertKind.SITE_ORDER_ID_CONFLICT,
    AlertKind.FAILED_IN_DOUBT,
)
"""Alerts of a task that a person's statement about it answers."""


def requeue(tx: Transaction, now: Instant, task_id: str, reason: str, actor: Actor) -> TaskDetail | Refusal:
    """Put a task that is stale, or needs a person while an order is impossible, back into the queue.

    Its lease_count is kept, so the next lease is a recovered one. How a worker had ended it counts no more.
    """
    task = _allowed_task(tx, now, Event.REQUEUE, task_id, actor)
    if isinstance(task, Refusal):
        return task
    tx.change("task_requeue", task_id=task_id, at=now.utc, elapsed_us=now.elapsed_us)
    record(tx, now, task, Event.REQUEUE, actor, TaskStatus.QUEUED, reason=reason)
    for kind in (AlertKind.TASK_STALE, AlertKind.TASK_NEEDS_HUMAN):
        clear_alert(tx, now, kind, task_id)
    tx.notify(QUEUE)
    return with_reports(tx, get_task(tx, task_id))


def withdraw(tx: Transaction, now: Instant, task_id: str, reason: str, actor: Actor) -> TaskDetail | Refusal:
    """Take a requeued task out of the queue again; it is stale as before, and alerts as before."""
    task = _allowed_task(tx, now, Event.WITHDRAW, task_id, actor)
    if isinstance(task, Refusal):
        return task
    tx.change("task_withdraw", task_id=task_id, at=now.utc)
    record(tx, now, task, Event.WITHDRAW, actor, TaskStatus.STALE, reason=reason)
    raise_alert(
        tx, now, AlertKind.TASK_STALE, task_id,
        f"task {task_id} was withdrawn from the queue by {actor.identity}; an order is {task.placement}: "
        + what_to_do(task.placement),
    )  # fmt: skip
    return with_reports(tx, get_task(tx, task_id))


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
    numbers = numbers_of(tx, task)
    refusal = (
        says_nothing_new(task, told, numbers)
        or needs_a_number(task, told)
        or another_number(task, told, numbers)
        or _not_settled(tx, now, policy, task, told.outcome)
    )
    if refusal is not None:
        record_refusal(tx, now, task, "resolve_refused", actor, refusal)
        return refusal
    state = state_of(task, told)
    placed = told.outcome is TaskStatus.SUCCEEDED or (state is not None and state not in NOTHING_PLACED)
    before = earlier_statement(task, numbers)
    tx.change(
        "task_resolve",
        task_id=task.task_id,
        from_status=task.status,
        outcome=told.outcome,
        latest_state=mirror_statement(tx, now, task, told, state, numbers, placed=placed),
        order_stated=int(placed),
        at=now.utc,
    )
    note_number(tx, now, task, told.site_order_id, stated=True)
    record(
        tx, now, task, Event.RESOLVE, actor, told.outcome,
        reason=told.reason, state=told.state, site_order_id=told.site_order_id, placement=task.placement, **before,
    )  # fmt: skip
    if told.outcome is task.status and task.callback_url is not None:
        call_back(tx, now, task.task_id)  # the history calls back where the status changes
    for kind in CLEARED_BY_RESOLVING:
        clear_alert(tx, now, kind, task.task_id)
    return with_reports(tx, get_task(tx, task.task_id))


def settles_in(now: Instant, policy: Policy, task: Task, leases: tuple[LeaseRecord, ...]) -> timedelta | None:
    """Return how long a person has to wait before resolving the task to failed; None if it is allowed now, or never.

    Where a report tells of an order though no lease allowed a click, every lease counts.
    """
    if task.placement_by_workers is Placement.IMPOSSIBLE or not _can_fail(task):
        return None
    settled = settled_us(policy, [lease for lease in leases if may_have_clicked(lease)] or leases)
    left_us = 0 if settled is None else settled - now.elapsed_us
    return timedelta(microseconds=left_us) if left_us > 0 else None


def _can_fail(task: Task) -> bool:
    return allows(Event.RESOLVE, task) and (task.status is not TaskStatus.FAILED or task.resolved_at is None)


def leases_of(tx: ReadTransaction, task_id: str) -> tuple[LeaseRecord, ...]:
    """Return every lease of a task, the first one first."""
    return tuple(lease_from(row) for row in tx.all("leases_of_task", task_id=task_id))


def _allowed_task(tx: Transaction, now: Instant, event: Event, task_id: str, actor: Actor) -> Task | Refusal:
    task = find_task(tx, task_id)
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
    left = settles_in(now, policy, task, leases_of(tx, task.task_id))
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
