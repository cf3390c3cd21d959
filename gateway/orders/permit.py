"""The submit permit: leave for the one irreversible click (docs/specification.md#submit-permit).

One permit a lease, for the terms that were shown. A second one for a task is given only to the journal that had the
first, when it attests that it clicked nothing, the settle time has passed, and a look at the site made after that found
no order.
"""

from datetime import timedelta
from typing import Any

from gateway.domain.approvals import Approval
from gateway.domain.instant import Instant, microseconds
from gateway.domain.leases import LeaseRecord, Permit, PermitRequest, Verdict
from gateway.domain.models import Actor, Policy, Task
from gateway.domain.refusals import Reason, Refusal
from gateway.domain.transitions import allowed
from gateway.orders.approval import unapproved, use_approval
from gateway.orders.conditions import unmet
from gateway.orders.history import record, record_refusal
from gateway.orders.hold import live_lease
from gateway.orders.reservations import exceeded, reserve
from gateway.orders.settle import may_have_clicked, settled_us
from gateway.store import leases, pauses, tasks
from gateway.store.port import ReadTransaction, Transaction

_ASK_AGAIN_WHILE_PAUSED = timedelta(seconds=5)


def request_permit(tx: Transaction, now: Instant, policy: Policy, request: PermitRequest) -> Permit | Refusal:
    """Grant the permit, the same one again to the same token, or say which rule refuses it."""
    held = live_lease(tx, now, request.holder, "permit_refused")
    if isinstance(held, Refusal):
        return held
    task, lease = held.task, held.lease
    actor = Actor(request.holder.identity, request.holder.worker_id)
    refusal = _own_lease_refuses(task, lease, request, now)
    if refusal is None and lease.permit_expires_us is not None and lease.permitted_at is not None:
        return Permit(task.task_id, lease.permitted_at, _microseconds(lease.permit_expires_us - now.elapsed_us))
    refusal = (
        refusal
        or _conditions_refuse(policy, task, request, now)
        or _approval_refuses(tx, task, request, now)
        or _pause_refuses(tx, task)
        or _verification_refuses(task, lease, request, now)
        or _earlier_leases_refuse(tx, policy, task, lease, request, now)
        or _budgets_refuse(tx, task, request, now)
    )
    if request.verification is not None:
        leases.keep_verification(tx, lease, request.verification)
    if refusal is not None:
        if request.terms is not None and request.terms != task.terms and task.submit_permitted_at is None:
            tasks.keep_terms(tx, now, task, request.terms)
        record_refusal(tx, now, task, "permit_refused", actor, refusal, **_shown(request))
        return refusal
    approval = use_approval(tx, now, task)
    left = reserve(tx, now, task, request.terms)
    leases.permit(tx, now, lease, policy.permit_ttl, request.terms)
    tasks.mark_permitted(tx, now, task, request.terms)
    shown = _shown(request) | _approved(approval) | ({"budgets_left": left} if left else {})
    record(tx, now, task, "permit", actor, lease_count=task.lease_count, **shown)
    return Permit(task.task_id, now.utc, policy.permit_ttl)


def _own_lease_refuses(task: Task, lease: LeaseRecord, request: PermitRequest, now: Instant) -> Refusal | None:
    if lease.acknowledged_at is None:
        return _refuse(task, Reason.LEASE_NOT_ACKNOWLEDGED, "the lease is not acknowledged yet; renew it first")
    if lease.journal_id != request.journal_id:
        return _refuse(task, Reason.PERMIT_OTHER_JOURNAL, "the lease was taken with another journal")
    if task.order_known:
        return _refuse(task, Reason.PERMIT_ORDER_KNOWN, "a report already tells of an order on the site")
    if lease.permit_expires_us is not None and now.elapsed_us >= lease.permit_expires_us:
        return _refuse(task, Reason.PERMIT_EXPIRED, "this lease's permit has run out, and a lease has only one")
    if lease.permit_expires_us is not None and lease.permit_terms != request.terms:
        return _refuse(task, Reason.PERMIT_TERMS_CHANGED, "it was granted for other terms, and a lease has only one")
    return None


def _conditions_refuse(policy: Policy, task: Task, request: PermitRequest, now: Instant) -> Refusal | None:
    found = unmet(policy, task, request.terms, now)
    return None if found is None else _refuse(task, *found)


