"""What a second person decides about an order that waits for it (docs/specification.md#approval): approve, deny.

A repeat after a lost answer changes nothing and is told as one. What is refused goes into the history, with who asked.
"""

from dataclasses import dataclass, replace
from datetime import timedelta

from gateway.domain.approvals import Approval, Consent, Verdict, intent_sha256
from gateway.domain.binding import binding_of
from gateway.domain.instant import Instant, parse_utc
from gateway.domain.models import Actor, Policy, Task, TaskDetail
from gateway.domain.refusals import Reason, Refusal, Violation
from gateway.domain.states import TaskStatus
from gateway.domain.transitions import Event, check
from gateway.operations.second_person import approving_needs_another, propose
from gateway.orders.history import record_refusal
from gateway.orders.hold import expire_if_due
from gateway.orders.submit import not_found
from gateway.orders.transition import transition
from gateway.store import approvals, tasks
from gateway.store.port import Transaction
from gateway.store.reports import with_reports


@dataclass(frozen=True, slots=True)
class Decided:
    """The task after a decision. `repeated`: the same had been decided before, and nothing has changed."""

    task: TaskDetail
    repeated: bool


def approve(tx: Transaction, now: Instant, policy: Policy, consent: Consent, actor: Actor) -> Decided | Refusal:
    """Let a task be handed out and permitted once, for a total and a time; in place of an approval that stands.

    Of one that is stale, or in a worker's hand, only the permit is concerned.
    """
    task = tasks.find(tx, consent.task_id)
    if task is None:
        return not_found(consent.task_id)
    task = expire_if_due(tx, now, task)
    latest = approvals.latest(tx, task.task_id)
    total, valid_for = consent.max_total_yen or task.max_total_yen, consent.valid_for or policy.approval_valid
    if latest is not None and _was_given(now, task, latest, consent.reason, total, valid_for, actor):
        return Decided(with_reports(tx, task), repeated=True)
    if refusal := check(Event.APPROVE, task) or is_nobody_else(task, actor):
        record_refusal(tx, now, task, "approve_refused", actor, refusal)
        return refusal
    if total is None or (task.max_total_yen is not None and total > task.max_total_yen):
        return _no_total(task)
    if approving_needs_another(policy, total, actor):
        told = replace(consent, max_total_yen=total, valid_for=valid_for)
        return propose(tx, now, policy, told, actor)
    until = now.later(valid_for)
    approvals.end(tx, now, task.task_id)
    approvals.add(tx, now, _decision(now, task, latest, Verdict.APPROVED, consent.reason, actor, total, until))
    approved = transition(
        tx, now, task, Event.APPROVE, task.status, actor,
        reason=consent.reason,
        details={"max_total_yen": total, "valid_until": until},
        queued_us=now.elapsed_us if task.is_held_for_approval else task.queued_us or now.elapsed_us,
    )  # fmt: skip
    return Decided(with_reports(tx, approved), repeated=False)


def deny(tx: Transaction, now: Instant, task_id: str, reason: str, actor: Actor) -> Decided | Refusal:
    """End a queued task as failed, of which nothing can have been ordered; also one that was approved."""
    task = tasks.find(tx, task_id)
    if task is None:
        return not_found(task_id)
    latest = approvals.latest(tx, task_id)
    if latest is not None and (latest.verdict, latest.decided_by, latest.reason) == (
        Verdict.DENIED, actor.identity, reason,
    ):  # fmt: skip
        return Decided(with_reports(tx, task), repeated=True)
    if refusal := check(Event.DENY, task):
        record_refusal(tx, now, task, "deny_refused", actor, refusal)
        return refusal
    approvals.end(tx, now, task_id)
    approvals.add(tx, now, _decision(now, task, latest, Verdict.DENIED, reason, actor))
    denied = transition(tx, now, task, Event.DENY, TaskStatus.FAILED, actor, reason=reason)
    return Decided(with_reports(tx, denied), repeated=False)


def _decision(
    now: Instant,
    task: Task,
    latest: Approval | None,
    verdict: Verdict,
    reason: str,
    actor: Actor,
    total: int | None = None,
    until: str | None = None,
) -> Approval:
    return Approval(
        task_id=task.task_id,
        number=1 if latest is None else latest.number + 1,
        verdict=verdict,
        decided_by=actor.identity,
        decided_at=now.utc,
        reason=reason,
        intent_sha256=intent_sha256(task.intent_json),
        max_total_yen=total,
        valid_until=until,
        used_by_lease=None,
        ended_at=now.utc if verdict is Verdict.DENIED else None,
    )


def _was_given(
    now: Instant, task: Task, latest: Approval, reason: str, total: int | None, valid_for: timedelta, actor: Actor
) -> bool:
    """Tell whether the latest approval is this very one, it stands or was used, and the task waits for no other."""
    if task.is_held_for_approval or latest.valid_until is None:
        return False
    if latest.used_by_lease is None and (latest.ended_at is not None or latest.has_run_out(now.utc)):
        return False
    lasted = parse_utc(latest.valid_until) - parse_utc(latest.decided_at)
    return (latest.decided_by, latest.reason, latest.max_total_yen, lasted) == (
        actor.identity, reason, total, valid_for,
    )  # fmt: skip


def is_nobody_else(task: Task, actor: Actor) -> Refusal | None:
    """Refuse an approval of who filed the task, and of a token without a name, of which nobody knows whose it is."""
    if binding_of(actor.identity) is None:
        why = f"this token ({actor.identity}) has no name, so nobody knows who approves; give it one (name=secret)"
    elif actor.identity == task.submitted_by:
        why = f"{actor.identity} filed it; somebody else has to approve it"
    else:
        return None
    return Refusal(Reason.PERMISSION_DENIED, f"task {task.task_id} is not approved: {why}", current_status=task.status)


def _no_total(task: Task) -> Refusal:
    if task.max_total_yen is None:
        why = "is required, as the task has no cap: the most that the order may cost, in yen"
    else:
        why = f"must be at most {task.max_total_yen:,} yen, the task's cap, which an approval does not raise"
    return Refusal(Reason.INVALID_FIELD, f"max_total_yen: {why}", violations=(Violation("max_total_yen", why),))
