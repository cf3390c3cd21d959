"""The click record, the click, and what is done with its answer (docs/specification.md#click).

| what happens                                              | then                                                   |
|-----------------------------------------------------------|--------------------------------------------------------|
| no disk space can be reserved                             | needs_human, no permit asked                           |
| no permit can be had                                      | needs_human, no click (see `permit`)                   |
| the page shows other terms after a wait for the permit    | needs_human, no click                                  |
| the permit or the lease runs out before the click         | no click; needs_human, or the lease is lost            |
| the site answers with a number                            | ordered, written down at once; then the thank-you page |
| ... and also says something that contradicts an order     | ordered; needs_human, not paid                         |
| the site answers with another task's number               | ordered, number unknown; needs_human, not paid         |
| the site answers without a number                         | ordered, number unknown; needs_human, not paid         |
| the site refuses, or the answer is lost                   | look at the order list; found or not: needs_human      |

"Ordered" and the number are in the journal before anything else is asked of the site, and before any evidence
(see `run`).

The permit's time is looked at again after the click record is on disk, and once more when the connection stands over
which the click is sent. From then on the click is followed to its end: neither a lost lease nor a stop breaks it off.
"""

import logging

import httpx

from worker.evidence.store import Reserve, Step
from worker.failpoints import FailpointName
from worker.gateway.lease_guard import LeaseLostError, StepTimeoutError, WorkerStoppingError
from worker.journal.carryable import MAX_SHOWN, carryable_number
from worker.journal.claims import AlreadyRecordedError
from worker.orders.cart import confirm
from worker.orders.ends import End, needs_human
from worker.orders.intent import Intent
from worker.orders.lost_answer import look_for_order
from worker.orders.other_tasks import numbers_of_others
from worker.orders.permit import Permit, PermitExpiredError, ensure_permitted, obtain_permit
from worker.orders.run import LocalDiskError, OrderRun
from worker.orders.state import OrderState
from worker.orders.terms import terms_of
from worker.sites.port import Confirmation, Item, SiteError, Submission, Thanks

_log = logging.getLogger(__name__)

# The thank-you page is further evidence: it gets this long in all, or a quarter of a step's limit where that is less.
THANKS_SECONDS = 5.0
# How long the gateway is asked for other tasks' orders before the click; the permit depends on it, this does not.
OTHERS_PATIENCE = 5.0


async def submit(run: OrderRun, intent: Intent, items: tuple[Item, ...], confirmation: Confirmation) -> End | None:
    """Go from the confirmation page to a placed order with its number; None if it is placed and may be paid.

    Raises LeaseLostError, WorkerStoppingError, StepTimeoutError and LocalDiskError.
    """
    reserve = run.parts.disk.reserve()
    try:
        _reserve_disk(reserve)
        if run.other_numbers is None:
            await _ask_for_others(run)
        permit = await obtain_permit(run, intent, confirmation)
        if isinstance(permit, End):
            return permit
        await run.passed(FailpointName.PERMITTED)
        if permit.waited:
            await _ask_for_others(run)
            confirmed = await confirm(run, intent, items)
            if isinstance(confirmed, End):
                return confirmed
            if terms_of(confirmed) != terms_of(confirmation):
                return needs_human(_other_terms(confirmation, confirmed), payable_yen=confirmed.payable_yen)
            confirmation = confirmed
        run.stage = Step.ORDER_SUBMIT
        if end := await _record_click(run, permit):
            return end
        clicked_at = run.parts.clock.now()
        answer = await _click(run, confirmation, permit)
    finally:
        reserve.release()
    if isinstance(answer, Exception):
        return await look_for_order(run, intent, answer, clicked_at)
    return answer if isinstance(answer, End) else await _ordered(run, answer)


async def _ask_for_others(run: OrderRun) -> None:
    """Learn whose the orders are that exist before this click; a site may show one of them in answer to it."""
    told = await run.guard.other_orders(seconds=OTHERS_PATIENCE)
    if told is not None:
        run.other_numbers = frozenset(told.site_order_ids)


