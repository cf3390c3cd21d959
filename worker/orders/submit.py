"""The permit, the click record, the click, and what to do when its answer is lost (docs/specification.md#click).

| what happens                                              | then                                                   |
|-----------------------------------------------------------|--------------------------------------------------------|
| no disk space can be reserved                             | needs_human, no permit asked                           |
| permit refused: dispatch paused                           | wait while the lease lives, ask again, confirm again   |
| permit refused: not settled                               | wait, renew, verify again, ask again, confirm again    |
| permit refused: lease invalid                             | the lease is lost: nothing more is written to the site |
| permit refused: put off for longer than a day             | needs_human, no click                                  |
| permit refused otherwise, or the gateway can't be reached | needs_human, no click                                  |
| the permit or the lease runs out before the click         | no click; needs_human, or the lease is lost            |
| the site answers with a number                            | ordered, written down at once; then the thank-you page |
| ... and also says something that contradicts an order     | ordered; needs_human, not paid                         |
| the site answers with another task's number               | ordered, number unknown; needs_human, not paid         |
| the site answers without a number                         | ordered, number unknown; needs_human, not paid         |
| the site refuses, or the answer is lost                   | look at the order list; found or not: needs_human      |

"Ordered" and the number are in the journal before anything else is asked of the site, and before any evidence
(see `run`).

The permit counts from the moment the request was sent, on the elapsed clock, which is read again after the click record
is on disk, and once more when the connection stands over which the click is sent. From then on the click is followed to
its end: neither a lost lease nor a stop breaks it off.
"""

import logging
import sqlite3
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NoReturn

import httpx
from ordergateway.v1 import errors_pb2

from worker.evidence.store import Reserve, Step
from worker.failpoints import FailpointName
from worker.gateway.bounds import PERMIT_VALID_FOR
from worker.gateway.lease import LeaseLostError, StepTimeoutError, WorkerStoppingError
from worker.gateway.port import Refused, Unreachable
from worker.gateway.wire import to_seconds
from worker.journal.carryable import MAX_SHOWN, carryable_number
from worker.journal.claims import AlreadyRecordedError
from worker.orders.cart import confirm
from worker.orders.intent import Intent
from worker.orders.recovery import apply_finding
from worker.orders.run import EndOrderError, LocalDiskError, OrderRun, needs_human
from worker.orders.state import OrderState
from worker.orders.verification import keep_list, look, numbers_of_others, verify
from worker.sites.port import Confirmation, Item, ItemUnavailableError, LoggedOutError, SiteError, Submission, Thanks

log = logging.getLogger(__name__)

PERMIT_CALL = 15.0
PERMIT_PATIENCE = 20.0
BETWEEN_ASKING = 2.0
# However often a gateway puts it off: then the slot is given free, and a person decides.
LONGEST_POSTPONEMENT = 86_400.0
# The thank-you page is further evidence: it gets this long in all, or a quarter of a step's limit where that is less.
THANKS_SECONDS = 5.0
# How long the gateway is asked for other tasks' orders before the click; the permit depends on it, this does not.
OTHERS_PATIENCE = 5.0
# The site's clock and ours may differ: an order dated a little before our click may still be the one.
CLOCK_TOLERANCE = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Permit:
    """`deadline`: reading of the elapsed clock before which the click must begin. `waited`: the page may be old now."""

    deadline: float
    waited: bool


async def submit(run: OrderRun, intent: Intent, items: tuple[Item, ...], confirmation: Confirmation) -> None:
    """From the confirmation page to a placed order with its number. Raises EndOrderError and LeaseLostError."""
    reserve = run.parts.disk.reserve()
    try:
        _reserve_disk(reserve)
        if run.other_numbers is None:
            await _ask_for_others(run)
        permit = await obtain_permit(run, intent)
        await run.passed(FailpointName.PERMITTED)
        if permit.waited:
            await _ask_for_others(run)
            confirmation = await confirm(run, intent, items)
        run.stage = Step.ORDER_SUBMIT
        await _record_click(run, permit)
        clicked_at = run.parts.clock.now()
        answer = await _click(run, confirmation, permit)
    finally:
        reserve.release()
    if isinstance(answer, Exception):
        await _look_for_order(run, intent, answer, clicked_at)
    else:
        await _ordered(run, answer)


async def _ask_for_others(run: OrderRun) -> None:
    """Learns whose the orders are that exist before this click; a site may show one of them in answer to it."""
    told = await run.guard.other_orders(seconds=OTHERS_PATIENCE)
    if told is not None:
        run.other_numbers = frozenset(told.site_order_ids)


