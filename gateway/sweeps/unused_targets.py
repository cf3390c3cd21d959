"""Forgets accounts that nobody has used for long."""

from collections.abc import Mapping
from typing import Final

from gateway.operations.unused_targets import begin, forget_unused
from gateway.store.port import Store

_BATCH: Final = 200
_INTERVAL_SECONDS: Final = 3_600.0


class UnusedTargetsSweep:
    """Goes through them once an hour, a bounded number a transaction: orders come first."""

    name = "unused_targets"
    interval = _INTERVAL_SECONDS

    def __init__(self, store: Store) -> None:
        self._store = store

    async def run_once(self) -> Mapping[str, int]:
        """Forget every account whose time has come."""
        while await self._store.write(begin, _BATCH) == _BATCH:
            pass
        forgotten, last = 0, None
        while True:
            looked = await self._store.write(forget_unused, last, _BATCH)
            forgotten, last = forgotten + looked.forgotten, looked.last
            if last is None:
                return {"forgotten": forgotten}
