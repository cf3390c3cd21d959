"""What time does to queries, and the poll behind those who watch one. Apart from the sweep of the orders' leases."""

from collections.abc import Mapping

from gateway.account_queries.timeouts import BATCH, TimedOut, move_on_timed_out, prune
from gateway.account_queries.topics import query_of_topic, topic_of_query
from gateway.dispatch.notifier import Notifier
from gateway.dispatch.stream import POLL_SECONDS
from gateway.domain.account_queries import QueryPolicy
from gateway.domain.instant import Instant
from gateway.store import account_queries
from gateway.store.port import ReadTransaction, Store, Transaction


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


class QueryWakeSweep:
    """Looks whether the queries that somebody watches have changed, in case a hint was lost."""

    name = "query_wake"
    interval = POLL_SECONDS

    def __init__(self, store: Store, notifier: Notifier) -> None:
        self._store = store
        self._notifier = notifier
        self._seen: dict[str, tuple[str, str] | None] = {}

    async def run_once(self) -> Mapping[str, int]:
        """Publish the topics of what has changed."""
        watched = [query_id for topic in self._notifier.topics() if (query_id := query_of_topic(topic)) is not None]
        if watched:
            now = await self._store.read(self._look, watched)
            # One that is watched for the first time may have changed since its watcher read it.
            self._notifier.publish(
                topic_of_query(query_id)
                for query_id, seen in now.items()
                if query_id not in self._seen or self._seen[query_id] != seen
            )
            self._seen = now
        return {}

    def _look(self, tx: ReadTransaction, _now: Instant, watched: list[str]) -> dict[str, tuple[str, str] | None]:
        found = {query_id: account_queries.find(tx, query_id) for query_id in watched}
        return {
            query_id: None if query is None else (query.status.value, query.updated_at)
            for query_id, query in found.items()
        }
