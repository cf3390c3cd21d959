"""Is the order of this task on the site? (docs/specification.md#verification)

The look goes over the account's order list from a day before the task was created, or first taken by this journal if
that was earlier. It leaves out order numbers of other tasks, and says unknown whenever anything is not clear: several
matches, an order with some of the items, a window that was not read to its end, or any failure.

Which orders are other tasks', the gateway is asked once the list has been read: whoever placed an order that is in the
list had its permit before that, so the gateway names the number, or says that it does not know them all.

| the list shows                                       | verdict     |
|------------------------------------------------------|-------------|
| any failure while reading it                         | UNKNOWN     |
| nothing: the task's creation lies in the future      | UNKNOWN     |
| a window that is not fully covered                   | UNKNOWN     |
| one number twice, with different contents            | UNKNOWN     |
| an order with some of the items, other quantities,   | UNKNOWN     |
| or items whose addresses are not of this site's form |             |
| more than one order with exactly the items           | UNKNOWN     |
| one, but other tasks may have orders not known here  | UNKNOWN     |
| one                                                  | ORDERED     |
| none                                                 | NOT_ORDERED |

Where the journal knows the order's number, the order exists: then only its state is looked up.
"""

import logging
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from ordergateway.v1 import order_leases_pb2 as pb

from worker.clock import utc_text
from worker.evidence.store import Step
from worker.gateway.lease_guard import LeaseLostError, WorkerStoppingError
from worker.gateway.wire import from_timestamp, to_duration
from worker.journal.carryable import carryable_number
from worker.orders.intent import Intent
from worker.orders.matching import Overlap, overlap
from worker.orders.other_tasks import OtherTasks, ask_other_tasks, numbers_of_others
from worker.orders.run import LocalDiskError, OrderRun
from worker.orders.state import OrderState, later
from worker.sites.port import Item, OrderList

_log = logging.getLogger(__name__)

LOOK_BACK = timedelta(days=1)
"""The site dates its orders by its own clock: this is how far ours may be ahead of it."""
Verdict = pb.Verification.Verdict


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a list tells: a verdict, why, and the order's number with ORDERED."""

    verdict: "Verdict.ValueType"
    why: str
    order_number: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """What a look told. `state` and `pay_deadline` are the order's on the site, with ORDERED."""

    judgement: Judgement
    window_fully_covered: bool
    evidence_ref: str | None
    begun_at_lease_age: float
    state: OrderState = OrderState.ORDERED
    pay_deadline: datetime | None = None

    def to_wire(self) -> pb.Verification:
        """As a permit request quotes it."""
        return pb.Verification(
            verdict=self.judgement.verdict,
            window_fully_covered=self.window_fully_covered,
            evidence_ref=self.evidence_ref or "",
            begun_at_lease_age=to_duration(self.begun_at_lease_age),
        )


def judge(listed: OrderList, wanted: Sequence[Item], others: OtherTasks) -> Judgement:
    """Read the table above."""
    if not listed.window_fully_covered:
        return Judgement(Verdict.VERDICT_UNKNOWN, "the order list could not be read back to the day before the task")
    if twice := [
        number for number, times in Counter(order.order_number for order in listed.orders).items() if times > 1
    ]:
        return Judgement(Verdict.VERDICT_UNKNOWN, f"orders that are listed twice and differ: {', '.join(twice)}")
    partial = _overlapping(listed, wanted, others.numbers, Overlap.PARTIAL)
    full = _overlapping(listed, wanted, others.numbers, Overlap.FULL)
    if partial:
        return Judgement(Verdict.VERDICT_UNKNOWN, f"orders that may hold some of the items: {', '.join(partial)}")
    if len(full) > 1:
        return Judgement(Verdict.VERDICT_UNKNOWN, f"several orders could be it: {', '.join(full)}")
    if not full:
        return Judgement(Verdict.VERDICT_NOT_ORDERED, "no order with these items is in the list")
    if others.doubt is not None:
        return Judgement(Verdict.VERDICT_UNKNOWN, f"order {full[0]} may belong to another task: {others.doubt}")
    return Judgement(Verdict.VERDICT_ORDERED, f"order {full[0]} has exactly these items", full[0])


