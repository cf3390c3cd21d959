"""What the worker tells (docs/specification.md#reports): the mirror, the end, and late truth, which is kept."""

from dataclasses import fields
from typing import Any, Final

from gateway.domain.instant import Instant
from gateway.domain.leases import Holder, LeaseRecord
from gateway.domain.models import Actor, AlertKind, NewReport, Reported, Task
from gateway.domain.refusals import Reason, Refusal
from gateway.domain.states import ACTIVE, ENDED, NOTHING_PLACED, OrderState, TaskStatus
from gateway.domain.transitions import Event, allowed
from gateway.orders.callbacks import call_back
from gateway.orders.history import record, refusal_details
from gateway.orders.hold import expire_if_due, is_holder, lease_invalid
from gateway.orders.numbers import note_number
from gateway.orders.reservations import reserve_again
from gateway.orders.submit import not_found
from gateway.orders.transition import TaskChanges, transition
from gateway.store import alerts, late_reports, leases, reports, tasks, workers
from gateway.store.late_reports import Kept
from gateway.store.port import Transaction
from gateway.store.reports import ReportAge

_WORDS: Final = tuple(field.name for field in fields(NewReport))

_DEFAULT_END: Final = {OrderState.PAID: TaskStatus.SUCCEEDED, OrderState.CANCELLED: TaskStatus.FAILED}


def report(tx: Transaction, now: Instant, holder: Holder, told: NewReport) -> Reported | Refusal:
    """Record what a worker tells of its task; a terminal report ends the task and frees the slot.

    A report that is refused is written to the history all the same and alerts a person: it may be the only word that an
    order was placed.
    """
    task = tasks.find(tx, holder.task_id)
    if task is None:
        return not_found(holder.task_id)
    task = expire_if_due(tx, now, task)
    lease = leases.current(tx, task)
    if lease is None or not is_holder(lease, holder):
        why = "it was never leased" if lease is None else f"{holder.worker_id} with this token is not its last holder"
        return _keep_late(tx, now, task, holder, told, lease_invalid(task, why))
    workers.seen(tx, now, holder.worker_id)
    if task.status in ACTIVE:
        return _accept(tx, now, task, lease, holder, told)
    if task.status in ENDED:
        return _append(tx, now, task, lease, holder, told)
    return _keep_late(tx, now, task, holder, told, lease_invalid(task, f"the task is {task.status}"))


def resulting_status(told: NewReport, state: OrderState) -> TaskStatus:
    """Say how a terminal report ends its task (docs/specification.md#reports)."""
    return told.terminal_status or _DEFAULT_END.get(state, TaskStatus.NEEDS_HUMAN)


def tells_of_an_order(told: NewReport) -> bool:
    """Tell whether a report says that an order is on the site: a state of ordered or later, or an order number."""
    return told.site_order_id is not None or (told.state is not None and told.state not in NOTHING_PLACED)


def _state_of(task: Task, told: NewReport) -> OrderState:
    """Return the state told; a worker that ended with nothing done tells none, and the latest known one stands."""
    return told.state or task.latest_state or OrderState.CREATED


def _accept(tx: Transaction, now: Instant, task: Task, lease: LeaseRecord, holder: Holder, told: NewReport) -> Reported:
    state = _state_of(task, told)
    actor = Actor(holder.identity, holder.worker_id)
    recorded, changes = _mirror(tx, now, task, lease, state, told)
    event, status = Event.REPORT, TaskStatus.RUNNING
    if told.terminal:
        event, status = Event.FINISH, resulting_status(told, state)
        leases.end(tx, now, task)
        changes |= {"end_state": state, "end_status": status}
    transition(tx, now, task, event, status, actor, details={"recorded": recorded, **_said(state, told)}, **changes)
    return Reported(task.task_id, status, recorded)


def _append(
    tx: Transaction, now: Instant, task: Task, lease: LeaseRecord, holder: Holder, told: NewReport
) -> Reported | Refusal:
    """Take a report after the end from the last holder."""
    state = _state_of(task, told)
    actor = Actor(holder.identity, holder.worker_id)
    if told.terminal and (contradiction := _contradicts_end(task, state, told)):
        refusal = Refusal(
            Reason.STATUS_CONFLICT,
            f"the report contradicts the end of task {task.task_id}: {contradiction}",
            current_status=task.status,
            allowed=allowed(task),
        )
        kept = _keep_late(tx, now, task, holder, told, refusal)
        _tell_contradiction(tx, now, tasks.get(tx, task.task_id), contradiction)
        return kept
    recorded, changes = _mirror(tx, now, task, lease, state, told)
    said = {"recorded": recorded, **_said(state, told)}
    after = transition(tx, now, task, Event.REPORT_AFTER_END, task.status, actor, details=said, **changes)
    if not _repeats_end(task, state, told) and (contradiction := _contradicts_status(task, state, told)):
        _tell_contradiction(tx, now, after, contradiction)
    return Reported(task.task_id, task.status, recorded)


