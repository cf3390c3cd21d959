"""Forgetting accounts that nobody uses any more (docs/specification.md#accounts).

Orders, reports, history and what the catalogue has seen stay; the next one who names the account makes it known again.
"""

from dataclasses import dataclass

from common.target import Target, targets
from gateway.domain.instant import Instant
from gateway.store import targets as target_rows
from gateway.store import workers
from gateway.store.port import Transaction
from gateway.store.targets import Unused
from gateway.targets import unused_since_us


@dataclass(frozen=True, slots=True)
class Looked:
    """What one look came to: how many were forgotten, and behind which the next one goes on (None: it was the last)."""

    forgotten: int
    last: Unused | None


def begin(tx: Transaction, now: Instant, count: int) -> int:
    """Let the time of up to `count` targets begin of which no use was ever written down; return how many."""
    return target_rows.begin(tx, now, count)


def forget_unused(tx: Transaction, now: Instant, after: Unused | None, count: int) -> Looked:
    """Look at up to `count` accounts that were not named for long, and forget those that are not in use otherwise.

    In use is what has a task that has not ended, an alert or a pause that stands, or a worker that was heard of lately;
    its time begins anew. While a query of it is open it only waits, since the catalogue files those by itself.
    """
    before_us = unused_since_us(now)
    found = target_rows.unused(tx, before_us, after, count)
    served = _served(tx, before_us) if found else frozenset()
    forgotten = 0
    for unused in found:
        if unused.is_used or unused.target in served:
            target_rows.keep(tx, now, unused.target)
        elif not unused.has_queries:
            target_rows.forget(tx, unused.target)
            forgotten += 1
    return Looked(forgotten, found[-1] if len(found) == count else None)


def _served(tx: Transaction, before_us: int) -> frozenset[Target]:
    """Return what workers serve that were heard of since; of the others it is forgotten, so they name it anew."""
    workers.forget_what_is_served(tx, before_us)
    return frozenset(target for worker in workers.everyone(tx) for target in targets(worker.sites, worker.accounts))
