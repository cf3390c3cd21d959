"""What a person states of an order: what it must not contradict, and how it is kept beside what workers told."""

from collections.abc import Mapping
from typing import Any

from gateway.domain.instant import Instant
from gateway.domain.models import Task
from gateway.domain.operations import Resolution
from gateway.domain.refusals import Reason, Refusal, Violation
from gateway.domain.states import NOTHING_PLACED, OrderState, Placement, TaskStatus
from gateway.domain.transitions import allowed
from gateway.orders.numbers import take_back_number
from gateway.store import reports
from gateway.store.port import Transaction


def says_nothing_new(task: Task, told: Resolution, numbers: Mapping[str, bool]) -> Refusal | None:
    """Refuse what the task is already.

    A person may confirm a worker's end as failed only where an order is not impossible.
    """
    if task.status is not told.outcome:
        return None
    if task.resolved_at is None:
        if task.placement is not Placement.IMPOSSIBLE:
            return None
        why = "it can only be corrected to succeeded"
    else:
        if told.state not in (None, task.latest_state) or not {told.site_order_id} <= {None, *numbers}:
            return None
        why = f"stated at {task.resolved_at}; another outcome, state or order number revises it"
    return Refusal(
        Reason.STATUS_CONFLICT,
        f"task {task.task_id} is {told.outcome} already; {why}",
        current_status=task.status,
        allowed=allowed(task),
    )


def needs_a_number(task: Task, told: Resolution) -> Refusal | None:
    """Refuse succeeded while an order is impossible, unless its number is told or the person insists, now or before."""
    possible = task.placement is not Placement.IMPOSSIBLE
    if told.outcome is not TaskStatus.SUCCEEDED or possible or told.site_order_id or told.although_impossible:
        return None
    return _wrong_number(
        task,
        f"is required: an order of task {task.task_id} is impossible, since no worker ever had leave to place one; "
        "if there is one all the same, give its order number, or say although_impossible where it has none",
    )


def another_number(task: Task, told: Resolution, numbers: Mapping[str, bool]) -> Refusal | None:
    """Refuse an order number other than what workers told of the task. What a person stated can be replaced."""
    known = [number for number, stated in numbers.items() if not stated]
    number = told.site_order_id
    if number is None or not known or number in known:
        return None
    return _wrong_number(
        task,
        f"{number} is not what was told of task {task.task_id} ({', '.join(known)}); leave the order number away or "
        "give the known one, and write what you saw in the reason",
    )


def _wrong_number(task: Task, why: str) -> Refusal:
    return Refusal(
        Reason.INVALID_FIELD,
        f"site_order_id: {why}",
        violations=(Violation("site_order_id", why),),
        current_status=task.status,
        allowed=allowed(task),
    )


def state_of(task: Task, told: Resolution) -> OrderState | None:
    """Return the order state that the statement amounts to: an order number alone tells that it was ordered."""
    if told.state is not None or told.site_order_id is None:
        return told.state
    known = task.latest_state
    return known if known is not None and known not in NOTHING_PLACED else OrderState.ORDERED


def earlier_statement(task: Task, numbers: Mapping[str, bool]) -> dict[str, Any]:
    """Return what a person had stated before, for the history; nothing if nobody had."""
    if task.resolved_at is None:
        return {}
    stated = [number for number, by_person in numbers.items() if by_person]
    return {"revises": {"outcome": task.status, "state": task.latest_state, "site_order_ids": stated}}


def mirror_statement(
    tx: Transaction,
    now: Instant,
    task: Task,
    told: Resolution,
    state: OrderState | None,
    numbers: Mapping[str, bool],
    *,
    placed: bool,
) -> OrderState | None:
    """Put the statement where reports are, in place of an earlier one; return the latest state then.

    What it leaves open stays as it was stated before, unless it says that there is no order.
    """
    kept = told.site_order_id
    for number, stated in numbers.items():
        if stated and number != kept and (kept is not None or not placed):
            take_back_number(tx, now, task, number)
    if state is None and placed:
        return task.latest_state
    row_number = kept or next((number for number, stated in numbers.items() if stated and placed), None)
    reports.take_back_statements(tx, task.task_id)
    if state is None:
        return task.latest_state if task.resolved_at is None else reports.latest_state_of_workers(tx, task.task_id)
    if reports.find_age(tx, task.task_id, state) is not None:
        reports.fill_in_number(tx, task.task_id, state, row_number)
    else:
        reports.add_statement(tx, now, task, state, row_number, f"stated by a person: {told.reason}")
    return state
