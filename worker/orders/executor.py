"""An order in the worker's hand, from the acknowledged lease to its end.

`created -> cart -> confirmation -> amount guard -> permit -> click -> payment -> end`, or the recovery branch for a
task that was in hand before. A dry run ends after the amount guard (`dry_run`).
However it goes, it ends in one of these ways:

| what went wrong                                       | before the permit | permit asked, or recovered | clicked     |
|-------------------------------------------------------|-------------------|----------------------------|-------------|
| malformed intent (422)                                | failed            | needs_human                | needs_human |
| item unavailable; site down, refusing, slow; scraper  | failed            | needs_human                | needs_human |
| logged out (5001); page changed; cart or amount wrong | needs_human       | needs_human                | needs_human |
| not implemented for this site (501)                   | failed            | needs_human                | needs_human |
| no local disk; a fault of this program (500)          | needs_human       | needs_human                | needs_human |
| worker stopped                                        | needs_human       | needs_human                | needs_human |
| lease lost: no end is reported, the task turns stale and a person decides                                        |

`failed` says that nothing was bought; it is never said where that is not certain.
"""

import logging
import sqlite3

import httpx

from worker.failpoints import FailpointName
from worker.gateway.lease_guard import LeaseLostError, StepTimeoutError, WorkerStoppingError
from worker.journal.records import JournalEntry, Order, OrderStatus
from worker.orders.cart import check_cart, confirm, fill_cart
from worker.orders.dry_run import end_dry_run
from worker.orders.ends import End, needs_human
from worker.orders.intent import Intent, MalformedIntentError, parse_intent
from worker.orders.payment import pay
from worker.orders.recovery import recover
from worker.orders.run import LocalDiskError, OrderRun
from worker.orders.state import OrderState
from worker.orders.submit import submit
from worker.sites.port import Confirmation, Item, LoggedOutError, PageChangedError, SiteError
from worker.sites.scraper import ScraperError, fill_in_variants

_log = logging.getLogger(__name__)

MALFORMED_CODE = 422
FAULT_CODE = 500
NOT_IMPLEMENTED_CODE = 501
_SITE_FAILED = (SiteError, StepTimeoutError, ScraperError, httpx.HTTPError, OSError)


async def execute(run: OrderRun) -> OrderStatus | None:
    """Execute the order and report its end; return how it ended, None if the lease was lost.

    Raises sqlite3.Error where the journal cannot be written before the click: then nothing can be done or told.
    """
    try:
        await run.guard.hold(run.account.take(), seconds=None)
        try:
            end = await _execute(run)
        finally:
            run.account.give_back()
    except LeaseLostError as error:
        await _lose(run, str(error))
        return None
    except Exception as error:
        if isinstance(error, sqlite3.Error) and not run.click_begun:
            raise
        end = await _end_for(run, error)
    if end.state is None and run.guard.is_lost:
        # Nothing new is known of the site and the gateway would refuse the end: left open, so that a reclaim can go on.
        await _lose(run, end.detail)
        return None
    return await _finish(run, end)


def may_begin_again(order: Order, *, clicked: bool) -> bool:
    """Return True for an order that needed a person before anything was placed: it is tried once more.

    Every rule of a recovered task holds for it: the look at the site, the permit.
    """
    nothing_placed = not clicked and not order.state.is_placed and order.site_order_id is None
    return order.status is OrderStatus.NEEDS_HUMAN and nothing_placed


async def report_end_again(run: OrderRun, order: Order) -> OrderStatus:
    """Report the end that the journal holds once more under this lease, and do nothing else.

    `failed` only says what this journal's own runs did; where the task was in other hands too, a person must look.
    """
    status, detail = order.status, order.detail
    if status is OrderStatus.FAILED and await run.parts.journal.orders.lease_count(run.task_id) < run.lease.lease_count:
        status = OrderStatus.NEEDS_HUMAN
        detail = f"ended here as failed ({order.detail}), but the task was in other hands too"
    entry = JournalEntry(
        event="end reported again",
        state=order.state,
        status=status,
        evidence_ref=order.evidence_ref,
        site_order_id=order.site_order_id,
        payable_yen=order.payable_yen,
        pay_deadline=order.pay_deadline,
        detail=detail,
        error_code=order.error_code,
    )
    await run.parts.journal.orders.record(run.task_id, entry)
    await _report_end(run)
    return status


