"""Which slots are free (docs/specification.md#slots).

A slot is free if no task in execution is within its reach, whatever the name of the slot that this one occupies: after
a change of RAKUTEN_LEASE_SCOPE several may be in execution where only one will be from then on.
"""

from collections.abc import Iterable
from typing import assert_never

from common.target import Target
from gateway.domain.models import LeaseScope, Policy
from gateway.store import tasks
from gateway.store.port import ReadTransaction


def occupant(tx: ReadTransaction, policy: Policy, target: Target) -> str | None:
    """Return the id of a task in execution that keeps a task of this target waiting; None if its slot is free."""
    match policy.scope:
        case LeaseScope.GLOBAL:
            return tasks.any_active(tx)
        case LeaseScope.SITE:
            return tasks.any_active_on(tx, target.site)
        case LeaseScope.ACCOUNT:
            return tasks.any_active_of(tx, target)
        case _:
            assert_never(policy.scope)


def free(tx: ReadTransaction, policy: Policy, targets: Iterable[Target]) -> list[Target]:
    """Return those of the targets whose slot is free."""
    by_slot: dict[str, list[Target]] = {}
    for target in targets:
        by_slot.setdefault(policy.slot(target), []).append(target)
    return [target for group in by_slot.values() if occupant(tx, policy, group[0]) is None for target in group]
