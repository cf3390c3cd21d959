"""Paying a placed order, once (docs/specification.md#payment).

| the payment                            | the task ends as                                                  |
|----------------------------------------|-------------------------------------------------------------------|
| paid                                   | succeeded, paid                                                   |
| shown as paid, though none was sent    | needs_human, ordered: whoever paid it, this run did not           |
| in a convenience store                 | needs_human, awaiting_payment, with the deadline                  |
| asks for a step only a person can take | needs_human, scene preserved, no attempt to get round it          |
| fails, or its answer is lost           | needs_human, ordered; the monitor tells later what the site shows |

Until the payment is sent a stop or a lost lease breaks the step off; from then on it is followed to its end. An end
tells whether it was sent (`OrderRun.payment_in_words`).
"""

from worker.evidence.store import Step
from worker.failpoints import FailpointName
from worker.journal.claims import AlreadyRecordedError
from worker.journal.records import OrderStatus
from worker.orders.ends import End, needs_human
from worker.orders.intent import Intent
from worker.orders.run import OrderRun
from worker.orders.state import OrderState


async def pay(run: OrderRun, intent: Intent) -> End:
    """Pay, the last step. Raises LeaseLostError and WorkerStoppingError before anything was paid."""
    number = run.site_order_id
    if run.recovered or number is None:
        recovered = "the order was recovered, and a recovered run never pays"
        why = recovered if run.recovered else "the site told no order number"
        which = "the order" if number is None else f"order {number}"
        return needs_human(f"{why}: pay {which} on the site by hand, then resolve the task")
    run.stage = Step.PAYMENT
    run.guard.ensure()
    try:
        await run.parts.journal.claims.record_payment(run.task_id, number)
    except AlreadyRecordedError:
        why = f"a payment of this task, or of order {number} for another task, is on record already"
        return needs_human(f"{why}; it was not paid again")
    await run.passed(FailpointName.PAYMENT_RECORDED)
    payment = await run.to_the_end_once_sent(
        lambda about_to_send: run.site.pay(number, run.payable_yen, intent.options, about_to_send)
    )
    await run.passed(FailpointName.PAID)
    if payment.state is OrderState.PAID and not run.payment_sent:
        await run.keep(Step.PAYMENT, payment.page)
        return needs_human(f"the site shows order {number} as paid, but no payment was sent by this run")
    await run.keep(Step.PAYMENT, payment.page, payment.state)
    status = OrderStatus.NEEDS_HUMAN
    detail = payment.detail
    if payment.human_step is not None:
        detail = f"only a person can go on: {payment.human_step}. {payment.detail}".strip()
    elif payment.state is OrderState.PAID:
        status = OrderStatus.SUCCEEDED
    return End(status, detail, state=payment.state, pay_deadline=payment.pay_deadline)
