"""What time does to queries. Apart from the sweep of the orders' leases, whose rule is the opposite."""

from collections.abc import Mapping

from gateway.account_queries.timeouts import BATCH, TimedOut, move_on_timed_out, prune
from gateway.domain.account_queries import QueryPolicy
from gateway.domain.instant import Instant
from gateway.store.port import Store, Transaction


class QuerySweep:
    """Requeues queries whose lease timed out, ends those that are too old, deletes ended ones after their retention."""

    name = "queries"

    def __init__(self, store: Store, policy: QueryPolicy, interval: float) -> None:
        self._store = store
        self._policy = policy
        self.interval = interval

    async def run_once(self) -> Mapping[str, int]:
        """Work off what is due, a bounded number a transaction."""
        counts = {"requeued": 0, "failed": 0, "expired": 0, "deleted": 0}
        more = True
        while more:
            timed_out, deleted = await self._store.write(self._move_on)
            more = deleted == BATCH or timed_out.requeued + timed_out.failed + timed_out.expired >= BATCH
            counts["requeued"] += timed_out.requeued
            counts["failed"] += timed_out.failed
            counts["expired"] += timed_out.expired
            counts["deleted"] += deleted
        return counts

    def _move_on(self, tx: Transaction, now: Instant) -> tuple[TimedOut, int]:
        return move_on_timed_out(tx, now, self._policy), prune(tx, now, self._policy)
