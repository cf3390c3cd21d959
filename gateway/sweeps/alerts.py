"""Watches for conditions that a person should know of, and tells the log of every alert raised or cleared."""

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from gateway.domain.instant import Instant
from gateway.domain.models import AlertKind, Policy
from gateway.domain.notifications import NotifyPolicy
from gateway.operations.alert_outbox import settle_logged, unlogged
from gateway.operations.alerts import WorkerWatch, watch_queue
from gateway.operations.budgets import watch_budgets
from gateway.operations.notifications import file_notifications
from gateway.operations.proposals import close_lapsed
from gateway.store.alert_deliveries import Notice
from gateway.store.port import Store, Transaction

_BATCH: Final = 200

_log = logging.getLogger(__name__)


class AlertSweep:
    """Raises and clears what the service clock tells; logs each alert once when raised and once when cleared."""

    name = "alerts"

    def __init__(
        self, store: Store, policy: Policy, interval: float, notify: NotifyPolicy, *, has_webhook: bool
    ) -> None:
        self._store = store
        self._policy = policy
        self._notify = notify
        self._workers = WorkerWatch()
        self._has_webhook = has_webhook
        self.interval = interval

    async def run_once(self) -> Mapping[str, int]:
        """Judge the conditions and log what has changed since the last look."""
        await self._store.write(self._watch)
        told: list[Notice] = []
        while fresh := await self._store.read(unlogged, _BATCH):
            for notice in fresh:
                level = logging.WARNING if notice.edge == "raised" else logging.INFO
                _log.log(
                    level, "alert=%s %s subject=%s: %s", notice.kind, notice.edge, notice.subject, notice.message,
                    extra=_field(notice),
                )  # fmt: skip
            await self._store.write(self._settle, fresh)
            told += fresh
        return {edge: sum(notice.edge == edge for notice in told) for edge in ("raised", "cleared")}

    def _settle(self, tx: Transaction, now: Instant, told: Sequence[Notice]) -> int:
        file_notifications(tx, now, self._notify, told)
        return settle_logged(tx, now, told, keep=self._has_webhook)

    def _watch(self, tx: Transaction, now: Instant) -> int:
        changes = watch_queue(tx, now, self._policy) + watch_budgets(tx, now, self._policy)
        changes += close_lapsed(tx, now)
        return changes + self._workers.look(tx, now, self._policy)


def _field(notice: Notice) -> dict[str, str]:
    """Name whom an alert is about, where that is a worker or a task."""
    if notice.kind is AlertKind.WORKER_OFFLINE:
        return {"worker_id": notice.subject}
    if not notice.kind.is_about_tasks or notice.kind is AlertKind.SITE_ORDER_ID_CONFLICT:
        return {}
    return {"task_id": notice.subject}
