"""What a person may decide about one task now, and why not the rest (docs/specification.md#decisions)."""

from collections.abc import Mapping
from enum import StrEnum

from gateway.domain.instant import Instant
from gateway.domain.models import Actor, Policy, Task
from gateway.domain.operations import Resolution
from gateway.domain.refusals import Refusal
from gateway.domain.states import ACTIVE, TaskStatus
from gateway.domain.transitions import Event, check
from gateway.operations.actions import resolution_refused
from gateway.operations.approvals import is_nobody_else
from gateway.orders.cancel import cancel_refused, request_refused
from gateway.store.port import ReadTransaction


class Choice(StrEnum):
    """A decision about one task, as a person sees it."""

    APPROVE = "approve"
    DENY = "deny"
    RESOLVE_SUCCEEDED = "resolve_succeeded"
    RESOLVE_FAILED = "resolve_failed"
    REQUEUE = "requeue"
    WITHDRAW = "withdraw"
    EXPIRE = "expire"
    CANCEL = "cancel"
    REQUEST_CANCEL = "request_cancel"


def choices(
    tx: ReadTransaction, now: Instant, policy: Policy, task: Task, actor: Actor
) -> Mapping[Choice, Refusal | None]:
    """Return for each decision why it would be refused to `actor` now; None: it would be taken.

    Resolving to succeeded is judged as if all was stated that it may need.
    """
    return {choice: _refusal(tx, now, policy, task, actor, choice) for choice in Choice}


def _refusal(
    tx: ReadTransaction, now: Instant, policy: Policy, task: Task, actor: Actor, choice: Choice
) -> Refusal | None:
    match choice:
        case Choice.APPROVE:
            return check(Event.APPROVE, task) or is_nobody_else(task, actor)
        case Choice.RESOLVE_SUCCEEDED | Choice.RESOLVE_FAILED:
            to_succeeded = choice is Choice.RESOLVE_SUCCEEDED
            if to_succeeded and task.status is TaskStatus.SUCCEEDED:
                return check(Event.RESOLVE, task)
            outcome = TaskStatus.SUCCEEDED if to_succeeded else TaskStatus.FAILED
            told = Resolution(task.task_id, "", outcome, None, None, although_impossible=to_succeeded)
            return check(Event.RESOLVE, task) or resolution_refused(tx, now, policy, task, told)
        case Choice.CANCEL:
            return check(Event.CANCEL, task) or cancel_refused(task)
        case Choice.REQUEST_CANCEL:
            return request_refused(tx, task) if task.status in ACTIVE else check(Event.CANCEL, task)
        case _:
            return check(_EVENTS[choice], task)


_EVENTS = {
    Choice.DENY: Event.DENY,
    Choice.REQUEUE: Event.REQUEUE,
    Choice.WITHDRAW: Event.WITHDRAW,
    Choice.EXPIRE: Event.EXPIRE_NOW,
}
