"""Cart, confirmation and amount guard: everything before the click, none of it irreversible."""

from worker.evidence.store import Step
from worker.failpoints import FailpointName
from worker.orders.intent import MAX_YEN, Intent
from worker.orders.matching import difference
from worker.orders.run import OrderRun, needs_human
from worker.orders.state import OrderState
from worker.sites.port import AMOUNT_CODE, Confirmation, Item, LoggedOutError


async def fill_cart(run: OrderRun, items: tuple[Item, ...]) -> None:
    """Clears what an earlier run left and adds the items."""
    run.stage = Step.CART_ADD
    if not await run.on_site(run.site.check_session()):
        raise LoggedOutError
    left = await run.on_site(run.site.clear_cart())
    if left.items:
        await run.keep(Step.CART_CHECK, left.page)
        raise needs_human("the cart could not be emptied before the order was begun")
    for item in items:
        page = await run.on_site(run.site.add_to_cart(item))
        await run.keep(Step.CART_ADD, page, OrderState.IN_CART)
    await run.journal("added to cart", OrderState.IN_CART, evidence_ref=run.evidence_ref)
    await run.report()
    await run.passed(FailpointName.CART_ADDED)


async def check_cart(run: OrderRun, items: tuple[Item, ...]) -> None:
    """The cart must hold exactly what was wanted: nothing more, nothing less."""
    run.stage = Step.CART_CHECK
    cart = await run.on_site(run.site.read_cart())
    evidence_ref = await run.keep(Step.CART_CHECK, cart.page)
    if differs := difference(items, cart.items):
        raise needs_human(f"the cart is not what was wanted: {differs}")
    await run.journal("cart checked", OrderState.IN_CART, evidence_ref=evidence_ref)
    await run.report()
    await run.passed(FailpointName.CART_CHECKED)


async def confirm(run: OrderRun, intent: Intent, items: tuple[Item, ...]) -> Confirmation:
    """Opens the last page before the click; its items and its amount must be right."""
    run.stage = Step.ORDER_CONFIRM
    confirmation = await run.on_site(run.site.open_confirmation(intent.options))
    evidence_ref = await run.keep(Step.ORDER_CONFIRM, confirmation.page)
    if differs := difference(items, confirmation.items):
        raise needs_human(f"the confirmation page is not what was wanted: {differs}")
    guard_amount(confirmation.payable_yen, intent.max_total_yen or run.parts.policy.order_max_total_yen)
    run.payable_yen = confirmation.payable_yen
    await run.journal("confirmed", OrderState.IN_CART, evidence_ref=evidence_ref, payable_yen=run.payable_yen)
    await run.report()
    await run.passed(FailpointName.CONFIRMED)
    return confirmation


def guard_amount(payable_yen: int | None, limit_yen: int | None) -> None:
    """The amount guard. Raises EndOrderError, code 5004, unless the amount is known, not 0 and within a limit."""
    if payable_yen is None or not 0 <= payable_yen <= MAX_YEN:
        raise needs_human("the amount to pay could not be read from the confirmation page", error_code=AMOUNT_CODE)
    if payable_yen == 0:
        raise needs_human("the shop asks for 0 yen, which no limit can judge", error_code=AMOUNT_CODE, payable_yen=0)
    if limit_yen is None:
        raise needs_human(
            "no limit is set: neither max_total_yen in the intent nor RAKUTEN_ORDER_MAX_TOTAL_YEN",
            error_code=AMOUNT_CODE,
            payable_yen=payable_yen,
        )
    if payable_yen > limit_yen:
        raise needs_human(
            f"{payable_yen} yen to pay are more than the limit of {limit_yen} yen",
            error_code=AMOUNT_CODE,
            payable_yen=payable_yen,
        )
