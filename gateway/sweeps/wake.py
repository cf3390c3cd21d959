"""The one shared poll behind all waits: publishes what has changed, in case a hint was lost."""

from collections.abc import Mapping

from gateway.dispatch.notifier import Notifier
from gateway.dispatch.stream import POLL_SECONDS
from gateway.domain.instant import Instant
from gateway.orders.topics import QUEUE, is_of_task, topic_of
from gateway.store import history
from gateway.store.port import ReadTransaction, Store


class WakeSweep:
    """Looks for events since the last look."""

    name = "wake"
    interval = POLL_SECONDS

    def __init__(self, store: Store, notifier: Notifier) -> None:
        self._store = store
        self._notifier = notifier
        self._seen: int | None = None

    async def run_once(self) -> Mapping[str, int]:
        """Publish the topics of what has changed."""
        topics = self._notifier.topics()
        if topics:
            # Which tasks have changed costs a look at each event, so it is asked where somebody watches one.
            seen, subjects = await self._store.read(self._changes, watched=any(map(is_of_task, topics)))
            if self._seen is not None and seen > self._seen:
                self._notifier.publish({QUEUE, *map(topic_of, subjects)})
            self._seen = seen
        return {}

    def _changes(self, tx: ReadTransaction, _now: Instant, *, watched: bool) -> tuple[int, list[str]]:
        newest = history.last_sequence(tx)
        since = newest if self._seen is None else self._seen
        return newest, history.subjects_after(tx, since) if watched and newest > since else []
