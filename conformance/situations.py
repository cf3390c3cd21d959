"""The situations that a worker is put into. What one yields was done against the contract.

Of every order in them all rules are judged; what a situation yields beside is about how its orders end.
"""

import itertools
from collections.abc import AsyncIterator, Callable
from typing import Final

from ordergateway.v1 import errors_pb2, orders_pb2
from ordergateway.v1 import order_leases_pb2 as pb

from conformance.gateway import HONEST, LEASE_INVALID, LOST, Bend
from conformance.rules import reason_name
from conformance.shop import ITEM
from conformance.stage import Stage
from conformance.story import Outcome
from sandbox_shop.faults import Fault, FaultKind

FAILED, NEEDS_HUMAN, SUCCEEDED = (
    orders_pb2.TASK_STATUS_FAILED,
    orders_pb2.TASK_STATUS_NEEDS_HUMAN,
    orders_pb2.TASK_STATUS_SUCCEEDED,
)
UNKNOWN_REASON: Final = 9_999
SHORT_LEASE: Final = 3.0
"""Seconds: a worker renews it once a second, and the shop is slower than that."""

Findings = AsyncIterator[str]
Situation = Callable[[Stage], Findings]

_REASON: Final = errors_pb2.ErrorReason.Value
REFUSALS: Final[dict[int, tuple[int, int]]] = {
    **{
        _REASON(f"ERROR_REASON_{name}"): (NEEDS_HUMAN, 0)
        for name in (
            "PERMIT_ORDER_KNOWN", "PERMIT_NOT_VERIFIED", "PERMIT_OTHER_JOURNAL", "PERMIT_NOT_ATTESTED",
            "PERMIT_EXPIRED", "PERMIT_TERMS_REQUIRED", "PERMIT_TERMS_CHANGED", "APPROVAL_REQUIRED", "APPROVAL_EXPIRED",
        )
    },
    errors_pb2.ERROR_REASON_TERMS_OVER_CAP: (NEEDS_HUMAN, 5004),
    errors_pb2.ERROR_REASON_BUDGET_EXCEEDED: (NEEDS_HUMAN, 5005),
    errors_pb2.ERROR_REASON_TOO_LATE: (FAILED, 0),
    errors_pb2.ERROR_REASON_CANCEL_REQUESTED: (FAILED, 0),
    UNKNOWN_REASON: (NEEDS_HUMAN, 0),
}  # fmt: skip
"""How a task ends whose permit is refused so, and with which error code; 0: any."""


async def order(stage: Stage) -> Findings:
    """An order goes through: acknowledged, permitted, clicked once, paid, and ended."""
    placed = await stage.place(stage.order())
    for finding in stage.ends_as(placed, SUCCEEDED):
        yield finding
    numbers = {call.request.site_order_id for call in placed.story.calls("ReportOrder") if call.request.site_order_id}
    if numbers != set(stage.shop.orders):
        yield f"the shop took {sorted(stage.shop.orders)}, reported were {sorted(numbers)}"


async def late_acknowledgement(stage: Stage) -> Findings:
    """The first renewal is lost twice, then answered late: until then nothing is done."""
    placed = await stage.place(stage.order(RenewLease=[LOST, LOST, Bend(held=1.0)]))
    for finding in stage.ends_as(placed, SUCCEEDED):
        yield finding


async def refused_acknowledgement(stage: Stage) -> Findings:
    """The first renewal is refused: nothing is done at all."""
    refused = await stage.leave(stage.order(RenewLease=itertools.repeat(Bend(reason=LEASE_INVALID))))
    if refused.story.calls("RequestSubmitPermit"):
        yield "a permit was asked for under a lease that was never acknowledged"


async def lease_again(stage: Stage) -> Findings:
    """The stream breaks as it brings the lease; and when the task has ended, the same lease is handed out again."""
    placed = stage.order()
    placed.broken_streams = 1
    await stage.place(placed)
    for finding in stage.ends_as(placed, SUCCEEDED):
        yield finding
    before = len(placed.story.visits("submit", "cart_add"))
    await stage.hand_out_again(placed)
    if len(placed.story.visits("submit", "cart_add")) != before:
        yield "a lease whose token the worker knew was executed again"


async def lost_answers(stage: Stage) -> Findings:
    """Of every call the first answer is lost, of reports every other one."""
    every_other = itertools.cycle((LOST, HONEST))
    placed = await stage.place(
        stage.order(RenewLease=[LOST], RequestSubmitPermit=[LOST, LOST], ReportOrder=every_other)
    )
    for finding in stage.ends_as(placed, SUCCEEDED):
        yield finding


async def refusals(stage: Stage) -> Findings:
    """The permit is refused, once for each reason: no click, and the end that the reason asks for."""
    for reason, (status, code) in REFUSALS.items():
        refused = await stage.place(stage.order(RequestSubmitPermit=[Bend(reason=reason)]))
        for finding in stage.ends_as(refused, status, code):
            yield f"{reason_name(reason)}: {finding}"
    unsettled = [
        Bend(reason=errors_pb2.ERROR_REASON_PERMIT_NOT_SETTLED),
        Bend(reason=_REASON("ERROR_REASON_PERMIT_ORDER_KNOWN")),
    ]
    refused = await stage.place(stage.order(RequestSubmitPermit=unsettled))
    for finding in stage.ends_as(refused, NEEDS_HUMAN):
        yield f"PERMIT_NOT_SETTLED: {finding}"
    await stage.leave(stage.order(RequestSubmitPermit=itertools.repeat(Bend(reason=LEASE_INVALID))))