def _overlapping(listed: OrderList, wanted: Sequence[Item], others: Collection[str], kind: Overlap) -> list[str]:
    orders = [order for order in listed.orders if carryable_number(order.order_number) not in others]
    return [order.order_number for order in orders if overlap(wanted, order) is kind]


async def verify(run: OrderRun, intent: Intent) -> Finding:
    """Look, keep the pages as evidence and judge. Raises LeaseLostError, WorkerStoppingError, LocalDiskError."""
    begun_at = run.guard.lease_age or 0.0
    run.stage = Step.VERIFY
    if run.site_order_id is not None:
        known = Judgement(Verdict.VERDICT_ORDERED, "the order's number is known", run.site_order_id)
        return await _look_up_state(run, Finding(known, False, None, begun_at))
    judgement, listed = await _look_back(run, intent)
    run.site_order_id = carryable_number(judgement.order_number)  # told at the end, even if no evidence can be kept
    evidence_ref = await keep_list(run, listed)
    finding = Finding(judgement, listed is not None and listed.window_fully_covered, evidence_ref, begun_at)
    return await _look_up_state(run, finding) if judgement.order_number is not None else finding


async def _look_back(run: OrderRun, intent: Intent) -> tuple[Judgement, OrderList | None]:
    """Look from a day before the task was created, whatever a clock that was once wrong says of that moment."""
    created, now = from_timestamp(run.lease.task_created_at), run.parts.clock.now()
    if created > now + LOOK_BACK:
        why = f"the task was created at {utc_text(created)}, which is still to come: how far to look back is not known"
        return Judgement(Verdict.VERDICT_UNKNOWN, why), None
    known = await run.parts.journal.orders.find(run.task_id)
    first_taken = now if known is None else known.created_at
    return await look(run, intent, min(created, first_taken) - LOOK_BACK)


async def look(run: OrderRun, intent: Intent, since: datetime) -> tuple[Judgement, OrderList | None]:
    """One look at the list, without keeping it; any failure of the site is the verdict UNKNOWN."""
    try:
        listed = await run.on_site(run.site.list_orders(since=since, max_pages=run.parts.policy.verify_max_pages))
    except (LeaseLostError, WorkerStoppingError):
        raise
    except Exception as error:  # noqa: BLE001 -- any failure at all means that nothing can be said
        _log.warning("the order list could not be read: %r", error, extra={"task_id": run.task_id})
        return Judgement(Verdict.VERDICT_UNKNOWN, f"the order list could not be read: {error}"), None
    known = await numbers_of_others(run)
    if any(_overlapping(listed, intent.items, known, kind) for kind in (Overlap.FULL, Overlap.PARTIAL)):
        others = await ask_other_tasks(run, known)
    else:
        others = OtherTasks(known)  # nothing is left that could be anybody's
    return judge(listed, intent.items, others), listed


async def keep_list(run: OrderRun, listed: OrderList | None) -> str | None:
    """Keep the pages of a list; return the first one's evidence_ref."""
    refs = [await run.keep(Step.VERIFY, page) for page in listed.pages] if listed is not None else []
    return refs[0] if refs else None


async def _look_up_state(run: OrderRun, finding: Finding) -> Finding:
    """Read how far the order is from its own page; where it can't be read, the order is just ordered."""
    number = finding.judgement.order_number or ""
    state = later(OrderState.ORDERED, run.state)
    try:
        detail = await run.on_site(run.site.order_detail(number))
        evidence_ref = await run.keep(Step.VERIFY, detail.page, detail.order_state or state)
    except (LeaseLostError, WorkerStoppingError, LocalDiskError):
        raise
    except Exception as error:  # noqa: BLE001 -- the order is known; how far it is may stay unknown
        _log.warning("the order's page could not be read: %r", error, extra={"task_id": run.task_id})
        return replace(finding, state=state)
    found = later(state, detail.order_state if detail.found else None)
    return replace(finding, evidence_ref=evidence_ref, state=found, pay_deadline=detail.pay_deadline)
