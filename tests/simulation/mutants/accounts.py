"""Variants of gateway and worker that confuse accounts."""

from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import gateway.dispatch.order_lease_source
import gateway.orders.lease
import gateway.orders.slots
import worker.orders.intake
from gateway.domain.models import Policy
from gateway.store import tasks
from tests.simulation.layout import World
from tests.simulation.mutants.registry import mutant_in, replaced, without_check

accounts = mutant_in(World.ACCOUNTS)
EVERY = ("", "anna", "ben")


@accounts
def handed_another_target(stack: ExitStack) -> None:
    """A worker gets the oldest order, whatever accounts it has named."""
    take_next = gateway.orders.lease.take_next

    def mutated(tx: Any, now: Any, policy: Any, request: Any, token: str) -> Any:
        return take_next(tx, now, policy, replace(request, sites=policy.sites, accounts=EVERY), token)

    for module in (gateway.orders.lease, gateway.dispatch.order_lease_source):
        replaced(stack, module, "take_next", mutated)


@accounts
def reclaimed_for_another_account(stack: ExitStack) -> None:
    """A worker may reclaim a task of an account that it does not serve."""
    replaced(stack, gateway.orders.lease, "_not_served", lambda *_: None)


@accounts
def slot_of_another_account(stack: ExitStack) -> None:
    """A lease occupies the slot of the worker's first account, and no check of the database prevents it."""
    hand_over = gateway.orders.lease._hand_over

    class FirstOf:
        """The policy, but for its slots."""

        def __init__(self, policy: Any, request: Any) -> None:
            self._policy = policy
            self._request = request

        def __getattr__(self, name: str) -> Any:
            return getattr(self._policy, name)

        def slot(self, _target: Any) -> str:
            name: str = self._policy.slot(self._request.targets[0])
            return name

    def mutated(tx: Any, now: Any, policy: Any, task: Any, request: Any, *args: Any) -> Any:
        return hand_over(tx, now, FirstOf(policy, request), task, request, *args)  # type: ignore[arg-type]

    replaced(stack, gateway.orders.lease, "_hand_over", mutated)
    without_check(stack, "CHECK (slot IS NULL OR slot =", "|| task_id)")


@accounts
def a_slot_an_account_whatever_the_scope(stack: ExitStack) -> None:
    """Each account has a slot of its own, though the scope is the site or the whole installation."""
    replaced(stack, Policy, "slot", lambda _self, target: f"account:{target.site}:{target.account}")
    replaced(stack, gateway.orders.slots, "occupant", lambda tx, _policy, target: tasks.any_active_of(tx, target))


@accounts
def session_of_another_account(stack: ExitStack) -> None:
    """A worker orders in the session of the first account that it has on the site."""
    by_target = worker.orders.intake.by_target

    def mutated(sites: Any) -> Any:
        adapters = by_target(sites)
        return {
            target: next(site for other, site in adapters.items() if other.site == target.site) for target in adapters
        }

    replaced(stack, worker.orders.intake, "by_target", mutated)