def _approval_refuses(tx: ReadTransaction, task: Task, request: PermitRequest, now: Instant) -> Refusal | None:
    found = unapproved(tx, now, task, request.terms)
    return None if found is None else _refuse(task, *found)


def _pause_refuses(tx: ReadTransaction, task: Task) -> Refusal | None:
    for pause in pauses.standing(tx):
        if pause.site in (None, task.site):
            where = pause.site or "all sites"
            return _refuse(
                task, Reason.DISPATCH_PAUSED, f"dispatch is paused for {where}: {pause.reason}", _ASK_AGAIN_WHILE_PAUSED
            )
    return None


def _verification_refuses(task: Task, lease: LeaseRecord, request: PermitRequest, now: Instant) -> Refusal | None:
    if task.lease_count == 1:
        return None
    look = request.verification
    if look is None:
        return _refuse(task, Reason.PERMIT_NOT_VERIFIED, "a recovered task must be verified on the site first")
    if look.verdict is not Verdict.NOT_ORDERED or not look.window_fully_covered or look.evidence_ref is None:
        return _refuse(
            task, Reason.PERMIT_NOT_VERIFIED,
            "the verification must say not ordered, cover the window fully and name its evidence",
        )  # fmt: skip
    if not 0 <= microseconds(look.begun_at) <= now.elapsed_us - lease.started_us:
        return _refuse(task, Reason.PERMIT_NOT_VERIFIED, "the verification was not made under this lease")
    return None


def _earlier_leases_refuse(
    tx: ReadTransaction, policy: Policy, task: Task, lease: LeaseRecord, request: PermitRequest, now: Instant
) -> Refusal | None:
    earlier = [
        other
        for other in leases.of_task(tx, task.task_id)
        if other.lease_number < lease.lease_number and may_have_clicked(other)
    ]
    if not earlier:
        return None
    if any(other.journal_id != request.journal_id for other in earlier):
        return _refuse(task, Reason.PERMIT_OTHER_JOURNAL, "an earlier lease with another journal may have clicked")
    if not request.attests_no_click_record:
        return _refuse(task, Reason.PERMIT_NOT_ATTESTED, "the journal must attest that it holds no click record")
    settled = settled_us(policy, earlier) or 0
    if now.elapsed_us < settled:
        left = _microseconds(settled - now.elapsed_us)
        return _refuse(
            task, Reason.PERMIT_NOT_SETTLED,
            f"the earlier permit is settled in {left.total_seconds():.0f} s; verify again after that", left,
        )  # fmt: skip
    look = request.verification
    if look is None or lease.started_us + microseconds(look.begun_at) < settled:
        return _refuse(
            task, Reason.PERMIT_NOT_SETTLED,
            "the verification began before the earlier permit was settled; verify again now", timedelta(0),
        )  # fmt: skip
    return None


def _budgets_refuse(tx: ReadTransaction, task: Task, request: PermitRequest, now: Instant) -> Refusal | None:
    """The last of all rules, so that nothing is refused for a budget that only has to wait."""
    found = exceeded(tx, now, task, request.terms)
    return None if found is None else _refuse(task, *found)


def _shown(request: PermitRequest) -> dict[str, Any]:
    """Return what the worker presented, for the history and whoever has to decide. The task keeps the items."""
    shown: dict[str, Any] = {}
    if (look := request.verification) is not None:
        shown["verification"] = {
            "verdict": look.verdict.value,
            "window_fully_covered": look.window_fully_covered,
            "evidence_ref": look.evidence_ref,
            "begun_at_us": microseconds(look.begun_at),
        }
    if (terms := request.terms) is not None:
        shown["terms"] = {"payable_yen": terms.payable_yen, "items": len(terms.items), "digest": terms.digest}
    return shown


def _approved(approval: Approval | None) -> dict[str, Any]:
    return {} if approval is None else {"approved_by": approval.decided_by, "approved_yen": approval.max_total_yen}


def _refuse(task: Task, reason: Reason, why: str, retry_after: timedelta | None = None) -> Refusal:
    return Refusal(
        reason,
        f"no permit for task {task.task_id}: {why}",
        current_status=task.status,
        allowed=allowed(task),
        retry_after=retry_after,
    )


def _microseconds(amount: int) -> timedelta:
    return timedelta(microseconds=amount)
