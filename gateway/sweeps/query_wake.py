"""The poll behind those who watch a query: publishes what has changed, in case a notification was lost."""

from collections.abc import Mapping

from gateway.account_queries.topics import query_of_topic, topic_of_query
from gateway.dispatch.notifier import Notifier
from gateway.dispatch.stream import POLL_SECONDS
from gateway.domain.instant import Instant
from gateway.store import account_queries
from gateway.store.port import ReadTransaction, Store


class QueryWakeSweep:
    """Looks whether the queries that somebody watches have changed, in case a notification was lost."""

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
