"""What a worker does with a task that it, or another, has had in hand before (docs/specification.md#recovery).

| known                                      | then                                                              |
|--------------------------------------------|-------------------------------------------------------------------|
| the journal has ended the task             | the same end is reported again (`execution`)                      |
| an order is found on the site              | its state is reported; paid or later: succeeded; else needs_human |
| nothing can be said                        | needs_human                                                       |
| not found, but clicked or told as ordered  | needs_human                                                       |
| not found, never clicked                   | go on; the permit quotes this verification                        |

A recovered run never pays: whoever finds an order did not see how it came about.
"""

from worker.failpoints import FailpointName
from worker.journal.records import OrderStatus
from worker.orders.ends import End, needs_human
from worker.orders.intent import Intent
from worker.orders.run import OrderRun
from worker.orders.state import OrderState
from worker.orders.verification import Finding, Verdict, verify

_DONE = (OrderState.PAID, OrderState.SHIPPED, OrderState.DELIVERED)


async def recover(run: OrderRun, intent: Intent) -> End | None:
    """Find out what became of the task; None if the order is to be placed after all."""
    finding = await verify(run, intent)
    await run.passed(FailpointName.VERIFIED)
    return await apply_finding(run, finding)


async def apply_finding(run: OrderRun, finding: Finding) -> End | None:
    """Read the table above for one verification; None if the run may go on."""
    judgement = finding.judgement
    if judgement.verdict == Verdict.VERDICT_ORDERED:
        run.evidence_ref = finding.evidence_ref or run.evidence_ref
        done = finding.state in _DONE
        unpaid = "" if done else f"; not paid by this run: {await run.payment_in_words()}"
        return End(
            OrderStatus.SUCCEEDED if done else OrderStatus.NEEDS_HUMAN,
            f"{judgement.why}; found when the task was taken again{unpaid}",
            state=finding.state,
            site_order_id=judgement.order_number,
            pay_deadline=finding.pay_deadline,
        )
    if judgement.verdict == Verdict.VERDICT_UNKNOWN:
        return needs_human(f"it is not known whether the order was placed: {judgement.why}")
    if run.clicked or run.state.is_placed:
        return needs_human(f"the click was made or an order was reported, but {judgement.why}")
    run.verification = finding.to_wire()
    await run.parts.journal.orders.note(run.task_id, "verified: not ordered", judgement.why)
    return None
