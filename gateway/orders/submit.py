"""Filing a task, and withdrawing one that nobody has taken (docs/specification.md#submission)."""

import hashlib
import logging
from collections.abc import Sequence

from gateway.domain.instant import Instant
from gateway.domain.json_text import canonical, parse_again, same_object
from gateway.domain.models import Actor, Policy, Submission, Submitted, Task, TaskDetail
from gateway.domain.refusals import Reason, Refusal
from gateway.domain.states import Placement, TaskStatus
from gateway.domain.transitions import Event, allowed, check
from gateway.orders.history import record_refusal
from gateway.orders.transition import file, transition
from gateway.store import tasks
from gateway.store.port import ReadTransaction, Transaction
from gateway.store.reports import with_reports

_log = logging.getLogger(__name__)


def submit(
    tx: Transaction,
    now: Instant,
    policy: Policy,
    submission: Submission,
    actor: Actor,
    *,
    compare_up_to: int | None = None,
) -> Submitted | Task:
    """File a task. The same task_id again answers the existing one and changes nothing, not even the callback.

    A writer has no time for intents of more than `compare_up_to` characters: then the existing task is returned, for
    the caller to tell with `submitted_again`. Neither its intent nor its target nor its callback ever changes.
    """
    if not file(tx, now, submission, actor):
        existing = tasks.get(tx, submission.task_id)
        long = max(len(existing.intent_json), len(submission.intent_json))
        return existing if compare_up_to is not None and long > compare_up_to else submitted_again(existing, submission)
    return Submitted(submission.task_id, TaskStatus.QUEUED, created=True, intent_matches=True)


def submit_all(
    tx: Transaction, now: Instant, submissions: Sequence[Submission], actor: Actor
) -> list[Submitted | None]:
    """File tasks, all in this transaction.

    None for each that existed before: a writer has no time to compare the intents of so many.
    """
    return [
        Submitted(each.task_id, TaskStatus.QUEUED, created=True, intent_matches=True)
        if file(tx, now, each, actor)
        else None
        for each in submissions
    ]


def find_submitted(tx: ReadTransaction, _now: Instant, task_id: str) -> Task:
    """Return a task that is known to have been submitted. Raises LookupError."""
    return tasks.get(tx, task_id)


def submitted_again(existing: Task, submission: Submission) -> Submitted:
    """Tell what a submission comes to whose task exists already."""
    differs = _differs(existing, submission)
    if differs:
        _log.warning(
            "a task was submitted again with another %s; the first stands",
            " and another ".join(differs),
            extra={"task_id": submission.task_id},
        )
    matches = "intent_json" not in differs
    return Submitted(existing.task_id, existing.status, created=False, intent_matches=matches, differs=differs)


def cancel(tx: Transaction, now: Instant, task_id: str, reason: str, actor: Actor) -> TaskDetail | Refusal:
    """Withdraw a task that was never leased; it ends as failed. A repeat of a cancel answers the same."""
    task = tasks.find(tx, task_id)
    if task is None:
        return not_found(task_id)
    if _was_cancelled(task):
        return with_reports(tx, task)
    if refusal := check(Event.CANCEL, task) or _order_is_known(task):
        record_refusal(tx, now, task, "cancel_refused", actor, refusal)
        return refusal
    return with_reports(tx, transition(tx, now, task, Event.CANCEL, TaskStatus.FAILED, actor, reason=reason))


def _order_is_known(task: Task) -> Refusal | None:
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


def not_found(task_id: str) -> Refusal:
    """Make the refusal of an unknown task."""
    return Refusal(Reason.TASK_NOT_FOUND, f"there is no task {task_id}")


def _was_cancelled(task: Task) -> bool:
    return task.status is TaskStatus.FAILED and task.lease_count == 0


def intent_digest(intent_json: str) -> str:
    """Return what stands for an intent once its text is dropped: equal for equal JSON values, key order aside."""
    digest = hashlib.sha256()
    for part in canonical(parse_again(intent_json)):
        digest.update(part.encode("ascii"))
    return digest.hexdigest()


def _differs(existing: Task, again: Submission) -> tuple[str, ...]:
    """Name the fields in which a task is submitted again with other values."""
    same = {
        "site": existing.site == again.site,
        "account": existing.account == again.account,
        "intent_json": _same_intent(existing, again.intent_json),
        "callback_url": existing.callback_url == again.callback_url,
        "labels": existing.labels_json == again.labels_json,
    }
    return tuple(name for name, is_same in same.items() if not is_same)


def _same_intent(existing: Task, intent_json: str) -> bool:
    if existing.intent_digest is not None:
        return existing.intent_digest == intent_digest(intent_json)
    return same_object(existing.intent_json, intent_json)