async def dry_run(stage: Stage) -> Findings:
    """A dry run: the permit is asked for once, refused, the cart emptied, and the end is succeeded."""
    dry = stage.order(RequestSubmitPermit=itertools.repeat(Bend(reason=errors_pb2.ERROR_REASON_PERMIT_DRY_RUN)))
    dry.lease.stop_before_submit = True
    await stage.place(dry)
    for finding in stage.ends_as(dry, SUCCEEDED):
        yield finding
    if len(dry.story.calls("RequestSubmitPermit")) != 1:
        yield "a dry run shows its terms by one request for a permit"
    if stage.shop.has_full_carts:
        yield "after a dry run something is left in the cart"


async def pause(stage: Stage) -> Findings:
    """Dispatch is paused twice, then the permit is granted; and a second time, while the price changes: no click."""
    paused = Bend(reason=errors_pb2.ERROR_REASON_DISPATCH_PAUSED)
    placed = await stage.place(stage.order(RequestSubmitPermit=[paused, paused]))
    for finding in stage.ends_as(placed, SUCCEEDED):
        yield finding

    async def dearer(_request: object) -> None:
        stage.shop.products[ITEM].price_yen += 100

    dear = Bend(reason=errors_pb2.ERROR_REASON_DISPATCH_PAUSED, first=dearer)
    changed = await stage.place(stage.order(RequestSubmitPermit=[dear]))
    if changed.story.visits("submit"):
        yield "the price changed during the wait for the permit, and the worker clicked all the same"
    for finding in stage.ends_as(changed, NEEDS_HUMAN):
        yield finding


async def permit_time(stage: Stage) -> Findings:
    """The permit's answer comes when its time, which counts from the request, is over: no click."""
    late = stage.order(RequestSubmitPermit=[Bend(held=2.5)])
    late.permit_seconds = 1.0
    await stage.place(late)
    for finding in stage.ends_as(late, NEEDS_HUMAN):
        yield finding


async def lease_refused(stage: Stage) -> Findings:
    """While the shop is slow, a renewal is refused: nothing more is written, and a refused report is not repeated."""
    slow = SHORT_LEASE * 0.8
    lost = stage.order(RenewLease=itertools.chain([HONEST], itertools.repeat(Bend(reason=LEASE_INVALID))))
    lost.lease.lease_ttl.FromNanoseconds(int(SHORT_LEASE * 1e9))
    stage.shop.faults.arm(Fault(FaultKind.SLOW, "confirm", seconds=slow))
    await stage.leave(lost)
    if not lost.story.calls("RenewLease", Outcome.REFUSED):
        yield f"no renewal came within {slow:.1f} s of a lease of {SHORT_LEASE:.0f} s"


async def lease_expired(stage: Stage) -> Findings:
    """While the shop is slow, no renewal is answered until the lease has run out: nothing more is written."""
    expired = stage.order(RenewLease=itertools.chain([HONEST], itertools.repeat(LOST)))
    expired.lease.lease_ttl.FromNanoseconds(int(SHORT_LEASE * 1e9))
    stage.shop.faults.arm(Fault(FaultKind.SLOW, "confirm", seconds=SHORT_LEASE + 1.0))
    await stage.leave(expired)
    if expired.story.visits("submit"):
        yield "a click under a lease that had run out"


async def gateway_restart(stage: Stage) -> Findings:
    """The gateway goes away as the permit is asked for, and comes back a second later."""
    placed = await stage.place(stage.order(RequestSubmitPermit=[Bend(first=stage.restart_gateway)]))
    for finding in stage.ends_as(placed, SUCCEEDED):
        yield finding


async def killed_before_the_click(stage: Stage) -> Findings:
    """The worker is killed as it asks for the permit, and started again; then a person requeues the task."""
    killed = await stage.place_killed(stage.order(RequestSubmitPermit=[Bend(first=stage.kill_worker)]))
    for finding in stage.ends_as(killed, None):
        yield finding


async def killed_after_the_click(stage: Stage) -> Findings:
    """The worker is killed as it reports the order, and started again: it says so again, and never clicks again."""
    after_the_click = range(orders_pb2.ORDER_STATE_ORDERED, orders_pb2.ORDER_STATE_CANCELLED)

    async def kill_once(request: pb.ReportOrderRequest) -> None:
        if request.state in after_the_click and not stage.has_killed:
            await stage.kill_worker(request)

    killed = await stage.place_killed(stage.order(ReportOrder=itertools.repeat(Bend(first=kill_once))))
    for finding in stage.ends_as(killed, None):
        yield finding


async def foreign_lease(stage: Stage) -> Findings:
    """A lease for an account that was not asked for: it is not acknowledged, and nothing is done."""
    foreign = stage.order()
    foreign.lease.account = "somebody-else"
    await stage.leave(foreign)
    if foreign.story.calls("RenewLease"):
        yield "a lease of an account that the worker had not asked for was acknowledged"
    if foreign.story.visits("cart_add", "submit"):
        yield "a lease of an account that the worker had not asked for was executed"


SITUATIONS: Final[dict[str, Situation]] = {
    situation.__name__.replace("_", "-"): situation
    for situation in (
        order, late_acknowledgement, refused_acknowledgement, lease_again, foreign_lease, lost_answers, refusals,
        dry_run, pause, permit_time, lease_refused, lease_expired, gateway_restart, killed_before_the_click,
        killed_after_the_click,
    )
}  # fmt: skip
"""By the names that the command prints and takes."""
