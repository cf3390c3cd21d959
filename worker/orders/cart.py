"""Cart, confirmation and amount guard: everything before the click, none of it irreversible."""

from functools import partial

from worker.evidence.store import Step
from worker.failpoints import FailpointName
from worker.orders.ends import End, needs_human
from worker.orders.intent import MAX_YEN, Intent
from worker.orders.matching import difference
from worker.orders.run import OrderRun, StepKind
from worker.orders.state import OrderState
from worker.sites.port import AMOUNT_CODE, Cart, Confirmation, Item, LoggedOutError

CART_ADD = StepKind(Step.CART_ADD, "added to cart", OrderState.IN_CART, FailpointName.CART_ADDED)
CART_CHECK = StepKind(Step.CART_CHECK, "cart checked", OrderState.IN_CART, FailpointName.CART_CHECKED)
ORDER_CONFIRM = StepKind(Step.ORDER_CONFIRM, "confirmed", OrderState.IN_CART, FailpointName.CONFIRMED)


async def fill_cart(run: OrderRun, items: tuple[Item, ...]) -> End | None:
    """Clear what an earlier run left and add the items, a step each; None if they are in."""
    run.stage = Step.CART_ADD
    if not await run.on_site(run.site.check_session()):
        raise LoggedOutError
    left = await run.on_site(run.site.clear_cart())
    if left.items:
        await run.keep(Step.CART_CHECK, left.page)
        return needs_human("the cart could not be emptied before the order was begun")
    for item in items:
        added = await run.step(CART_ADD, partial(run.site.add_to_cart, item))
        if isinstance(added, End):
            return added
    return None


async def check_cart(run: OrderRun, items: tuple[Item, ...]) -> Cart | End:
    """Read the cart, which must hold exactly what was wanted: nothing more, nothing less."""

    def check(shown: Cart) -> End | None:
        differs = difference(items, shown.items)
        return needs_human(f"the cart is not what was wanted: {differs}") if differs else None

    return await run.step(CART_CHECK, run.site.read_cart, check=check)


async def confirm(run: OrderRun, intent: Intent, items: tuple[Item, ...]) -> Confirmation | End:
    """Open the last page before the click; its items and its amount must be right."""
    limit_yen = intent.max_total_yen or run.parts.policy.order_max_total_yen

    def check(shown: Confirmation) -> End | None:
        if differs := difference(items, shown.items):
            return needs_human(f"the confirmation page is not what was wanted: {differs}")
        return guard_amount(shown.payable_yen, limit_yen)

    confirmation = await run.step(
        ORDER_CONFIRM,
        partial(run.site.open_confirmation, intent.options),
        check=check,
        payable_yen=lambda shown: shown.payable_yen,
    )
    if not isinstance(confirmation, End):
        run.payable_yen = confirmation.payable_yen
    return confirmation


def guard_amount(payable_yen: int | None, limit_yen: int | None) -> End | None:
    """Return the end, code 5004, unless the amount is known, not 0 and within a limit."""
    if payable_yen is None or not 0 <= payable_yen <= MAX_YEN:
        return needs_human("the amount to pay could not be read from the confirmation page", error_code=AMOUNT_CODE)
    if payable_yen == 0:
        return needs_human("the shop asks for 0 yen, which no limit can judge", error_code=AMOUNT_CODE, payable_yen=0)
    if limit_yen is None:
        return needs_human(
            "no limit is set: neither max_total_yen in the intent nor RAKUTEN_ORDER_MAX_TOTAL_YEN",
            error_code=AMOUNT_CODE,
            payable_yen=payable_yen,
        )
    if payable_yen > limit_yen:
        return needs_human(
            f"{payable_yen} yen to pay are more than the limit of {limit_yen} yen",
            error_code=AMOUNT_CODE,
            payable_yen=payable_yen,
        )
    return None
