"""Tells the other gateways of the database that this one is there, and how it is."""

from collections.abc import Callable, Mapping
from typing import Final

from gateway.store.gateways import Fellows
from gateway.store.port import Store

TELL_SECONDS: Final = 5.0


class GatewaySweep:
    """Every gateway runs its own, where several share a database."""

    name = "gateways"
    interval = TELL_SECONDS

    def __init__(self, store: Store, gateways: Fellows, waiting: Callable[[], int]) -> None:
        """`waiting`: how many streams and long polls are open."""
        self._store = store
        self._gateways = gateways
        self._waiting = waiting

    async def run_once(self) -> Mapping[str, int]:
        """Tell it."""
        await self._store.write(self._gateways.tell, self._waiting(), self._gateways.problems())
        return {}
