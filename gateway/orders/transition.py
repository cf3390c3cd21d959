"""The one way by which a task's status changes: by the table, exactly one row, with all that follows.

What follows is the history, the alerts and callbacks of the event, and the wake-up of those who wait. Why:
docs/adr/0015-one-transition-function.md.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, TypedDict, Unpack

from common.target import Target
from gateway.domain.instant import Instant
from gateway.domain.json_writing import JsonText, dump_document
from gateway.domain.labels import NO_LABELS
from gateway.domain.models import Actor, Policy, SameIntent, Submission, Task, is_of_an_account
from gateway.domain.states import ACTIVE, OrderState, TaskStatus
from gateway.domain.transitions import TRANSITIONS, Event, leads_to
from gateway.orders import reservations, transition_alerts
from gateway.orders.approval import ask_for_approval, held_until, reasons_for_approval
from gateway.orders.callbacks import CALLED_BACK, call_back
from gateway.orders.history import record
from gateway.orders.topics import HELD, notify_queue
from gateway.store import history, tasks
from gateway.store.port import Transaction


class TransitionError(Exception):
    """A use case asked for what the table does not allow: a fault of this program; all is undone."""


class TaskChanges(TypedDict, total=False):
    """What may change with a task's status, named as in `Task`."""

    slot: str
    lease_owner: str
    lease_expires_at: str
    lease_deadline_us: int
    lease_count: int
    queued_us: int
    latest_state: OrderState | None
    latest_lease: int
    latest_sequence: int
    end_state: OrderState | None
    end_status: TaskStatus | None
    order_known: bool
    may_have_clicked: bool
    submit_permitted_at: str
    resolved_at: str
    order_stated: bool


(_FIRST,) = TRANSITIONS[Event.SUBMIT, None]

_NO_LEASE: Final[dict[str, Any]] = dict.fromkeys(("slot", "lease_owner", "lease_expires_at", "lease_deadline_us"))


def transition(
    tx: Transaction,
    now: Instant,
    task: Task,
    event: Event,
    to: TaskStatus,
    actor: Actor,
    *,
    reason: str = "",
    details: Mapping[str, Any] | None = None,
    **changes: Unpack[TaskChanges],
) -> Task:
    """Let `event` happen to a task as it was read in this transaction, and return the task as it is then.

    `reason` and `details` (JSON values, never a token) go into the history. A task that is not active afterwards has
    no slot and no holder. Raises TransitionError if the table does not let the event lead to this status from here,
    RowCountError unless exactly one row moved.
    """
    if not leads_to(event, task, to):
        raise TransitionError(f"{event} does not lead task {task.task_id} from {task.status} to {to}")
    changed: dict[str, Any] = {**changes, **(_NO_LEASE if to not in ACTIVE else {})}
    held = held_until(tx, now, task) if to is TaskStatus.QUEUED else None
    after = replace(task, status=to, updated_at=now.utc, held_until=held, **changed)
    tasks.move(tx, task, after)
    details = details or {}
    record(tx, now, task, event, actor, to, reason=reason, **details)
    if to in CALLED_BACK and (to is not task.status or event is Event.RESOLVE):
        call_back(tx, now, after)
    reservations.follow(tx, now, event, after, actor, details)
    transition_alerts.apply(tx, now, event, task, after, actor, details)
    if after.is_held_for_approval:
        ask_for_approval(tx, now, after)
    if to is TaskStatus.QUEUED or (task.status in ACTIVE and to not in ACTIVE):
        notify_queue(tx, task.target if task.slot is None or is_of_an_account(task.slot) else None)
    if after.held_until is not None:
        tx.notify(HELD)
    return after


def file(tx: Transaction, now: Instant, policy: Policy, submission: Submission, actor: Actor) -> tasks.Filed | None:
    """Let a task begin in the queue, its first status. None if there is one of this id, which is left as it is."""
    within = policy.same_intent_within
    again = policy.same_intent is SameIntent.HOLD and tasks.wanting_the_same(tx, now, submission, within) is not None
    reasons = reasons_for_approval(policy, submission, is_wanted_already=again)
    filed = tasks.add(tx, now, submission, actor.identity, reasons, within)
    if filed is None:
        return None
    told = {"account": submission.account, "same_intent_as": filed.same_intent_as, "approval": reasons}
    details: dict[str, Any] = {name: value for name, value in told.items() if value}
    if submission.labels_json != NO_LABELS:
        details["labels"] = JsonText(submission.labels_json)
    written = dump_document(details) if details else "{}"
    history.append(tx, now, submission.task_id, Event.SUBMIT, actor, moved=(None, _FIRST), details_json=written)
    notify_queue(tx, Target(submission.site, submission.account))
    if reasons:
        ask_for_approval(tx, now, tasks.get(tx, submission.task_id))
    elif tasks.held_until(now, submission.not_before) is not None:
        tx.notify(HELD)
    return filed
