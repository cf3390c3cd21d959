"""One run of one order: what is known of it, and the one shape of its steps.

`OrderRun.step` does it: guard, act, evidence on disk, check, journal, report, failpoint. The modules `cart`, `submit`,
`payment` and `verification` say which steps there are. A step that ends the order returns an `End`; exceptions are for
faults, a lost lease and a stop.

There is one exception. That an order was placed, and its number, goes into the journal first and its evidence second:
the number may be the only word of an order that cannot be undone, and a page that hangs, a full disk or a kill must not
take it along. The report that was written with it gets the evidence's reference as soon as that is on disk.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from ordergateway.v1 import order_leases_pb2 as pb

from worker.account_lock import AccountTurn
from worker.evidence.store import Step
from worker.failpoints import FailpointName
from worker.gateway.lease_guard import LeaseGuard, LeaseLostError, StepTimeoutError, WorkerStoppingError
from worker.journal.carryable import carryable_text
from worker.journal.records import JournalEntry
from worker.orders.ends import End
from worker.orders.parts import Parts, WorkerEvent, keep_page
from worker.orders.state import OrderState
from worker.sites.port import Page, PreSendCheck, Site

_log = logging.getLogger(__name__)
T = TypeVar("T")

REPORT_PATIENCE = 5.0
# How long a payment page may be read when the stop came before that, during the click.
AFTER_A_STOP = 3.0
# Between two attempts to write down what became of a click.
WRITE_AGAIN = 1.0


class Shown(Protocol):
    """What an operation on the site returns, with the page that shows it."""

    @property
    def page(self) -> Page:
        """The page."""
        ...


S = TypeVar("S", bound=Shown | Page)


@dataclass(frozen=True, slots=True)
class StepKind:
    """What a step is called: in the evidence's file names, in the journal, and where tests make it fail.

    `state` is where the order stands once the step is done.
    """

    stage: Step
    event: str
    state: OrderState
    failpoint: FailpointName


def no_objection(_shown: Shown | Page) -> None:
    """Accept whatever the page shows."""


class LocalDiskError(Exception):
    """Evidence could not be written, so nothing may go on: a report never precedes its evidence."""


@dataclass(slots=True)
class OrderRun:
    """One run. `state`, `site_order_id`, `evidence_ref` and `payable_yen` (as confirmed) are what is known now.

    `clicked` and `permit_asked` say how far it has gone: after the first only states found on the site or needs_human
    may come out. `click_begun` and `payment_sent`: this run may have sent them. `other_numbers`: other tasks' order
    numbers as the gateway told them last, None where it was not asked.
    """

    parts: Parts
    site: Site
    account: AccountTurn
    lease: pb.Lease
    guard: LeaseGuard
    folder: str
    recovered: bool
    state: OrderState
    site_order_id: str | None
    clicked: bool
    evidence_ref: str | None = None
    payable_yen: int | None = None
    permit_asked: bool = False
    click_begun: bool = False
    payment_sent: bool = False
    other_numbers: frozenset[str] | None = None
    stage: str = "begin"
    verification: pb.Verification | None = None

    @property
    def task_id(self) -> str:
        """The task's key."""
        return self.lease.task_id

    async def step(
        self,
        kind: StepKind,
        act: Callable[[], Coroutine[Any, Any, S]],
        *,
        check: Callable[[S], End | None] = no_objection,
        payable_yen: Callable[[S], int | None] = lambda _shown: None,
    ) -> S | End:
        """Take one step: guard, act, evidence, check, journal, report, failpoint, in this order.

        Returns what the site showed, or the End that `check` makes of it; then nothing is journalled but the evidence.
        `payable_yen`: the amount that the page shows, for the report. Raises what `on_site` and `keep` raise.
        """
        self.stage = kind.stage
        shown = await self.on_site(act())
        page = shown if isinstance(shown, Page) else shown.page
        evidence_ref = await self.keep(kind.stage, page, kind.state)
        if end := check(shown):
            return end
        await self.journal(kind.event, kind.state, evidence_ref=evidence_ref, payable_yen=payable_yen(shown))
        await self.report()
        await self.passed(kind.failpoint)
        return shown

    async def passed(self, name: FailpointName) -> None:
        """Pass a failpoint."""
        self.parts.on_event(WorkerEvent(name.value, self.task_id))
        await self.parts.failpoint(name)

    async def on_site(self, operation: Coroutine[Any, Any, T]) -> T:
        """Run one operation on the site that may be broken off; see LeaseGuard.hold for what it raises."""
        return await self.guard.hold(operation, seconds=self.parts.policy.step_seconds)

    async def to_the_end(self, operation: Coroutine[Any, Any, T]) -> T:
        """Run an operation that must not be broken off once begun; only its time is limited (StepTimeoutError)."""
        seconds = self.parts.policy.step_seconds
        try:
            async with asyncio.timeout(seconds):
                return await operation
        except TimeoutError as error:
            raise StepTimeoutError(f"no answer within {seconds:g} s") from error

    async def to_the_end_once_sent(self, operate: Callable[[PreSendCheck], Coroutine[Any, Any, T]]) -> T:
        """Run an operation that sends what pays the order: broken off until it sends, and not any more afterwards.

        `operate` makes it from the check that stands right before it sends, which notes in `payment_sent` that it did.
        A stop that comes before it was sent breaks it off at once; one that came during the click leaves it a moment.
        Raises StepTimeoutError; before anything was sent LeaseLostError and WorkerStoppingError, too.
        """
        self.guard.ensure()
        sent, stopping = asyncio.Event(), self.guard.is_stopping

        def about_to_send() -> None:
            self.guard.ensure()
            self.payment_sent = True
            sent.set()

        work = asyncio.ensure_future(self.to_the_end(operate(about_to_send)))
        sending = asyncio.ensure_future(sent.wait())
        grace = AFTER_A_STOP if stopping else None
        try:
            try:
                await self.guard.hold(_first_of(work, sending), seconds=grace, despite_stop=stopping)
            except StepTimeoutError as error:
                if not sent.is_set():
                    raise WorkerStoppingError from error
            except (LeaseLostError, WorkerStoppingError):
                if not sent.is_set():
                    raise
            return await work
        finally:
            for task in (work, sending):
                task.cancel()
            await asyncio.gather(work, sending, return_exceptions=True)

    async def keep(self, step: str, page: Page, state: OrderState | None = None) -> str:
        """Put a page on disk and into the journal's index; return its evidence_ref."""
        try:
            self.evidence_ref = await keep_page(self.parts, self.task_id, self.folder, step, page, state or self.state)
        except (OSError, sqlite3.Error) as error:
            raise LocalDiskError(f"evidence could not be written: {error}") from error
        return self.evidence_ref

    async def journal(self, event: str, state: OrderState, **facts: Any) -> int:
        """Write down what happened, with its report, whose sequence is returned.

        Before the click a journal that cannot be written is sqlite3.Error. After it the write is repeated for as long
        as the process lives, and what it would say stands in the log: it may be the only word of an order.
        """
        self.state = state
        sequence = await self._record(JournalEntry(event=event, state=state, **facts))
        self.parts.on_event(WorkerEvent(event, self.task_id, carryable_text(facts.get("detail", ""))))
        return sequence

    async def _record(self, entry: JournalEntry) -> int:
        while True:
            try:
                return await self.parts.journal.orders.record(self.task_id, entry)
            except sqlite3.Error as error:
                if not self.click_begun:
                    raise
                _log.error(
                    "the journal cannot be written after the click, trying again in %g s: %s",
                    WRITE_AGAIN,
                    error,
                    extra={
                        "task_id": self.task_id,
                        "event": entry.event,
                        "state": entry.state.value,
                        "site_order_id": entry.site_order_id or "unknown",
                    },
                )
            await self.parts.clock.sleep(WRITE_AGAIN)

    async def complete_report(self, sequence: int, evidence_ref: str) -> None:
        """Add the evidence to a report that was written before it. Raises LocalDiskError."""
        try:
            await self.parts.journal.reports.complete(sequence, evidence_ref)
        except sqlite3.Error as error:
            raise LocalDiskError(f"the journal could not be written: {error}") from error

    async def payment_in_words(self) -> str:
        """Return whether a payment of this order was sent, by this run or an earlier one of this journal."""
        if self.payment_sent:
            return "the payment was sent; it is not known whether it was taken"
        if self.recovered and await self.parts.journal.claims.has_payment(self.task_id):
            return "an earlier run may have sent a payment; it is not known whether it was taken"
        return "no payment was sent"

    async def report(self) -> bool:
        """Send what was written down; a gateway that is away does not hold up the order, only the permit does.

        True if everything was delivered.
        """
        return await self.parts.outbox.deliver(self.task_id, patience=REPORT_PATIENCE)


async def _first_of(*futures: asyncio.Future[Any]) -> None:
    await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
