"""Variants that do not ask for an approval as they must."""

from contextlib import ExitStack
from typing import Any

import gateway.operations.approvals
import gateway.orders.approval
import gateway.orders.due
import gateway.orders.permit
import gateway.sweeps.expire
from gateway.domain.approvals import Approval
from gateway.domain.refusals import Reason
from gateway.orders.approval import unapproved
from tests.simulation.layout import World
from tests.simulation.mutants.registry import mutant_in, replaced, sql, without

approvals = mutant_in(World.CONDITIONS)
OF_THE_PERMIT = "TRIGGER leases_permit_approved"
OF_THE_QUEUE = "TRIGGER tasks_unapproved_are_held"


class _Whatever(str):
    """A digest that equals each."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = str.__hash__


def _used_by_nobody(*_about: Any) -> None:
    return None


@approvals
def approval_reused(stack: ExitStack) -> None:
    """A permit does not use its approval up, and no trigger of the database prevents it."""
    replaced(stack, gateway.orders.permit, "use_approval", _used_by_nobody)
    without(stack, OF_THE_PERMIT)


@approvals
def approval_of_another_task(stack: ExitStack) -> None:
    """Where a task has no approval that of another is taken, and no trigger of the database prevents it."""
    sql(
        stack,
        approval_latest="SELECT * FROM approvals ORDER BY task_id = :task_id AND ended_at IS NULL DESC, "
        "ended_at IS NULL DESC, decided_at DESC LIMIT 1",
    )
    replaced(stack, gateway.orders.approval, "intent_sha256", _Whatever)
    replaced(stack, gateway.orders.permit, "use_approval", _used_by_nobody)
    replaced(stack, gateway.operations.approvals, "_was_given", lambda *_about: False)
    without(stack, OF_THE_PERMIT, OF_THE_QUEUE)


@approvals
def own_approval_accepted(stack: ExitStack) -> None:
    """Who filed an order approves it, and no trigger of the database prevents it."""
    replaced(stack, gateway.operations.approvals, "is_nobody_else", lambda _task, _actor: None)
    without(stack, "TRIGGER approvals_by_somebody_else")


@approvals
def expired_approval_accepted(stack: ExitStack) -> None:
    """An approval is good for ever, and neither sweep nor trigger ends it."""
    replaced(stack, Approval, "has_run_out", lambda _approval, _utc: False)
    for module in (gateway.orders.due, gateway.sweeps.expire):
        replaced(stack, module, "hold_unapproved", lambda _tx, _now: 0)
    without(stack, OF_THE_PERMIT)


@approvals
def approved_total_ignored(stack: ExitStack) -> None:
    """A permit is granted for more than was approved, and no trigger of the database prevents it."""

    def mutated(*about: Any) -> Any:
        found = unapproved(*about)
        return None if found is not None and found[0] is Reason.TERMS_OVER_CAP else found

    replaced(stack, gateway.orders.permit, "unapproved", mutated)
    without(stack, OF_THE_PERMIT)
