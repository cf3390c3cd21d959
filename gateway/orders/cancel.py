"""Ending a task that is not wanted any more (docs/specification.md#cancel): in the queue, or in a worker's hand."""

from gateway.domain.instant import Instant
from gateway.domain.leases import Via
from gateway.domain.models import Actor, Task, TaskDetail
from gateway.domain.refusals import Reason, Refusal
from gateway.domain.states import ACTIVE, Placement, TaskStatus
from gateway.domain.transitions import Event, allowed, check
from gateway.orders.history import record, record_refusal
from gateway.orders.hold import expire_if_due
from gateway.orders.submit import not_found
from gateway.orders.transition import transition
from gateway.store import leases, tasks
from gateway.store.port import ReadTransaction, Transaction
from gateway.store.reports import with_reports


def cancel(
    tx: Transaction, now: Instant, task_id: str, reason: str, actor: Actor, *, while_leased: bool = False
) -> TaskDetail | Refusal:
    """Withdraw a task that was never leased; it ends as failed. A repeat of a cancel answers the same.

    `while_leased`: of one in a worker's hand the cancel is requested, if no click was permitted; it stays active then.
    """
    task = tasks.find(tx, task_id)
    if task is None:
        return not_found(task_id)
    if while_leased:
        task = expire_if_due(tx, now, task)
    if _was_cancelled(task):
        return with_reports(tx, task)
    if while_leased and task.status in ACTIVE:
        return _request(tx, now, task, reason, actor)
    if refusal := check(Event.CANCEL, task) or cancel_refused(task):
        record_refusal(tx, now, task, "cancel_refused", actor, refusal)
        return refusal
    return with_reports(tx, transition(tx, now, task, Event.CANCEL, TaskStatus.FAILED, actor, reason=reason))


def cancel_if_requested(tx: Transaction, now: Instant, task: Task, actor: Actor) -> None:
    """Cancel a task whose cancel was requested while a lease of it was on a way on which it reached nobody."""
    if task.cancel_requested_at is not None and check(Event.CANCEL, task) is None:
        why = f"its cancel was requested at {task.cancel_requested_at}"
        transition(tx, now, task, Event.CANCEL, TaskStatus.FAILED, actor, reason=why)


def _request(tx: Transaction, now: Instant, task: Task, reason: str, actor: Actor) -> TaskDetail | Refusal:
    """Let no permit be granted from now on; too late where one was, or where nobody asks for one."""
    if task.cancel_requested_at is not None:
        return with_reports(tx, task)
    if refusal := request_refused(tx, task):
        record_refusal(tx, now, task, "cancel_refused", actor, refusal)
        return refusal
    tasks.request_cancel(tx, now, task)
    record(tx, now, task, "cancel_request", actor, reason=reason)
    return with_reports(tx, tasks.get(tx, task.task_id))


def request_refused(tx: ReadTransaction, task: Task) -> Refusal | None:
    """Refuse to request the end of a task in a worker's hand once that worker may have placed the order."""
    lease = leases.current(tx, task)
    if not (task.order_known or lease is None or lease.permitted_at is not None or lease.via is Via.REST):
        return None
    return Refusal(
        Reason.CANCEL_TOO_LATE,
        f"task {task.task_id} is {task.status}, and its worker may have placed the order already: watch how it "
        "ends; what was ordered can only be cancelled on the site",
        current_status=task.status,
        allowed=allowed(task),
    )


def cancel_refused(task: Task) -> Refusal | None:
    """Refuse to end a task as failed of which a report that came too late says that its order was placed."""
    if task.placement is not Placement.CERTAIN:
        return None
    return Refusal(
        Reason.STATUS_CONFLICT,
        f"task {task.task_id} is {task.status}, but a worker has reported its order as placed: look on the site; "
        "no worker gets leave to place another, and an operator can resolve the task once a lease of it has ended",
        current_status=task.status,
        allowed=tuple(name for name in allowed(task) if name != Event.CANCEL),
    )


def _was_cancelled(task: Task) -> bool:
    """Tell whether it ended before anybody took it, or because its cancel was requested."""
    return task.status is TaskStatus.FAILED and (task.lease_count == 0 or task.cancel_requested_at is not None)
