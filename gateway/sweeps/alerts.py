"""Tells the log of alerts as they are raised."""

import logging
from collections.abc import Mapping

from gateway.domain.moment import Moment
from gateway.store.port import Store, Transaction

_log = logging.getLogger(__name__)


class AlertSweep:
    """Logs each standing alert once a process."""

    name = "alerts"

    def __init__(self, store: Store, interval: float) -> None:
        self._store = store
        self._told = 0
        self.interval = interval

    async def run_once(self) -> Mapping[str, int]:
        """Log what was raised since the last look."""
        raised = await self._store.read(self._raised)
        for alert_id, kind, message in raised:
            self._told = alert_id
            _log.warning("alert=%s %s", kind, message)
        return {"raised": len(raised)}

    def _raised(self, tx: Transaction, _now: Moment) -> list[tuple[int, str, str]]:
        return [
            (row["alert_id"], row["kind"], row["message"])
            for row in tx.all("alerts_standing_after", alert_id=self._told)
        ]
