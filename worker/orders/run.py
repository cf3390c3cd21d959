"""One run of one order: the parts it works with, and the one shape of its steps.

Every step goes act -> evidence on disk -> journal -> report. `OrderRun` offers these four and holds what is known so
far; the modules `cart`, `submit`, `payment` and `verification` say what is done, in which order.

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
from worker.clock import Clock
from worker.evidence.store import DiskSpace, EvidenceStore
from worker.failpoints import Checkpoint, FailpointName
from worker.gateway.lease import LeaseGuard, LeaseLostError, StepTimeoutError, WorkerStoppingError
from worker.gateway.outbox import Outbox
from worker.gateway.port import OrderLeases
from worker.journal.carryable import carryable_text
from worker.journal.journal import Journal
from worker.journal.records import JournalEntry, OrderStatus
from worker.orders.state import OrderState
from worker.sites.port import Page, PreSendCheck, Site
from worker.sites.scraper import Scraper

log = logging.getLogger(__name__)
T = TypeVar("T")

REPORT_PATIENCE = 5.0
# How long a payment page may be read when the stop came before that, during the click.
AFTER_A_STOP = 3.0
# Between two attempts to write down what became of a click.
WRITE_AGAIN = 1.0


class Screenshots(Protocol):
    """Pictures of pages; `unavailable_reason` says why the last one could not be made."""

    unavailable_reason: str | None

    async def capture(self, html: bytes, url: str) -> bytes | None:
        """The page as PNG, or None. Raises nothing."""
        ...


class NoScreenshots:
    """Where no pictures are wanted: meta.json says so."""

    def __init__(self) -> None:
        self.unavailable_reason: str | None = "screenshots are switched off (RAKUTEN_SCREENSHOTS)"

    async def capture(self, html: bytes, url: str) -> bytes | None:
        """See Screenshots."""
        del html, url
        return None


@dataclass(frozen=True, slots=True)
class WorkerEvent:
    """Something that a local observer may show: a checkpoint passed or a happening journalled."""

    name: str
    task_id: str
    detail: str = ""


OnEvent = Callable[[WorkerEvent], None]


def ignore_event(event: WorkerEvent) -> None:
    """For a worker that nobody watches."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings that rule an order. Amount in yen, times in seconds."""

    order_max_total_yen: int | None
    step_seconds: float
    verify_max_pages: int
    lost_answer_look_seconds: float
    lost_answer_interval_seconds: float


@dataclass(frozen=True, slots=True)
class Parts:
    """What every order run of this process works with."""

    journal: Journal
    evidence: EvidenceStore
    disk: DiskSpace
    outbox: Outbox
    gateway: OrderLeases
    clock: Clock
    screenshots: Screenshots
    scraper: Scraper
    checkpoint: Checkpoint
    on_event: OnEvent
    policy: Policy


class LocalDiskError(Exception):
    """Evidence could not be written, so nothing may go on: a report never precedes its evidence."""


class EndOrderError(Exception):
    """The order ends here: raised by a step, reported once by `execution`."""

    def __init__(
        self,
        status: OrderStatus,
        detail: str,
        *,
        error_code: int | None = None,
        state: OrderState | None = None,
        **facts: Any,
    ) -> None:
        """`state` None: as known; `facts`: further fields of the terminal report."""
        super().__init__(detail)
        self.status = status
        self.error_code = error_code
        self.state = state
        self.facts = facts


def needs_human(detail: str, *, error_code: int | None = None, **facts: Any) -> EndOrderError:
    """The order ends for the worker: a person must look."""
    return EndOrderError(OrderStatus.NEEDS_HUMAN, detail, error_code=error_code, **facts)


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

    async def passed(self, name: FailpointName) -> None:
        """A checkpoint."""
        self.parts.on_event(WorkerEvent(name.value, self.task_id))
        await self.parts.checkpoint(name)

    async def on_site(self, operation: Coroutine[Any, Any, T]) -> T:
        """Runs one operation on the site that may be broken off; see LeaseGuard.hold for what it raises."""
        return await self.guard.hold(operation, seconds=self.parts.policy.step_seconds)

    async def to_the_end(self, operation: Coroutine[Any, Any, T]) -> T:
        """Runs an operation that must not be broken off once begun; only its time is limited (StepTimeoutError)."""
        seconds = self.parts.policy.step_seconds
        try:
            async with asyncio.timeout(seconds):
                return await operation
        except TimeoutError as error:
            raise StepTimeoutError(f"no answer within {seconds:g} s") from error

    async def to_the_end_once_sent(self, operate: Callable[[PreSendCheck], Coroutine[Any, Any, T]]) -> T:
        """Runs an operation that sends what pays the order: broken off until it sends, and not any more afterwards.

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
        """Puts a page on disk and into the journal's index; returns its evidence_ref."""
        png = await self.parts.screenshots.capture(page.html, page.url)
        try:
            files = self.parts.evidence.keep(
                self.folder,
                step,
                page,
                png=png,
                png_missing_because=self.parts.screenshots.unavailable_reason,
                at=self.parts.clock.now(),
                state=state or self.state,
            )
            await self.parts.journal.evidence.add(self.task_id, files)
        except (OSError, sqlite3.Error) as error:
            raise LocalDiskError(f"evidence could not be written: {error}") from error
        self.evidence_ref = files[0].evidence_ref
        return self.evidence_ref

    async def journal(self, event: str, state: OrderState, **facts: Any) -> int:
        """Writes down what happened, with its report, whose sequence is returned.

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
                log.error(  # noqa: TRY400 -- a line is enough: the journal is full or gone
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

    async def payment_in_words(self) -> str:
        """Whether a payment of this order was sent, by this run or an earlier one of this journal."""
        if self.payment_sent:
            return "the payment was sent; it is not known whether it was taken"
        if self.recovered and await self.parts.journal.claims.has_payment(self.task_id):
            return "an earlier run may have sent a payment; it is not known whether it was taken"
        return "no payment was sent"

    async def report(self) -> bool:
        """Sends what was written down; a gateway that is away does not hold up the order, only the permit does.

        True if everything was delivered.
        """
        return await self.parts.outbox.deliver(self.task_id, patience=REPORT_PATIENCE)


async def _first_of(*futures: asyncio.Future[Any]) -> None:
    await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)


def later(state: OrderState, other: OrderState | None) -> OrderState:
    """The later of two states, in the order in which an order passes through them."""
    return max(state, other or state, key=list(OrderState).index)
