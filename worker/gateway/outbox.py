"""Delivers the journal's reports to the gateway: in order within a task, no task waiting for another.

A report is in the journal before it is sent, so it outlives the process and goes out after a restart, under the token
it was made with. It is settled by the gateway's word that it has it: accepted, or recorded late. A report that the
gateway finds fault with is sent again with less in it, and says so. Anything else waits and is sent again: a report may
be the only word of an order.
"""

import asyncio
import logging
from contextlib import suppress

from ordergateway.v1 import errors_pb2

from worker.clock import Clock, Entropy
from worker.gateway.backoff import Backoff
from worker.gateway.port import BAD_CREDENTIALS, OrderLeases, Refused, Unreachable
from worker.gateway.wire import report_to_wire
from worker.journal.carryable import FACTS, reduced
from worker.journal.records import Outcome, Report
from worker.journal.reports import Reports

_log = logging.getLogger(__name__)

FIRST_DELAY = 0.5
MOST_DELAY = 60.0

UNKNOWN_TASK = (
    "the gateway does not know the task of a report: is it on the right database, or was an older backup restored? The "
    "report waits and is sent again every %.0f s; `order-worker journal show TASK` says what was done "
    "(docs/runbook.md, Backup and restore)"
)
"""What the log says, once, of a report that must not be lost with the gateway's database."""

NOT_TAKEN = (
    "the gateway takes a report in no form, not even without details (%s: %s). It waits and is sent again every "
    "%.0f s; `order-worker journal show TASK` says what was done: see to it that the person who decides knows it"
)
"""What the log says, once, of a report that no gateway of this contract refuses."""


class Outbox:
    """The delivery of reports. `start` takes up what is left from before; `deliver` what was just written."""

    def __init__(self, reports: Reports, gateway: OrderLeases, clock: Clock, entropy: Entropy, worker_id: str) -> None:
        self._reports = reports
        self._gateway = gateway
        self._clock = clock
        self._entropy = entropy
        self._worker_id = worker_id
        self._deliveries: dict[str, asyncio.Task[None]] = {}
        self._more: dict[str, asyncio.Event] = {}

    async def start(self) -> None:
        """Take up every report that is still waiting, for example from before a restart; return at once."""
        for task_id in await self._reports.waiting_tasks():
            self._start(task_id)

    async def deliver(self, task_id: str, *, patience: float) -> bool:
        """Deliver a task's reports. True once none waits; False if that took longer than `patience` seconds, then
        the delivery goes on behind.
        """
        delivery = self._start(task_id)
        await asyncio.wait({delivery}, timeout=patience)
        return delivery.done()

    async def close(self) -> None:
        """End all deliveries; what was not delivered stays in the journal."""
        for delivery in list(self._deliveries.values()):
            delivery.cancel()
            with suppress(asyncio.CancelledError):
                await delivery

    def _start(self, task_id: str) -> asyncio.Task[None]:
        running = self._deliveries.get(task_id)
        if running is not None:
            self._more[task_id].set()  # it may have looked for more just before this report was written
            return running
        self._more[task_id] = asyncio.Event()
        delivery = asyncio.ensure_future(self._deliver_all(task_id))
        self._deliveries[task_id] = delivery
        return delivery

    async def _deliver_all(self, task_id: str) -> None:
        backoff = Backoff(self._entropy, first=FIRST_DELAY, most=MOST_DELAY)
        more = self._more[task_id]
        try:
            while True:
                try:
                    more.clear()
                    report = await self._reports.next(task_id)
                    if report is not None:
                        await self._deliver_one(report, backoff)
                    elif not more.is_set():
                        return
                except Exception:  # noqa: BLE001 -- logged; the report is sent again
                    # For example a full disk: what came of a report cannot be written down. It is sent again.
                    _log.exception("the delivery of reports was disturbed", extra={"task_id": task_id})
                    await self._clock.sleep(backoff.delay())
        finally:
            del self._deliveries[task_id], self._more[task_id]

    async def _deliver_one(self, report: Report, backoff: Backoff) -> None:
        fields = {"task_id": report.task_id, "sequence": report.sequence, "state": report.state.value}
        version, told = report, set[str]()

        def tell_once(words: str, *about: object) -> None:
            _log.log(logging.DEBUG if words in told else logging.ERROR, words, *about, MOST_DELAY, extra=fields)
            told.add(words)

        while True:
            try:
                await self._gateway.report(report_to_wire(version, self._worker_id))
            except Unreachable as error:
                delay = backoff.delay()
                _log.warning("report not delivered, trying again in %.1f s: %s", delay, error, extra=fields)
            except Refused as refusal:
                delay = MOST_DELAY
                if refusal.is_credentials:
                    words = "%s; the report waits and is sent again in %.0f s: %s"
                    _log.warning(words, BAD_CREDENTIALS, delay, refusal, extra=fields)
                elif refusal.reason == errors_pb2.ERROR_REASON_TASK_NOT_FOUND:
                    # It kept nothing, and it leased this very task: it is not on the database it was on then.
                    tell_once(UNKNOWN_TASK)
                elif refusal.recorded_late:
                    await self._settle(version, Outcome.RECORDED_LATE, f"{refusal.reason_name}: {refusal}")
                    _log.warning("a report came too late; the gateway kept it: %s", refusal, extra=fields)
                    return
                elif (smaller := _without_what_is_refused(report, version, refusal)) is not None:
                    words = "the gateway does not take a report (%s: %s); it is sent again with less in it"
                    _log.warning(words, refusal.reason_name, refusal, extra=fields)
                    version, delay = smaller, 0.0
                else:
                    tell_once(NOT_TAKEN, refusal.reason_name, refusal)
                    version = report
            else:
                await self._settle(version, Outcome.ACCEPTED, "" if version is report else version.detail)
                backoff.reset()
                _log.info("reported", extra=fields)
                return
            await self._clock.sleep(delay)

    async def _settle(self, report: Report, outcome: Outcome, answer: str) -> None:
        await self._reports.acknowledge(report.sequence, outcome, answer)


def _without_what_is_refused(report: Report, refused: Report, refusal: Refused) -> Report | None:
    """Return the report without what the gateway found fault with, then without all that it could; then None.

    State, end, sequence and token stay: they are what the report is for.
    """
    why = f"the gateway refused this report as it was ({refusal.reason_name})"
    everything = reduced(report, (*FACTS, "detail"), why)
    if refused == everything:
        return None
    named = set(refusal.fields) & {*FACTS, "detail"}
    return reduced(report, named, why) if named and refused is report else everything