def _reserve_disk(reserve: Reserve) -> None:
    try:
        reserve.take()
    except OSError as error:
        raise LocalDiskError(f"no disk space could be reserved for the order's evidence: {error}") from error


async def obtain_permit(run: OrderRun, intent: Intent) -> Permit:
    """Asks until there is a permit or none will come. A repeat after a lost answer gets the same permit."""
    attests = not await run.parts.journal.claims.has_click(run.task_id)
    first_sent: float | None = None
    waited = False
    begun = run.parts.clock.elapsed()
    while True:
        now = run.parts.clock.elapsed()
        first_sent = now if first_sent is None else first_sent
        run.permit_asked = True
        try:
            answer = await run.guard.hold(
                run.parts.gateway.request_permit(
                    run.task_id,
                    run.lease.lease_token,
                    attests_no_click_record=attests,
                    verification=run.verification,
                ),
                seconds=PERMIT_CALL,
            )
        except Unreachable as error:
            if run.parts.clock.elapsed() - first_sent >= PERMIT_PATIENCE:
                raise needs_human(
                    f"the gateway could not be asked for a permit, so no click was made: {error}"
                ) from error
            await run.guard.wait(BETWEEN_ASKING)
        except Refused as refusal:
            if run.parts.clock.elapsed() - begun >= LONGEST_POSTPONEMENT:
                raise needs_human(
                    f"the permit was put off for too long ({refusal.reason_name}): {refusal}"
                ) from refusal
            await _wait_out(run, intent, refusal)
            first_sent, waited = None, True
        else:
            valid_for = to_seconds(answer.valid_for, PERMIT_VALID_FOR)
            return Permit(deadline=first_sent + valid_for, waited=waited)


async def _wait_out(run: OrderRun, intent: Intent, refusal: Refused) -> None:
    """Returns when asking again makes sense; raises where it does not."""
    fields = {"task_id": run.task_id, "reason": refusal.reason_name}
    if refusal.reason == errors_pb2.ERROR_REASON_DISPATCH_PAUSED:
        log.info("the permit waits: dispatch is paused", extra=fields)
        async with run.account.given_up():
            await run.guard.wait(_delay(refusal))
    elif refusal.reason == errors_pb2.ERROR_REASON_PERMIT_NOT_SETTLED:
        seconds = _delay(refusal)
        log.info("the permit waits %.0f s for the site to settle", seconds, extra=fields)
        async with run.account.given_up():
            await run.guard.wait(seconds)
        await run.guard.renew()
        await apply_finding(run, await verify(run, intent))
    elif refusal.reason == errors_pb2.ERROR_REASON_LEASE_INVALID:
        raise LeaseLostError(f"the gateway refused a permit: {refusal}")
    else:
        raise needs_human(f"no permit to place the order ({refusal.reason_name}): {refusal}")


def _delay(refusal: Refused) -> float:
    return BETWEEN_ASKING if refusal.retry_after is None else refusal.retry_after


async def _record_click(run: OrderRun, permit: Permit) -> None:
    """Puts the click record on disk, inside the permit and the lease. Past this the click is the next thing done."""
    _ensure_permitted(run, permit)
    run.guard.ensure_may_begin()
    run.clicked = True  # also if the record's answer is lost on the way: it may be on disk
    try:
        await run.parts.journal.claims.record_click(run.task_id, run.lease.lease_token)
    except AlreadyRecordedError as error:
        raise needs_human("the click of this task is on record already; no click was made") from error
    await run.passed(FailpointName.CLICK_RECORDED)


def _ensure_permitted(run: OrderRun, permit: Permit) -> None:
    if run.parts.clock.elapsed() >= permit.deadline:
        raise needs_human("the permit ran out before the click; no click was made")


async def _click(run: OrderRun, confirmation: Confirmation, permit: Permit) -> Submission | Exception:
    """The irreversible click, once. What goes wrong is returned: it is not known then whether the order was placed.

    Raises EndOrderError and LeaseLostError where it was too late, and nothing was sent.
    """

    def pre_send_check() -> None:
        run.guard.ensure()
        _ensure_permitted(run, permit)
        run.click_begun = True

    try:
        run.guard.ensure()
        _ensure_permitted(run, permit)
        submission = await run.to_the_end(run.site.submit(confirmation, pre_send_check))
    except (EndOrderError, LeaseLostError) as too_late:
        await run.parts.journal.orders.note(run.task_id, "not clicked", str(too_late))
        raise
    except Exception as error:  # noqa: BLE001 -- whatever it was, the site may have taken the order
        return error
    await run.passed(FailpointName.CLICKED)
    return submission


