"""For which targets an order can be leased now, whoever asks: the dispatcher looks here before it looks at workers."""

from collections.abc import Collection, Iterator
from heapq import merge
from typing import Final

from common.target import Target
from gateway.domain.instant import Instant
from gateway.domain.models import LeaseScope, Policy
from gateway.orders import slots
from gateway.orders.due import bring_up_to_date
from gateway.store import lanes, pauses
from gateway.store.port import ReadTransaction, Transaction

FEW_TARGETS: Final = 64
"""Up to so many targets are looked at one by one, more by the lanes that are ready, whether anybody waits or not."""


def ready_targets(tx: Transaction, now: Instant, policy: Policy, wanted: Collection[Target]) -> Iterator[Target]:
    """Yield those of the wanted targets whose slot is free and that have a queued order, the oldest order first.

    Leases may be given meanwhile; a slot that one of them occupies is not yielded any more.
    """
    bring_up_to_date(tx, now)
    paused = {pause.site for pause in pauses.standing(tx)}
    if None in paused:
        return
    served = [target for target in wanted if target.site not in paused]
    found = _one_by_one(tx, policy, served) if len(served) <= FEW_TARGETS else _by_lane(tx, policy, served)
    for target in found:
        if slots.occupant(tx, policy, target) is None:
            yield target
        elif policy.scope is LeaseScope.GLOBAL:
            return


def _one_by_one(tx: ReadTransaction, policy: Policy, wanted: Collection[Target]) -> list[Target]:
    heads = ((lanes.head(tx, target), target) for target in slots.free(tx, policy, wanted))
    return [target for _, target in sorted((head, target) for head, target in heads if head is not None)]


def _by_lane(tx: ReadTransaction, policy: Policy, wanted: Collection[Target]) -> Iterator[Target]:
    targets = frozenset(wanted)
    sites = {target.site for target in targets}
    if policy.scope is not LeaseScope.ACCOUNT:
        sites = {target.site for target in slots.free(tx, policy, map(Target, sites))}
    return (target for _, target in merge(*(lanes.ready(tx, site) for site in sorted(sites))) if target in targets)