def _other_terms(permitted: Confirmation, shown: Confirmation) -> str:
    return (
        f"the permit is for {permitted.payable_yen} yen to pay, and after the wait for it the confirmation page shows "
        f"{shown.payable_yen} yen or other items; no click was made"
    )


def _reserve_disk(reserve: Reserve) -> None:
    try:
        reserve.take()
    except OSError as error:
        raise LocalDiskError(f"no disk space could be reserved for the order's evidence: {error}") from error


async def _record_click(run: OrderRun, permit: Permit) -> End | None:
    """Put the click record on disk, inside the permit and the lease. Past this the click is the next thing done."""
    try:
        ensure_permitted(run, permit)
    except PermitExpiredError as expired:
        return needs_human(str(expired))
    run.guard.ensure_may_begin()
    run.clicked = True  # also if the record's answer is lost on the way: it may be on disk
    try:
        await run.parts.journal.claims.record_click(run.task_id, run.lease.lease_token)
    except AlreadyRecordedError:
        return needs_human("the click of this task is on record already; no click was made")
    await run.passed(FailpointName.CLICK_RECORDED)
    return None


async def _click(run: OrderRun, confirmation: Confirmation, permit: Permit) -> Submission | End | Exception:
    """Make the irreversible click, once. What goes wrong is returned: it is not known then whether the order was
    placed.

    Returns an End, or raises LeaseLostError, where it was too late and nothing was sent.
    """

    def pre_send_check() -> None:
        run.guard.ensure()
        ensure_permitted(run, permit)
        run.click_begun = True

    try:
        run.guard.ensure()
        ensure_permitted(run, permit)
        submission = await run.to_the_end(run.site.submit(confirmation, pre_send_check))
    except (PermitExpiredError, LeaseLostError) as too_late:
        await run.parts.journal.orders.note(run.task_id, "not clicked", str(too_late))
        if isinstance(too_late, LeaseLostError):
            raise
        return needs_human(str(too_late))
    except Exception as error:  # noqa: BLE001 -- whatever it was, the site may have taken the order
        return error
    await run.passed(FailpointName.CLICKED)
    return submission


async def _ordered(run: OrderRun, submission: Submission) -> End | None:
    """Journal first, evidence second, then the thank-you page; None if the order may be paid."""
    told = submission.site_order_id
    _log.info(
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
    await run.complete_report(sequence, evidence_ref)
    thanks = await _read_thanks(run, submission)
    if thanks is not None:
        await run.keep(Step.ORDER_SUBMIT, thanks.page, OrderState.ORDERED)
        run.evidence_ref = evidence_ref
    await run.passed(FailpointName.ORDER_JOURNALLED)
    await run.report()
    await run.passed(FailpointName.ORDERED_REPORTED)
    if is_anothers:
        return needs_human(f"the order was placed, its number is not known: {detail}; it is not paid")
    if run.site_order_id is None:
        which = "shows no order number" if not told else f"shows {ascii(told)[:MAX_SHOWN]}, which is no order number"
        return needs_human(f"the order was placed, but the site's answer {which}; it is not paid")
    if thanks is not None and thanks.contradicts is not None:
        return needs_human(
            f"the site's answer to the click shows order {number}, but {thanks.contradicts}; it is not paid"
        )
    return None


async def _read_thanks(run: OrderRun, submission: Submission) -> Thanks | None:
    """Read the thank-you page; None where there is none or it cannot be had in time.

    The order's number is known: a stop, or a lost lease, breaks it off.
    """
    if submission.thanks_path is None:
        return None
    seconds = min(THANKS_SECONDS, run.parts.policy.step_seconds / 4)
    try:
        return await run.guard.hold(run.site.read_thanks(submission), seconds=seconds)
    except (LeaseLostError, WorkerStoppingError, StepTimeoutError, SiteError, OSError, httpx.HTTPError) as error:
        _log.warning("the thank-you page could not be read: %r", error, extra={"task_id": run.task_id})
        return None
