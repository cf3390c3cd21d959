"""Lets orders be handed out at the moment at which their not_before has come."""

from collections.abc import Mapping

from gateway.dispatch.notifier import Notifier
from gateway.dispatch.stream import POLL_SECONDS
from gateway.domain.instant import Instant, parse_utc
from gateway.orders.due import release_held
from gateway.orders.topics import HELD
from gateway.store import tasks
from gateway.store.port import ReadTransaction, Store


class ReleaseSweep:
    """Waits for the next such moment itself, and wakes early if a task is filed whose moment is nearer.

    Each gateway of a database does it: releasing twice changes nothing.
    """

    name = "release"
    interval = 0.0

    def __init__(self, store: Store, notifier: Notifier) -> None:
        self._store = store
        self._filed = notifier.subscribe(HELD)

    async def run_once(self) -> Mapping[str, int]:
        """Wait until a task may be handed out, for a second at most, and release it."""
        with self._filed:
            seconds = await self._store.read(_seconds_to_next)
            if seconds > 0 and (await self._filed.wait(min(seconds, POLL_SECONDS)) or seconds > POLL_SECONDS):
                return {}
        return {"released": await self._store.write(release_held)}


def _seconds_to_next(tx: ReadTransaction, now: Instant) -> float:
    """Return in how many seconds the next held task may be handed out."""
    next_held = tasks.next_held(tx)
    if next_held is None:
        return float("inf")
    return (parse_utc(next_held) - parse_utc(now.utc)).total_seconds()
