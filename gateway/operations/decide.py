"""What a person decides about an order (specification, sections 2 and 4): requeue, withdraw, resolve, expire now.

Each asks the transition table first. What it refuses goes into the history too, with who asked.
"""

from datetime import timedelta
from typing import Any, Final

from gateway.domain.models import Actor, AlertKind, LeaseRecord, Policy, Task, TaskDetail
from gateway.domain.moment import Moment
from gateway.domain.operations import Resolution
from gateway.domain.refusals import Reason, Refusal, Violation
from gateway.domain.states import NOTHING_PLACED, OrderState, Placement, TaskStatus
from gateway.domain.transitions import Event, allowed, allows, check
from gateway.orders.expire import expire, what_to_do
from gateway.orders.history import QUEUE, clear_alert, raise_alert, record, record_refusal
from gateway.orders.hold import judge_at_use
from gateway.orders.report import note_number
from gateway.orders.settle import may_have_clicked, settled_us
from gateway.orders.submit import not_found
from gateway.store.port import Transaction
from gateway.store.rows import find_task, get_task, lease_from, with_reports

CLEARED_BY_RESOLVING: Final = (
    AlertKind.TASK_STALE,
    AlertKind.TASK_NEEDS_HUMAN,
    AlertKind.LATE_REPORT,
    AlertKind.CONTRADICTING_REPORT,
    AlertKind.SITE_ORDER_ID_CONFLICT,
)
"""Alerts of a task that a person's statement about it answers."""


def requeue(tx: Transaction, now: Moment, task_id: str, reason: str, actor: Actor) -> TaskDetail | Refusal:
    """Put a stale task back into the queue. Its lease_count is kept, so the next lease is a recovered one."""
    task = _allowed_task(tx, now, Event.REQUEUE, task_id, actor)
    if isinstance(task, Refusal):
        return task
    tx.change("task_requeue", task_id=task_id, at=now.utc, elapsed_us=now.elapsed_us)
    record(tx, now, task, Event.REQUEUE, actor, TaskStatus.QUEUED, reason=reason)
    clear_alert(tx, now, AlertKind.TASK_STALE, task_id)
    tx.hint(QUEUE)
    return with_reports(tx, get_task(tx, task_id))


def withdraw(tx: Transaction, now: Moment, task_id: str, reason: str, actor: Actor) -> TaskDetail | Refusal:
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


def expire_now(tx: Transaction, now: Moment, task_id: str, reason: str, actor: Actor) -> TaskDetail | Refusal:
    """End the lease of a worker that is known to be dead; the task is stale."""
    task = _allowed_task(tx, now, Event.EXPIRE_NOW, task_id, actor)
    if isinstance(task, Refusal):
        return task
    return with_reports(tx, expire(tx, now, task, actor, reason, Event.EXPIRE_NOW))


def resolve(tx: Transaction, now: Moment, policy: Policy, told: Resolution, actor: Actor) -> TaskDetail | Refusal:
    """Record what happened on the site, as the person states it, and end the task.

    To failed only when an order is impossible, or after the settle time; to what it already is never, so that a repeat
    after a lost answer is refused and shows where the task stands. An order number that differs from what was told of
    the task is refused: the statement adds to what the worker told, and changes none of it.
    """
    task = _allowed_task(tx, now, Event.RESOLVE, told.task_id, actor)
    if isinstance(task, Refusal):
        return task
    refusal = (
        _already(task, told.outcome)
        or _another_number(tx, task, told.site_order_id)
        or _not_settled(tx, now, policy, task, told.outcome)
    )
    if refusal is not None:
        record_refusal(tx, now, task, "resolve_refused", actor, refusal)
        return refusal
    state = _stated(task, told)
    placed = told.outcome is TaskStatus.SUCCEEDED or (state is not None and state not in NOTHING_PLACED)
    if state is not None:
        _mirror_statement(tx, now, task, told, state)
    tx.change(
        "task_resolve",
        task_id=task.task_id,
        from_status=task.status,
        outcome=told.outcome,
        latest_state=state or task.latest_state,
        order_known=int(placed),
        at=now.utc,
    )
    record(
        tx, now, task, Event.RESOLVE, actor, told.outcome,
        reason=told.reason, state=told.state, site_order_id=told.site_order_id, placement=task.placement,
    )  # fmt: skip
    for kind in CLEARED_BY_RESOLVING:
        clear_alert(tx, now, kind, task.task_id)
    note_number(tx, now, task, told.site_order_id)
    return with_reports(tx, get_task(tx, task.task_id))


