"""The one transition table of a task (docs/protocol.md#task-states).

Whatever is not in the table is refused and changes nothing but the history. The same table stands for people in
docs/protocol.md; a test compares the two.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from gateway.domain.models import Task
from gateway.domain.refusals import Reason, Refusal
from gateway.domain.states import ACTIVE, ENDED, Placement, TaskStatus


class Event(StrEnum):
    """What can happen to a task. The names appear in the history and in ErrorDetail.allowed."""

    SUBMIT = "submit"
    LEASE = "lease"
    UNDO = "undo"
    ACKNOWLEDGE = "acknowledge"
    RENEW = "renew"
    REPORT = "report"
    FINISH = "finish"
    REPORT_AFTER_END = "report_after_end"
    EXPIRE = "expire"
    EXPIRE_NOW = "expire_now"
    RECLAIM = "reclaim"
    REQUEUE = "requeue"
    WITHDRAW = "withdraw"
    CANCEL = "cancel"
    RESOLVE = "resolve"
    RESTORE = "restore"
    TOO_LATE = "too_late"
    APPROVE = "approve"
    DENY = "deny"
    APPROVAL_EXPIRE = "approval_expire"


_S = TaskStatus

TRANSITIONS: Final[Mapping[tuple[Event, TaskStatus | None], frozenset[TaskStatus]]] = MappingProxyType(
    {
        (Event.SUBMIT, None): frozenset({_S.QUEUED}),
        (Event.LEASE, _S.QUEUED): frozenset({_S.LEASED}),
        (Event.UNDO, _S.LEASED): frozenset({_S.QUEUED}),
        **{(Event.ACKNOWLEDGE, status): frozenset({status}) for status in ACTIVE},
        **{(Event.RENEW, status): frozenset({status}) for status in ACTIVE},
        **{(Event.REPORT, status): frozenset({_S.RUNNING}) for status in ACTIVE},
        **{(Event.FINISH, status): ENDED for status in ACTIVE},
        **{(Event.REPORT_AFTER_END, status): frozenset({status}) for status in ENDED},
        **{(Event.EXPIRE, status): frozenset({_S.STALE}) for status in ACTIVE},
        **{(Event.EXPIRE_NOW, status): frozenset({_S.STALE}) for status in ACTIVE},
        (Event.RECLAIM, _S.STALE): frozenset({_S.LEASED}),
        **{(Event.REQUEUE, status): frozenset({_S.QUEUED}) for status in (_S.STALE, _S.NEEDS_HUMAN)},
        (Event.WITHDRAW, _S.QUEUED): frozenset({_S.STALE}),
        (Event.CANCEL, _S.QUEUED): frozenset({_S.FAILED}),
        (Event.TOO_LATE, _S.QUEUED): frozenset({_S.FAILED}),
        **{
            (Event.APPROVE, status): frozenset({status})
            for status in (_S.QUEUED, _S.LEASED, _S.RUNNING, _S.STALE, _S.NEEDS_HUMAN)
        },
        (Event.DENY, _S.QUEUED): frozenset({_S.FAILED}),
        (Event.APPROVAL_EXPIRE, _S.QUEUED): frozenset({_S.QUEUED}),
        **{
            (Event.RESOLVE, status): frozenset({_S.SUCCEEDED, _S.FAILED})
            for status in (_S.STALE, _S.NEEDS_HUMAN, _S.FAILED, _S.SUCCEEDED)
        },
        **{
            (Event.RESTORE, status): frozenset({_S.STALE})
            for status in (_S.QUEUED, _S.LEASED, _S.RUNNING, _S.STALE, _S.NEEDS_HUMAN)
        },
    }
)
"""(event, status before; None: no task yet) gives the statuses it may lead to."""

_BY_THEMSELVES: Final = (
    Event.SUBMIT, Event.UNDO, Event.ACKNOWLEDGE, Event.FINISH, Event.REPORT_AFTER_END, Event.EXPIRE, Event.RESTORE,
    Event.TOO_LATE, Event.APPROVAL_EXPIRE,
)  # fmt: skip
_ASKED_FOR: Final = tuple(event for event in Event if event not in _BY_THEMSELVES)
"""Events that somebody can ask for under their own name."""


def allows(event: Event, task: Task) -> bool:
    """Tell whether the table lets `event` happen to the task as it stands."""
    if (event, task.status) not in TRANSITIONS:
        return False
    match event:
        case Event.CANCEL:
            return task.lease_count == 0
        case Event.WITHDRAW:
            return task.lease_count > 0
        case Event.TOO_LATE:
            return _is_impossible(task)
        case Event.REQUEUE | Event.RESTORE:
            return task.status is not TaskStatus.NEEDS_HUMAN or _is_impossible(task)
        case Event.APPROVE:
            return task.requires_approval and (task.status is not _S.NEEDS_HUMAN or _is_impossible(task))
        case Event.DENY:
            return task.requires_approval and _is_impossible(task)
        case Event.RESOLVE:
            return task.status is not TaskStatus.SUCCEEDED or task.resolved_at is not None
        case _:
            return True


def _is_impossible(task: Task) -> bool:
    return task.placement is Placement.IMPOSSIBLE


def leads_to(event: Event, task: Task, to: TaskStatus) -> bool:
    """Tell whether the table lets `event` bring the task, as it stands, into this status."""
    return allows(event, task) and to in TRANSITIONS[event, task.status]


def allowed(task: Task) -> tuple[str, ...]:
    """Names of the operations that somebody may ask for now, in the order of the table."""
    names = [event.value for event in _ASKED_FOR if allows(event, task)]
    if task.status in ENDED:
        names.append(Event.REPORT.value)
    return tuple(names)


def check(event: Event, task: Task) -> Refusal | None:
    """Return None if the table allows `event`, else the refusal STATUS_CONFLICT."""
    if allows(event, task):
        return None
    possible = allowed(task)
    hint = f"; possible now: {', '.join(map(_spoken, possible))}" if possible else ""
    times = "1 time" if task.lease_count == 1 else f"{task.lease_count} times"
    return Refusal(
        Reason.STATUS_CONFLICT,
        f"task {task.task_id} is {task.status} and was leased {times}: {_spoken(event)} is not possible{hint}",
        current_status=task.status,
        allowed=possible,
    )


def _spoken(name: str) -> str:
    """Return what people call an operation: they type `expire`."""
    return "expire" if name == Event.EXPIRE_NOW else name
