"""The permit for the one irreversible click (docs/specification.md#click): asked for until it is granted or refused.

| the gateway                         | then                                                   |
|-------------------------------------|--------------------------------------------------------|
| grants it                           | the click, within its time                             |
| has paused dispatch                 | wait while the lease lives, ask again, confirm again   |
| says that the site has not settled  | wait, renew, verify again, ask again, confirm again    |
| says that the lease is invalid      | the lease is lost: nothing more is written to the site |
| says that the terms are over a cap  | needs_human with 5004, no click                        |
| says that a budget has not so much  | needs_human with 5005, no click                        |
| lacks an approval, or one in time   | needs_human, no click                                  |
| says that it is too late            | failed, no click; needs_human for a recovered task     |
| says that its cancel was requested  | the same                                               |
| puts it off for longer than a day   | needs_human, no click                                  |
| refuses otherwise, or cannot be had | needs_human, no click                                  |

The permit counts from the moment the request was sent, on the elapsed clock. It is for the terms that it was asked for
with: where the page that is confirmed again after a wait shows others, nothing is clicked.
"""

import logging
from dataclasses import dataclass

from ordergateway.v1 import errors_pb2

from worker.gateway.bounds import PERMIT_VALID_FOR
from worker.gateway.lease_guard import LeaseLostError
from worker.gateway.port import Refused, Unreachable
from worker.gateway.wire import to_seconds
from worker.journal.records import OrderStatus
from worker.orders.ends import End, needs_human
from worker.orders.intent import Intent
from worker.orders.recovery import apply_finding
from worker.orders.run import OrderRun
from worker.orders.terms import terms_of
from worker.orders.verification import verify
from worker.sites.port import AMOUNT_CODE, Confirmation

_log = logging.getLogger(__name__)

PERMIT_CALL = 15.0
PERMIT_PATIENCE = 20.0
BETWEEN_ASKING = 2.0
# However often a gateway puts it off: then the slot is given free, and a person decides.
LONGEST_POSTPONEMENT = 86_400.0
# A budget may have room later, but an order that waits for it would keep the slot from all others.
BUDGET_CODE = 5005
_OVER_A_LIMIT = {
    errors_pb2.ERROR_REASON_TERMS_OVER_CAP: AMOUNT_CODE,
    errors_pb2.ERROR_REASON_BUDGET_EXCEEDED: BUDGET_CODE,
}
NOT_ASKED = "the gateway could not be asked for a permit"


class PermitExpiredError(Exception):
    """The permit ran out before the click; nothing was sent."""

    def __init__(self) -> None:
        super().__init__("the permit ran out before the click; no click was made")


@dataclass(frozen=True, slots=True)
class Permit:
    """`deadline`: reading of the elapsed clock before which the click must begin. `waited`: the page may be old now."""

    deadline: float
    waited: bool


async def obtain_permit(run: OrderRun, intent: Intent, confirmation: Confirmation) -> Permit | End:
    """Ask until there is a permit for what the page shows, or none will come.

    A repeat after a lost answer gets the same permit.

    Raises LeaseLostError, WorkerStoppingError and StepTimeoutError.
    """
    terms = terms_of(confirmation)
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
                    terms=terms,
                ),
                seconds=PERMIT_CALL,
            )
        except Unreachable as error:
            if run.parts.clock.elapsed() - first_sent >= PERMIT_PATIENCE:
                return needs_human(f"{NOT_ASKED}, so no click was made: {error}")
            await run.guard.wait(BETWEEN_ASKING)
        except Refused as refusal:
            if run.parts.clock.elapsed() - begun >= LONGEST_POSTPONEMENT:
                return needs_human(f"the permit was put off for too long ({refusal.reason_name}): {refusal}")
            if end := await _wait_out(run, intent, confirmation, refusal):
                return end
            first_sent, waited = None, True
        else:
            valid_for = to_seconds(answer.valid_for, PERMIT_VALID_FOR)
            return Permit(deadline=first_sent + valid_for, waited=waited)


async def _wait_out(run: OrderRun, intent: Intent, confirmation: Confirmation, refusal: Refused) -> End | None:
    """Return None when asking again makes sense, and the end where it does not."""
    fields = {"task_id": run.task_id, "reason": refusal.reason_name}
    if refusal.reason == errors_pb2.ERROR_REASON_DISPATCH_PAUSED:
        _log.info("the permit waits: dispatch is paused", extra=fields)
        async with run.account.given_up():
            await run.guard.wait(_delay(refusal))
    elif refusal.reason == errors_pb2.ERROR_REASON_PERMIT_NOT_SETTLED:
        seconds = _delay(refusal)
        _log.info("the permit waits %.0f s for the site to settle", seconds, extra=fields)
        async with run.account.given_up():
            await run.guard.wait(seconds)
        await run.guard.renew()
        return await apply_finding(run, await verify(run, intent))
    elif refusal.reason == errors_pb2.ERROR_REASON_LEASE_INVALID:
        raise LeaseLostError(f"the gateway refused a permit: {refusal}")
    elif refusal.reason == errors_pb2.ERROR_REASON_TOO_LATE:
        return _given_up(run, f"too late: {refusal}")
    elif refusal.reason == errors_pb2.ERROR_REASON_CANCEL_REQUESTED:
        return _given_up(run, "cancelled before the click")
    elif (code := _OVER_A_LIMIT.get(refusal.reason)) is not None:
        return needs_human(
            f"no permit to place the order: {refusal}", error_code=code, payable_yen=confirmation.payable_yen
        )
    else:
        return needs_human(f"no permit to place the order ({refusal.reason_name}): {refusal}")
    return None


def _given_up(run: OrderRun, words: str) -> End:
    """Return the end of an order that is not wanted any more, of which this run clicked nothing.

    The gateway refuses that to a lease without a permit only, so none is on its way. What an earlier lease did is not
    known here.
    """
    if run.recovered:
        return needs_human(f"{words}; nothing was clicked by this run")
    return End(OrderStatus.FAILED, f"{words}; nothing was clicked")


def _delay(refusal: Refused) -> float:
    return BETWEEN_ASKING if refusal.retry_after is None else refusal.retry_after


def ensure_permitted(run: OrderRun, permit: Permit) -> None:
    """Raise PermitExpiredError if the permit's time is over."""
    if run.parts.clock.elapsed() >= permit.deadline:
        raise PermitExpiredError
