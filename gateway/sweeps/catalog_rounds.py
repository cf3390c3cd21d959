"""Files the catalogue's rounds as they fall due."""

from collections.abc import Mapping

from gateway.catalog.rounds import Rounds
from gateway.store.port import Store


class CatalogSweep:
    """Looks whether a site's round is due."""

    name = "catalog"

    def __init__(self, store: Store, rounds: Rounds, interval: float) -> None:
        self._store = store
        self._rounds = rounds
        self.interval = interval

    async def run_once(self) -> Mapping[str, int]:
        """File what is due."""
        return {"rounds": await self._store.write(self._rounds.file_due)}
