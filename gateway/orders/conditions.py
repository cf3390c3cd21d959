"""What a submission, and the gateway's settings, demand of the permit (docs/specification.md#terms and #times)."""

from gateway.domain.instant import Instant
from gateway.domain.leases import LeaseRequest, Via
from gateway.domain.models import Policy, RestLeases, Task
from gateway.domain.refusals import Reason
from gateway.domain.terms import Terms
from gateway.orders.due import is_late
from gateway.store import budgets
from gateway.store.port import ReadTransaction


def unmet(policy: Policy, task: Task, terms: Terms | None, now: Instant) -> tuple[Reason, str] | None:
    """Return which condition a permit for these terms does not meet, and why in words; None if it meets all."""
    if task.cancel_requested_at is not None:
        why = f"its cancel was requested at {task.cancel_requested_at}; end it, with nothing clicked"
        return Reason.CANCEL_REQUESTED, why
    if task.stop_before_submit:
        return Reason.PERMIT_DRY_RUN, "it is a dry run; empty the cart and end it as succeeded"
    if is_late(task, now):
        return Reason.TOO_LATE, f"it is wanted until {task.not_after} and no later; end it, with nothing clicked"
    return _over_cap(policy, task, terms)


def is_permit_passed_over(policy: Policy, request: LeaseRequest) -> bool:
    """Tell whether a worker asks for no permit, so that it gets no task on which the permit would judge a condition."""
    return request.via is Via.REST and policy.rest_leases is RestLeases.PLAIN


def is_judged(tx: ReadTransaction, policy: Policy, task: Task) -> bool:
    """Tell whether the permit of this task judges a condition: its own, the gateway's cap, or a budget."""
    return not task.is_plain or policy.permit_max_yen is not None or bool(budgets.of_task(tx, task))


def _over_cap(policy: Policy, task: Task, terms: Terms | None) -> tuple[Reason, str] | None:
    capped = _cap(policy, task)
    if capped is None:
        return None
    cap, whose = capped
    if terms is None:
        why = f"{whose} is {cap} yen, and the worker, older than contract version 1.1, does not show what it would pay"
        return Reason.PERMIT_TERMS_REQUIRED, f"{why}: update it"
    if terms.payable_yen > cap:
        return (
            Reason.TERMS_OVER_CAP,
            f"{terms.payable_yen} yen to pay are more than {whose} of {cap} yen; end it as needs_human, code 5004",
        )
    return None


def _cap(policy: Policy, task: Task) -> tuple[int, str] | None:
    """Return the lowest cap in yen that holds for the task, and whose it is; None where there is none."""
    caps = [
        (cap, whose)
        for cap, whose in (
            (task.max_total_yen, "the task's cap"),
            (policy.permit_max_yen, "the gateway's cap (RAKUTEN_PERMIT_MAX_YEN)"),
        )
        if cap is not None
    ]
    return min(caps, default=None)
