"""Looks after placed orders once their task has ended: later states are reported, payment deadlines told in the log."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from common.target import Target
from worker.account_lock import AccountLocks
from worker.clock import utc_text
from worker.evidence.store import monitor_step
from worker.journal.records import JournalEntry, Order
from worker.orders.parts import Parts, WorkerEvent, keep_page
from worker.orders.state import OrderState, later
from worker.sites.port import OrderDetail, Site

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MonitorPolicy:
    """How often to look, for how long after an order's end, and how long before a payment deadline to tell of it."""

    interval_seconds: float
    days: int
    payment_alert_seconds: float


class Monitor:
    """The loop that polls orders that are placed, ended for the gateway, and not final on the site."""

    def __init__(
        self, parts: Parts, sites: Mapping[Target, Site], accounts: AccountLocks, policy: MonitorPolicy
    ) -> None:
        self._parts = parts
        self._sites = sites
        self._accounts = accounts
        self._policy = policy

    async def run(self) -> None:
        """Poll until cancelled. No failure of a round or of one order ends it."""
        while True:
            await self._parts.clock.sleep(self._policy.interval_seconds)
            try:
                await self.look_once()
            except Exception:  # noqa: BLE001 -- logged; the monitor goes on
                _log.exception("a round of the monitor failed")

    async def look_once(self) -> int:
        """One round; returns how many orders had moved on."""
        since = self._parts.clock.now() - timedelta(days=self._policy.days)
        moved = 0
        for order in await self._parts.journal.orders.to_monitor(since):
            site = self._sites.get(order.target)
            if site is None:
                continue
            try:
                moved += await self._look_at(order, site)
            except NotImplementedError:
                continue
            except Exception as error:  # noqa: BLE001 -- one order's trouble is not the others'
                _log.warning("the order could not be looked at: %r", error, extra={"task_id": order.task_id})
            await self._watch_deadline(order.task_id)
        return moved

    async def _look_at(self, order: Order, site: Site) -> bool:
        async with asyncio.timeout(self._parts.policy.step_seconds), self._accounts.of(order.target):
            detail = await site.order_detail(order.site_order_id or "")
        state = detail.order_state
        if not detail.found or state is None or state is order.state or later(order.state, state) is order.state:
            return False
        await self._record(order, detail, state)
        await self._parts.outbox.deliver(order.task_id, patience=0)
        return True

    async def _record(self, order: Order, detail: OrderDetail, state: OrderState) -> None:
        """Evidence, then journal with the report, as every step."""
        evidence_ref = await keep_page(
            self._parts, order.task_id, order.run_folder or order.task_id, monitor_step(state), detail.page, state
        )
        words = f"the site shows {detail.stage_label or state}"
        entry = JournalEntry(
            event="moved on",
            state=state,
            evidence_ref=evidence_ref,
            site_order_id=order.site_order_id,
            pay_deadline=detail.pay_deadline,
            detail=words,
        )
        await self._parts.journal.orders.record(order.task_id, entry)
        _log.info("order moved on", extra={"task_id": order.task_id, "state": state.value})
        self._parts.on_event(WorkerEvent("moved on", order.task_id, words))

    async def _watch_deadline(self, task_id: str) -> None:
        order = await self._parts.journal.orders.find(task_id)
        if order is None or order.state not in (OrderState.ORDERED, OrderState.AWAITING_PAYMENT):
            return
        if order.pay_deadline is None or order.deadline_alerted_at is not None:
            return
        left = order.pay_deadline - self._parts.clock.now()
        if left <= timedelta(seconds=self._policy.payment_alert_seconds):
            await self._parts.journal.orders.note_deadline_alert(task_id)
            _log.warning(
                "the order is not paid and its payment deadline is near",
                extra={"task_id": task_id, "pay_deadline": utc_text(order.pay_deadline)},
            )
