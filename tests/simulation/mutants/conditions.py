"""Variants that lack one of the conditions of a permit."""

from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import gateway.orders.cancel
import gateway.orders.conditions
import gateway.orders.due
import gateway.orders.lease
import gateway.orders.permit
import gateway.orders.transition
import worker.orders.permit
import worker.orders.submit
from gateway.domain.refusals import Reason
from gateway.orders.conditions import unmet
from gateway.store import leases
from tests.simulation.layout import World
from tests.simulation.mutants.registry import mutant_in, replaced, without

conditions = mutant_in(World.CONDITIONS)
CAP_IN_THE_DATABASE = "TRIGGER leases_permit_under_the_cap"


def without_reason(stack: ExitStack, reason: Reason) -> None:
    """The gateway grants what it would refuse for this reason."""

    def mutated(*about: Any) -> Any:
        found = unmet(*about)
        return None if found is not None and found[0] is reason else found

    replaced(stack, gateway.orders.permit, "unmet", mutated)


@conditions
def cap_ignored(stack: ExitStack) -> None:
    """A permit is granted whatever is to be paid, and no trigger of the database prevents it."""
    without_reason(stack, Reason.TERMS_OVER_CAP)
    without(stack, CAP_IN_THE_DATABASE)


@conditions
def cap_compared_with_the_items(stack: ExitStack) -> None:
    """The cap is compared with what the items cost, without the postage, and no trigger of the database prevents it."""

    def mutated(policy: Any, task: Any, terms: Any, *about: Any) -> Any:
        items = sum(item.quantity * (item.unit_price_yen or 0) for item in terms.items)
        return unmet(policy, task, replace(terms, payable_yen=items), *about)

    replaced(stack, gateway.orders.permit, "unmet", mutated)
    without(stack, CAP_IN_THE_DATABASE)


@conditions
def terms_not_required(stack: ExitStack) -> None:
    """A worker that shows no terms is permitted under a cap, and no trigger of the database prevents it."""
    without_reason(stack, Reason.PERMIT_TERMS_REQUIRED)
    without(stack, CAP_IN_THE_DATABASE)
    replaced(stack, worker.orders.permit, "terms_of", lambda _confirmation: None)


@conditions
def dry_run_permitted(stack: ExitStack) -> None:
    """A permit is granted for a dry run, and no trigger of the database prevents it."""
    without_reason(stack, Reason.PERMIT_DRY_RUN)
    without(stack, "TRIGGER leases_permit_no_dry_run")


@conditions
def cancel_that_loses_to_a_later_permit(stack: ExitStack) -> None:
    """A permit is granted after the cancel was taken, and no trigger of the database prevents it."""
    without_reason(stack, Reason.CANCEL_REQUESTED)
    without(stack, "TRIGGER leases_permit_no_cancelled")


@conditions
def cancel_taken_after_the_permit(stack: ExitStack) -> None:
    """A cancel is taken whether a permit was granted or not, and no trigger of the database prevents it."""
    current = leases.current

    def mutated(tx: Any, task: Any) -> Any:
        lease = current(tx, task)
        return lease and replace(lease, permitted_at=None)

    replaced(stack, gateway.orders.cancel, "leases", SimpleNamespace(current=mutated))
    without(stack, "TRIGGER tasks_cancel_before_the_permit")


@conditions
def not_after_judged_only_by_the_sweep(stack: ExitStack) -> None:
    """Leases and permits do not look at not_after; only the sweep does."""
    for module in (gateway.orders.lease, gateway.orders.conditions):
        replaced(stack, module, "is_late", lambda _task, _now: False)
    replaced(stack, gateway.orders.due, "end_late", lambda _tx, _now: 0)
