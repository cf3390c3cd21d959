"""Turns tasks stale whose lease has run out, ends those that nobody took in time, writes down the service clock."""

from collections.abc import Callable, Mapping

from gateway.domain.instant import Instant
from gateway.orders.due import BATCH, end_late
from gateway.orders.expire import expire_due
from gateway.store.port import Store, Transaction


class ExpireSweep:
    """Judges every open lease, and every queued task's not_after, by the service clock."""

    name = "expire"

    def __init__(self, store: Store, interval: float, save_clock: Callable[[Transaction, Instant], None]) -> None:
        self._store = store
        self._save_clock = save_clock
        self.interval = interval

    async def run_once(self) -> Mapping[str, int]:
        """Expire what has lapsed, and end what is too late, a batch a transaction."""
        stale, ended = await self._store.write(self._expire)
        late = ended
        while ended == BATCH:
            ended = await self._store.write(end_late)
            late += ended
        return {"stale": stale, "too_late": late}

    def _expire(self, tx: Transaction, now: Instant) -> tuple[int, int]:
        self._save_clock(tx, now)
        return expire_due(tx, now), end_late(tx, now)
