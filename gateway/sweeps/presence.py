"""Notes which workers have a stream open, as often as it brings them a heartbeat."""

from collections.abc import Callable, Collection, Mapping
from typing import Final

from gateway.dispatch.stream import HEARTBEAT_SECONDS
from gateway.orders.presence import still_there
from gateway.store.port import Store

_BATCH: Final = 200


class PresenceSweep:
    """Keeps those who wait from being taken for gone; a stream whose client has gone is found out by its connection."""

    name = "presence"
    interval = HEARTBEAT_SECONDS

    def __init__(self, store: Store, waiting: Callable[[], Collection[str]], gateway: str) -> None:
        """`waiting` names the workers that wait for an order now, `gateway` the one that runs this."""
        self._store = store
        self._waiting = waiting
        self._gateway = gateway

    async def run_once(self) -> Mapping[str, int]:
        """Note everybody, a bounded number a transaction."""
        worker_ids = sorted(self._waiting())
        for start in range(0, len(worker_ids), _BATCH):
            await self._store.write(still_there, worker_ids[start : start + _BATCH], self._gateway)
        return {}