def _repeats_end(task: Task, state: OrderState, told: NewReport) -> bool:
    """Tell whether a report says once more what the worker had ended the task with."""
    return told.terminal and (state, resulting_status(told, state)) == (task.end_state, task.end_status)


def _contradicts_end(task: Task, state: OrderState, told: NewReport) -> str | None:
    """Compare a terminal report with the worker's own end, or with the person's where the worker told none."""
    status = resulting_status(told, state)
    if task.end_status is None:
        return None if status is task.status else f"it says {status}, a person decided {task.status}"
    if _repeats_end(task, state, told):
        return None
    return f"it says {status} at {state}, the worker had ended it as {task.end_status} at {task.end_state}"


def _contradicts_status(task: Task, state: OrderState, told: NewReport) -> str | None:
    """Compare a further report with how the task stands, be it the worker's end or a person's decision."""
    if task.status is TaskStatus.SUCCEEDED and state is OrderState.CANCELLED:
        return "it says that the order was cancelled, the task had succeeded"
    if task.status is TaskStatus.FAILED and state is not OrderState.CANCELLED and tells_of_an_order(told):
        return f"it says that the order is {state}, the task had failed"
    return None


def _tell_contradiction(tx: Transaction, now: Instant, task: Task, contradiction: str) -> None:
    """Alert; and if a person had decided, call back with what is known now (docs/specification.md#reports)."""
    raised = alerts.raise_once(
        tx, now, AlertKind.CONTRADICTING_REPORT, task.task_id,
        f"a report contradicts the end of task {task.task_id}: {contradiction}",
    )  # fmt: skip
    if raised and task.status is not task.end_status:
        call_back(tx, now, task)


def _keep_late(tx: Transaction, now: Instant, task: Task, holder: Holder, told: NewReport, refusal: Refusal) -> Refusal:
    """Refuse a report and keep it: history, alert, and what it says of an order."""
    if tells_of_an_order(told) and not task.order_known:
        tasks.mark_order_known(tx, now, task)
    actor = Actor(holder.identity, holder.worker_id)
    if tells_of_an_order(told):
        reserve_again(tx, now, task, actor)
    note_number(tx, now, task, told.site_order_id)
    state = _state_of(task, told)
    kept = late_reports.add(tx, now, task, holder, told, state, refusal)
    if kept is Kept.NEW:
        details = refusal_details(refusal, actor, **_said(state, told))
        record(tx, now, task, "report_refused", actor, reason=refusal.message, **details)
    if kept is not Kept.REPEAT:
        alerts.raise_once(
            tx, now, AlertKind.LATE_REPORT, task.task_id,
            f"a report of {holder.worker_id} on task {task.task_id} came too late to count ({state}"
            f"{', order number ' + told.site_order_id if told.site_order_id else ''}); it is in the history",
        )  # fmt: skip
    in_part = f": {holder.identity} has told enough of it, so only what it says of an order is kept"
    return Refusal(
        refusal.reason,
        f"{refusal.message}; recorded late{in_part if kept is Kept.ONE_TOO_MANY else ''}",
        current_status=refusal.current_status,
        allowed=refusal.allowed,
        recorded_late=True,
    )


def _mirror(
    tx: Transaction, now: Instant, task: Task, lease: LeaseRecord, state: OrderState, told: NewReport
) -> tuple[bool, TaskChanges]:
    """Write the report's row; return whether the state is new, and what changes in the task.

    A row is one state: a repeat overwrites with what it brings and keeps its place; an older one (by the journal's
    sequence) only fills in what is missing. Without a sequence (REST) the order of arrival counts.
    """
    age = ReportAge(lease.lease_number, told.sequence or 0)
    known = reports.find_age(tx, task.task_id, state)
    if known is None:
        reports.add(tx, now, task.task_id, state, told, age)
    elif told.sequence is None or age >= known:
        reports.overwrite(tx, task.task_id, state, told, max(age, known))
    else:
        reports.fill_in(tx, task.task_id, state, told)
    note_number(tx, now, task, told.site_order_id)
    latest = ReportAge(task.latest_lease, task.latest_sequence)
    moves = known is None if told.sequence is None else age > latest
    return known is None, {
        "latest_state": state if moves else task.latest_state,
        "latest_lease": max(age, latest).lease_number,
        "latest_sequence": max(age, latest).sequence,
        "order_known": task.order_known or tells_of_an_order(told),
    }


def _said(state: OrderState, told: NewReport) -> dict[str, Any]:
    """Return what a report says, for the history; an amount or a code of 0 is something said."""
    values = ((name, getattr(told, name)) for name in _WORDS)
    said = {name: value for name, value in values if value is not False and value not in (None, "")}
    return {**said, "state": state.value}
