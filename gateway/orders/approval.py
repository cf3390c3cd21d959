"""Whether an order needs a second person's approval, and whether it has it (docs/specification.md#approval).

Judged where it is queued, where it is handed out, and at its permit. What people decide is in
gateway/operations/approvals.py.
"""

from gateway.domain.approvals import HELD_FOR_APPROVAL, Approval, ApprovalReason, Verdict, intent_sha256
from gateway.domain.instant import Instant
from gateway.domain.models import AlertKind, Policy, Submission, Task
from gateway.domain.refusals import Reason
from gateway.domain.terms import Terms
from gateway.orders.callbacks import call_back
from gateway.store import alerts, approvals, tasks
from gateway.store.port import ReadTransaction, Transaction

REQUIRED = "order.approval_required"
"""Type of the callback that tells that an order waits for its approval."""


def reasons_for_approval(policy: Policy, wanted: Submission, *, is_wanted_already: bool) -> tuple[ApprovalReason, ...]:
    """Return why an order needs an approval, none if it needs none; the gateway's rules leave dry runs alone.

    `is_wanted_already`: another task wants the same, and RAKUTEN_SAME_INTENT is hold.
    """
    reasons = [ApprovalReason.REQUESTED] if wanted.requires_approval else []
    if not wanted.stop_before_submit:
        limit, cap = policy.approval_over_yen, wanted.max_total_yen
        if limit is not None and (cap is None or cap > limit):
            reasons.append(ApprovalReason.OVER_YEN)
        if wanted.site in policy.approval_always:
            reasons.append(ApprovalReason.ALWAYS)
        if is_wanted_already:
            reasons.append(ApprovalReason.SAME_INTENT)
    return tuple(reasons)


def held_until(tx: ReadTransaction, now: Instant, task: Task) -> str | None:
    """Return until when a task that comes into the queue now is kept back; None: it may be handed out."""
    return HELD_FOR_APPROVAL if lacks_approval(tx, now, task) else tasks.held_until(now, task.not_before)


def lacks_approval(tx: ReadTransaction, now: Instant, task: Task) -> bool:
    """Tell whether the task needs an approval that it does not have."""
    return task.requires_approval and isinstance(_judged(tx, now, task), tuple)


def unapproved(tx: ReadTransaction, now: Instant, task: Task, terms: Terms | None) -> tuple[Reason, str] | None:
    """Return why a permit for these terms lacks its approval; None if it has it, or needs none."""
    if not task.requires_approval:
        return None
    found = _judged(tx, now, task)
    if isinstance(found, tuple):
        return found
    total = found.max_total_yen or 0
    if terms is None:
        why = f"it was approved for {total} yen, and the worker, older than contract version 1.1, does not show what it"
        return Reason.PERMIT_TERMS_REQUIRED, f"{why} would pay: update it"
    if terms.payable_yen > total:
        why = f"{terms.payable_yen} yen to pay are more than the {total} yen that {found.decided_by} approved"
        return Reason.TERMS_OVER_CAP, f"{why}; end it as needs_human, code 5004"
    return None


def use_approval(tx: Transaction, now: Instant, task: Task) -> Approval | None:
    """Let the permit of the task's lease use its approval, which nobody can use again; None if it needs none."""
    approval = approvals.latest(tx, task.task_id) if task.requires_approval else None
    if approval is not None:
        approvals.use(tx, now, approval, task.lease_count)
    return approval


def ask_for_approval(tx: Transaction, now: Instant, task: Task) -> None:
    """Alert, and tell the upstream, that a task in the queue waits for its approval."""
    why = ", ".join(reason.words for reason in task.approval_reasons)
    cap = "without a cap" if task.max_total_yen is None else f"for up to {task.max_total_yen:,} yen"
    message = (
        f"task {task.task_id} of {task.target}, {cap}, filed by {task.submitted_by}, waits for the approval of "
        f"somebody else ({why}): order-gateway approvals approve, or deny"
    )
    alerts.raise_once(tx, now, AlertKind.APPROVAL_REQUIRED, task.task_id, message)
    call_back(tx, now, task, REQUIRED)


def _judged(tx: ReadTransaction, now: Instant, task: Task) -> Approval | tuple[Reason, str]:
    """Return the approval that a permit may use, or why there is none."""
    latest = approvals.latest(tx, task.task_id)
    if latest is None or latest.verdict is not Verdict.APPROVED:
        return Reason.APPROVAL_REQUIRED, "nobody has approved it"
    if latest.used_by_lease is not None:
        why = f"the approval of {latest.decided_by} was used by lease {latest.used_by_lease}, and none is used twice"
        return Reason.APPROVAL_REQUIRED, why
    if latest.has_run_out(now.utc):
        return Reason.APPROVAL_EXPIRED, f"the approval of {latest.decided_by} ran out at {latest.valid_until}"
    if latest.ended_at is not None or latest.intent_sha256 != intent_sha256(task.intent_json):
        return Reason.APPROVAL_REQUIRED, f"the approval of {latest.decided_by} does not stand any more"
    return latest