def settles_in(now: Moment, policy: Policy, task: Task, leases: tuple[LeaseRecord, ...]) -> timedelta | None:
    """Return how long a person has to wait before resolving the task to failed; None if it is allowed now, or never.

    Where a report tells of an order though no lease allowed a click, every lease counts.
    """
    if task.placement is Placement.IMPOSSIBLE or not _can_fail(task):
        return None
    settled = settled_us(policy, [lease for lease in leases if may_have_clicked(lease)] or leases)
    left_us = 0 if settled is None else settled - now.elapsed_us
    return timedelta(microseconds=left_us) if left_us > 0 else None


def _can_fail(task: Task) -> bool:
    return task.status is not TaskStatus.FAILED and allows(Event.RESOLVE, task.status, task.lease_count)


def leases_of(tx: Transaction, task_id: str) -> tuple[LeaseRecord, ...]:
    """Return every lease of a task, the first one first."""
    return tuple(lease_from(row) for row in tx.all("leases_of_task", task_id=task_id))


def _allowed_task(tx: Transaction, now: Moment, event: Event, task_id: str, actor: Actor) -> Task | Refusal:
    task = find_task(tx, task_id)
    if task is None:
        return not_found(task_id)
    task = judge_at_use(tx, now, task)
    refusal = check(event, task_id, task.status, task.lease_count)
    if refusal is None:
        return task
    record_refusal(tx, now, task, f"{event}_refused", actor, refusal)
    return refusal


def _already(task: Task, outcome: TaskStatus) -> Refusal | None:
    if task.status is not outcome:
        return None
    return Refusal(
        Reason.STATUS_CONFLICT,
        f"task {task.task_id} is {outcome} already; it can only be corrected to succeeded",
        current_status=task.status,
        allowed=allowed(task.status, task.lease_count),
    )


def _another_number(tx: Transaction, task: Task, number: str | None) -> Refusal | None:
    known = [row["site_order_id"] for row in tx.all("order_numbers_of_task", task_id=task.task_id)]
    if number is None or not known or number in known:
        return None
    why = (
        f"{number} is not what was told of task {task.task_id} ({', '.join(known)}); leave the order number away or "
        "give the known one, and write what you saw in the reason"
    )
    return Refusal(
        Reason.INVALID_FIELD,
        f"site_order_id: {why}",
        violations=(Violation("site_order_id", why),),
        current_status=task.status,
        allowed=allowed(task.status, task.lease_count),
    )


def _not_settled(tx: Transaction, now: Moment, policy: Policy, task: Task, outcome: TaskStatus) -> Refusal | None:
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
        allowed=allowed(task.status, task.lease_count),
        retry_after=left,
    )


def _stated(task: Task, told: Resolution) -> OrderState | None:
    """Return the order state that the statement amounts to: an order number alone tells that it was ordered."""
    if told.state is not None or told.site_order_id is None:
        return told.state
    known = task.latest_state
    return known if known is not None and known not in NOTHING_PLACED else OrderState.ORDERED


def _mirror_statement(tx: Transaction, now: Moment, task: Task, told: Resolution, state: OrderState) -> None:
    """Put the statement where reports are, so that the order number counts as known; what was told stays."""
    known = tx.one("report_get", task_id=task.task_id, state=state)
    values: dict[str, Any] = {
        "task_id": task.task_id,
        "state": state,
        "payable_yen": None,
        "pay_deadline": None,
        "site_order_id": told.site_order_id,
        "evidence_ref": None,
        "error_code": None,
    }
    if known is None:
        detail = f"stated by a person: {told.reason}"
        age = {"lease_number": task.lease_count, "sequence": task.latest_sequence}
        tx.change("report_insert", **values, **age, detail=detail, at=now.utc)
    else:
        age = {"lease_number": known["lease_number"], "sequence": known["sequence"]}
        tx.change("report_fill_in", **values, **age, detail="")
