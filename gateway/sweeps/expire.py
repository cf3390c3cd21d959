"""Turns tasks stale whose lease has run out, and writes down where the service clock stands."""

from collections.abc import Callable, Mapping

from gateway.domain.instant import Instant
from gateway.orders.expire import expire_due
from gateway.store.port import Store, Transaction


class ExpireSweep:
    """Judges every open lease by the service clock."""

    name = "expire"

    def __init__(self, store: Store, interval: float, save_clock: Callable[[Transaction, Instant], None]) -> None:
        self._store = store
        self._save_clock = save_clock
        self.interval = interval

    async def run_once(self) -> Mapping[str, int]:
        """Expire what has lapsed."""
        return {"stale": await self._store.write(self._expire)}

    def _expire(self, tx: Transaction, now: Instant) -> int:
        self._save_clock(tx, now)
        return expire_due(tx, now)
