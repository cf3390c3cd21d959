"""Drops the payload of tasks that ended long ago, where RAKUTEN_RETENTION_DAYS says so."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from gateway.operations.retention import find_old, strip
from gateway.store.port import Store

_BATCH: Final = 50
_INTERVAL_SECONDS: Final = 3_600.0


class RetentionSweep:
    """Goes through the ended tasks once an hour, in small steps: orders come first."""

    name = "retention"
    interval = _INTERVAL_SECONDS

    def __init__(self, store: Store, keep: timedelta) -> None:
        self._store = store
        self._keep = keep

    async def run_once(self) -> Mapping[str, int]:
        """Drop every payload whose time has come."""
        dropped, row = 0, 0
        while old := await self._store.read(find_old, row, self._keep, _BATCH):
            dropped += await self._store.write(strip, old, self._keep)
            row = old[-1].row
        return {"dropped": dropped}
