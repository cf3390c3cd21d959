"""Filing a task (docs/specification.md#submission)."""

import logging
from collections.abc import Sequence

from common.target import Target
from gateway import targets
from gateway.domain.approvals import ApprovalReason
from gateway.domain.instant import Instant
from gateway.domain.intents import intent_digest
from gateway.domain.json_text import same_object
from gateway.domain.models import Actor, Policy, Submission, Submitted, Task
from gateway.domain.refusals import Reason, Refusal
from gateway.domain.states import TaskStatus
from gateway.orders.transition import file
from gateway.store import tasks
from gateway.store.port import ReadTransaction, Transaction

_log = logging.getLogger(__name__)


def submit(
    tx: Transaction,
    now: Instant,
    policy: Policy,
    submission: Submission,
    actor: Actor,
    *,
    compare_up_to: int | None = None,
) -> Submitted | Task | Refusal:
    """File a task. The same task_id again answers the existing one and changes nothing, not even the callback.

    Refused where its target is one more than its token may name. A writer has no time for intents of more than
    `compare_up_to` characters: then the existing task is returned, for the caller to tell with `submitted_again`.
    Neither its intent nor its target nor its callback ever changes.
    """
    filed = file(tx, now, policy, submission, actor)
    existing = tasks.find(tx, submission.task_id) if filed is None else None
    if existing is not None:
        long = max(len(existing.intent_json), len(submission.intent_json))
        return existing if compare_up_to is not None and long > compare_up_to else submitted_again(existing, submission)
    return _told(submission, filed or _file_at(tx, now, policy, submission, actor))


def submit_all(
    tx: Transaction, now: Instant, policy: Policy, submissions: Sequence[Submission], actor: Actor
) -> list[Submitted | Refusal | None]:
    """File tasks, all in this transaction.

    None for each that existed before: a writer has no time to compare the intents of so many.
    """
    return [_submit_one(tx, now, policy, each, actor) for each in submissions]


def _submit_one(
    tx: Transaction, now: Instant, policy: Policy, submission: Submission, actor: Actor
) -> Submitted | Refusal | None:
    filed = file(tx, now, policy, submission, actor)
    if filed is None and tasks.exists(tx, submission.task_id):
        return None
    return _told(submission, filed or _file_at(tx, now, policy, submission, actor))


def _file_at(
    tx: Transaction, now: Instant, policy: Policy, submission: Submission, actor: Actor
) -> tasks.Filed | Refusal:
    """File a task that does not exist at a target that is not known, or whose use is to be written down again."""
    refusal = targets.use(tx, now, (Target(submission.site, submission.account),), actor.identity)
    if refusal is not None:
        return refusal
    filed = file(tx, now, policy, submission, actor)
    if filed is None:
        raise LookupError(f"task {submission.task_id} should have been filed")
    return filed


def _told(submission: Submission, filed: tasks.Filed | Refusal) -> Submitted | Refusal:
    """Tell what a submission comes to that made its task, or was refused."""
    if isinstance(filed, Refusal):
        return filed
    return Submitted(
        submission.task_id,
        TaskStatus.QUEUED,
        created=True,
        intent_matches=True,
        same_intent_as=filed.same_intent_as,
        held_for_approval=filed.held_for_approval,
    )


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
    return Submitted(
        existing.task_id,
        existing.status,
        created=False,
        intent_matches=matches,
        differs=differs,
        same_intent_as=existing.same_intent_as,
        held_for_approval=existing.is_held_for_approval,
    )


def not_found(task_id: str) -> Refusal:
    """Make the refusal of an unknown task."""
    return Refusal(Reason.TASK_NOT_FOUND, f"there is no task {task_id}")


def _differs(existing: Task, again: Submission) -> tuple[str, ...]:
    """Name the fields in which a task is submitted again with other values."""
    same = {
        "site": existing.site == again.site,
        "account": existing.account == again.account,
        "intent_json": _same_intent(existing, again.intent_json),
        "callback_url": existing.callback_url == again.callback_url,
        "labels": existing.labels_json == again.labels_json,
        "max_total_yen": existing.max_total_yen == again.max_total_yen,
        "not_before": existing.not_before == again.not_before,
        "not_after": existing.not_after == again.not_after,
        "stop_before_submit": existing.stop_before_submit == again.stop_before_submit,
        "requires_approval": (ApprovalReason.REQUESTED in existing.approval_reasons) == again.requires_approval,
    }
    return tuple(name for name, is_same in same.items() if not is_same)


def _same_intent(existing: Task, intent_json: str) -> bool:
    if existing.intent_digest is not None:
        return existing.intent_digest == intent_digest(intent_json)
    return same_object(existing.intent_json, intent_json)
