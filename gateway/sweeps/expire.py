"""Turns tasks stale whose lease has run out, ends those that nobody took in time, holds those whose approval has run
out, and writes down the service clock.
"""

from collections.abc import Callable, Mapping

from gateway.domain.instant import Instant
from gateway.orders.due import BATCH, end_late, hold_unapproved
from gateway.orders.expire import expire_due
from gateway.store.port import Store, Transaction


class ExpireSweep:
    """Judges every open lease, every queued task's not_after and every approval, by the service clock."""

    name = "expire"

    def __init__(self, store: Store, interval: float, save_clock: Callable[[Transaction, Instant], None]) -> None:
        self._store = store
        self._save_clock = save_clock
        self.interval = interval

    async def run_once(self) -> Mapping[str, int]:
        """Expire what has lapsed, end what is too late, and hold what is approved no more, a batch a transaction."""
        stale, ended, held = await self._store.write(self._expire)
        late, unapproved = ended, held
        while ended == BATCH:
            ended = await self._store.write(end_late)
            late += ended
        while held == BATCH:
            held = await self._store.write(hold_unapproved)
            unapproved += held
        return {"stale": stale, "too_late": late, "unapproved": unapproved}

    def _expire(self, tx: Transaction, now: Instant) -> tuple[int, int, int]:
        self._save_clock(tx, now)
        return expire_due(tx, now), end_late(tx, now), hold_unapproved(tx, now)