async def _execute(run: OrderRun) -> End:
    """Follow the protocol, step by step."""
    intent = _parse(run)
    if isinstance(intent, End):
        return intent
    if run.recovered:
        if end := await recover(run, intent):
            return end
    else:
        await run.journal("begun", OrderState.CREATED)
        await run.report()
    items = await run.on_site(fill_in_variants(intent.items, run.parts.scraper))
    confirmation = await _prepare(run, intent, items)
    if isinstance(confirmation, End):
        return confirmation
    if run.lease.stop_before_submit:
        return await end_dry_run(run, confirmation)
    if end := await submit(run, intent, items, confirmation):
        return end
    return await pay(run, intent)


async def _prepare(run: OrderRun, intent: Intent, items: tuple[Item, ...]) -> Confirmation | End:
    if end := await fill_cart(run, items):
        return end
    cart = await check_cart(run, items)
    return cart if isinstance(cart, End) else await confirm(run, intent, items)


def _parse(run: OrderRun) -> Intent | End:
    try:
        return parse_intent(run.lease.intent_json)
    except MalformedIntentError as error:
        words = f"malformed intent: {error}"
        # Whoever had the task before may have read it, and clicked: without the intent the site cannot be asked.
        if run.recovered or run.clicked:
            return needs_human(f"{words}; not known whether the order was placed", error_code=MALFORMED_CODE)
        return End(OrderStatus.FAILED, words, MALFORMED_CODE)


async def _lose(run: OrderRun, why: str) -> None:
    _log.error("left without the lease: %s", why, extra={"task_id": run.task_id, "stage": run.stage})
    await run.parts.journal.orders.note(run.task_id, "lease lost", f"{why} (at {run.stage})")


async def _end_for(run: OrderRun, error: Exception) -> End:
    """Read the table above for what a step raised."""
    if isinstance(error, WorkerStoppingError):
        if run.clicked:
            return needs_human(f"the worker was stopped after the click; {await run.payment_in_words()}")
        return needs_human("the worker was stopped before the order was placed")
    _log.warning("the order stops: %r", error, extra={"task_id": run.task_id, "stage": run.stage})
    code = error.error_code if isinstance(error, SiteError) else None
    words = f"{run.stage}: {error or type(error).__name__}"
    if isinstance(error, SiteError) and error.page is not None:
        try:
            await run.keep(run.stage, error.page)
        except LocalDiskError as disk:
            words += f"; {disk}"
    if run.clicked:
        return needs_human(f"after the click, {words}; {await run.payment_in_words()}", error_code=code)
    if isinstance(error, LoggedOutError | PageChangedError | LocalDiskError):
        return needs_human(words, error_code=code)
    if isinstance(error, NotImplementedError):
        code, known = NOT_IMPLEMENTED_CODE, True
    else:
        known = isinstance(error, _SITE_FAILED)
    if not known:
        _log.error("a fault of this program", exc_info=error, extra={"task_id": run.task_id})
        return needs_human(f"a fault of this program at {words}", error_code=FAULT_CODE)
    if run.permit_asked or run.recovered:
        return needs_human(f"nothing was clicked by this run; {words}", error_code=code)
    return End(OrderStatus.FAILED, f"nothing was bought; {words}", code)


async def _finish(run: OrderRun, end: End) -> OrderStatus:
    await run.journal(
        "ended",
        end.state or run.state,
        status=end.status,
        evidence_ref=run.evidence_ref,
        site_order_id=end.site_order_id or run.site_order_id,
        payable_yen=end.payable_yen,
        pay_deadline=end.pay_deadline,
        detail=end.detail,
        error_code=end.error_code,
    )
    _log.info("order ended", extra={"task_id": run.task_id, "status": end.status.value, "state": run.state.value})
    await _report_end(run)
    return end.status


async def _report_end(run: OrderRun) -> None:
    await run.passed(FailpointName.END_JOURNALLED)
    if await run.report():
        await run.passed(FailpointName.TERMINAL_REPORTED)
