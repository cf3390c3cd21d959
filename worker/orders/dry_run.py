"""The end of a dry run: the terms are shown, the cart is emptied, nothing is clicked (docs/specification.md#dry-run).

| what happens                                        | then                                    |
|-----------------------------------------------------|-----------------------------------------|
| the gateway refuses the permit, whatever the reason | succeeded at in_cart, "dry run"         |
| it cannot be asked, or grants one                   | the same; the detail says so            |
| it says that the lease is invalid                   | the lease is lost                       |
| the cart cannot be emptied                          | needs_human                             |
"""

from ordergateway.v1 import errors_pb2

from worker.gateway.lease_guard import LeaseLostError
from worker.gateway.port import Refused, Unreachable
from worker.journal.records import OrderStatus
from worker.orders.ends import End, needs_human
from worker.orders.permit import PERMIT_CALL
from worker.orders.run import OrderRun
from worker.orders.terms import terms_of
from worker.sites.port import Confirmation

DETAIL = "dry run"


async def end_dry_run(run: OrderRun, confirmation: Confirmation) -> End:
    """Show the terms and empty the cart. Raises what `OrderRun.on_site` raises."""
    remark = await _show_terms(run, confirmation)
    left = await run.on_site(run.site.clear_cart())
    if left.items:
        return needs_human(f"{DETAIL}: the cart could not be emptied", payable_yen=confirmation.payable_yen)
    return End(OrderStatus.SUCCEEDED, f"{DETAIL}{remark}", payable_yen=confirmation.payable_yen)


async def _show_terms(run: OrderRun, confirmation: Confirmation) -> str:
    """Request the permit that is always refused, so that the gateway has the terms; return what else is to be said."""
    try:
        await run.guard.hold(
            run.parts.gateway.request_permit(
                run.task_id,
                run.lease.lease_token,
                attests_no_click_record=False,
                verification=run.verification,
                terms=terms_of(confirmation),
            ),
            seconds=PERMIT_CALL,
        )
    except Unreachable as error:
        return f"; the gateway could not be shown the terms: {error}"
    except Refused as refusal:
        if refusal.reason == errors_pb2.ERROR_REASON_LEASE_INVALID:
            raise LeaseLostError(f"the gateway refused the terms: {refusal}") from refusal
        return ""
    return "; the gateway granted a permit for it, which was not used"
