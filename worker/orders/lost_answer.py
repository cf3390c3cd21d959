"""After a click without a good answer: only what the site shows counts, and a person must look in any case.

| the order list shows | the task ends as                             |
|----------------------|----------------------------------------------|
| the order            | needs_human, ordered, with its number        |
| anything else        | needs_human: it may have been placed, or not |
"""

import logging
from datetime import datetime

from worker.evidence.store import Step
from worker.journal.carryable import carryable_number
from worker.orders.ends import End, needs_human
from worker.orders.intent import Intent
from worker.orders.run import OrderRun
from worker.orders.state import OrderState
from worker.orders.verification import LOOK_BACK, keep_list, look
from worker.sites.port import ItemUnavailableError, LoggedOutError, SiteError

_log = logging.getLogger(__name__)


async def look_for_order(run: OrderRun, intent: Intent, error: Exception, clicked_at: datetime) -> End:
    """Look until the site shows the order or must have shown it: the list from a day before the click.

    Raises LeaseLostError, WorkerStoppingError and LocalDiskError.
    """
    _log.warning("the click brought no order number: %r", error, extra={"task_id": run.task_id})
    if isinstance(error, SiteError) and error.page is not None:
        await run.keep(Step.ORDER_SUBMIT, error.page)
    policy = run.parts.policy
    # A clear no of the site is looked at once; a lost answer until the site must show the order.
    patience = 0 if isinstance(error, ItemUnavailableError | LoggedOutError) else policy.lost_answer_look_seconds
    give_up_at = run.parts.clock.elapsed() + patience
    while True:
        judgement, listed = await look(run, intent, clicked_at - LOOK_BACK)
        if judgement.order_number is not None or run.parts.clock.elapsed() >= give_up_at:
            break
        async with run.account.given_up():
            await run.guard.wait(policy.lost_answer_interval_seconds)
    words = f"the click was made, its answer was {_words(error)}"
    number = carryable_number(judgement.order_number)
    if number is None:
        await keep_list(run, listed)
        code = error.error_code if isinstance(error, SiteError) else None
        return needs_human(f"{words}; {judgement.why}", error_code=code)
    run.site_order_id = number
    sequence = await run.journal("found on the site", OrderState.ORDERED, site_order_id=number)
    if (evidence_ref := await keep_list(run, listed)) is not None:
        await run.complete_report(sequence, evidence_ref)
    await run.report()
    return needs_human(f"{words}; the order list shows order {number}; it was not paid")


def _words(error: Exception) -> str:
    return f"no order: {error}" if isinstance(error, SiteError) else f"lost ({type(error).__name__}: {error})"
