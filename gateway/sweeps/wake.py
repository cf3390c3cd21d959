"""The one shared poll behind all waits: publishes what has changed, in case a hint was lost."""

from collections.abc import Mapping

from gateway.domain.moment import Moment
from gateway.orders.history import QUEUE, topic_of
from gateway.store.port import Store, Transaction
from gateway.waiting.hub import Hub
from gateway.waiting.stream import POLL_SECONDS


class WakeSweep:
    """Looks for events since the last look."""

    name = "wake"
    interval = POLL_SECONDS

    def __init__(self, store: Store, hub: Hub) -> None:
        self._store = store
        self._hub = hub
        self._seen: int | None = None

    async def run_once(self) -> Mapping[str, int]:
        """Publish the topics of what has changed."""
        if self._hub.topics():
            seen, subjects = await self._store.read(self._changes)
            if self._seen is not None and subjects:
                self._hub.publish({QUEUE, *map(topic_of, subjects)})
            self._seen = seen
        return {}

    def _changes(self, tx: Transaction, _now: Moment) -> tuple[int, list[str]]:
        last = tx.one("event_last")
        newest = 0 if last is None else last["sequence"]
        since = newest if self._seen is None else self._seen
        rows = tx.all("events_subjects_after", sequence=since) if newest > since else []
        return newest, [row["subject"] for row in rows]