async def _ordered(run: OrderRun, submission: Submission) -> None:
    """Journal first, evidence second, then the thank-you page. Raises EndOrderError where the order may not be paid."""
    told = submission.site_order_id
    log.info(
        "the site's answer to the click: ordered",
        extra={"task_id": run.task_id, "site_order_id": ascii(told)[:MAX_SHOWN]},
    )
    number = carryable_number(told)
    is_anothers = number is not None and number in await numbers_of_others(run)
    run.site_order_id = None if is_anothers else number
    detail = f"the site's answer to the click shows order {number}, which is another task's" if is_anothers else ""
    sequence = await run.journal(
        "ordered", OrderState.ORDERED, site_order_id=None if is_anothers else told, detail=detail
    )
    evidence_ref = await run.keep(Step.ORDER_SUBMIT, submission.page, OrderState.ORDERED)
    await _complete(run, sequence, evidence_ref)
    thanks = await _read_thanks(run, submission)
    if thanks is not None:
        await run.keep(Step.ORDER_SUBMIT, thanks.page, OrderState.ORDERED)
        run.evidence_ref = evidence_ref
    await run.passed(FailpointName.ORDER_JOURNALLED)
    await run.report()
    await run.passed(FailpointName.ORDERED_REPORTED)
    if is_anothers:
        raise needs_human(f"the order was placed, its number is not known: {detail}; it is not paid")
    if run.site_order_id is None:
        which = "shows no order number" if not told else f"shows {ascii(told)[:MAX_SHOWN]}, which is no order number"
        raise needs_human(f"the order was placed, but the site's answer {which}; it is not paid")
    if thanks is not None and thanks.contradicts is not None:
        raise needs_human(
            f"the site's answer to the click shows order {number}, but {thanks.contradicts}; it is not paid"
        )


async def _complete(run: OrderRun, sequence: int, evidence_ref: str) -> None:
    try:
        await run.parts.journal.reports.complete(sequence, evidence_ref)
    except sqlite3.Error as error:
        raise LocalDiskError(f"the journal could not be written: {error}") from error


async def _read_thanks(run: OrderRun, submission: Submission) -> Thanks | None:
    """The thank-you page; None where there is none or it cannot be had in time. Its number is known: a stop, or a lost
    lease, breaks it off.
    """
    if submission.thanks_path is None:
        return None
    seconds = min(THANKS_SECONDS, run.parts.policy.step_seconds / 4)
    try:
        return await run.guard.hold(run.site.read_thanks(submission), seconds=seconds)
    except (LeaseLostError, WorkerStoppingError, StepTimeoutError, SiteError, OSError, httpx.HTTPError) as error:
        log.warning("the thank-you page could not be read: %r", error, extra={"task_id": run.task_id})
        return None


async def _look_for_order(run: OrderRun, intent: Intent, error: Exception, clicked_at: datetime) -> NoReturn:
    """After a click without a good answer: only what the site shows counts, and a person must look in any case."""
    log.warning("the click brought no order number: %r", error, extra={"task_id": run.task_id})
    if isinstance(error, SiteError) and error.page is not None:
        await run.keep(Step.ORDER_SUBMIT, error.page)
    policy = run.parts.policy
    # A clear no of the site is looked at once; a lost answer until the site must show the order.
    patience = 0 if isinstance(error, ItemUnavailableError | LoggedOutError) else policy.lost_answer_look_seconds
    give_up_at = run.parts.clock.elapsed() + patience
    while True:
        judgement, listed = await look(run, intent, clicked_at - CLOCK_TOLERANCE)
        if judgement.order_number is not None or run.parts.clock.elapsed() >= give_up_at:
            break
        async with run.account.given_up():
            await run.guard.wait(policy.lost_answer_interval_seconds)
    words = f"the click was made, its answer was {_words(error)}"
    number = carryable_number(judgement.order_number)
    if number is None:
        await keep_list(run, listed)
        code = error.error_code if isinstance(error, SiteError) else None
        raise needs_human(f"{words}; {judgement.why}", error_code=code)
    run.site_order_id = number
    sequence = await run.journal("found on the site", OrderState.ORDERED, site_order_id=number)
    if (evidence_ref := await keep_list(run, listed)) is not None:
        await _complete(run, sequence, evidence_ref)
    await run.report()
    raise needs_human(f"{words}; the order list shows order {number}; it was not paid")


def _words(error: Exception) -> str:
    return f"no order: {error}" if isinstance(error, SiteError) else f"lost ({type(error).__name__}: {error})"
