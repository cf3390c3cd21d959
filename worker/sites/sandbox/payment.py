"""Paying an order at the sandbox shop, by the method that the intent names."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from worker.orders.state import OrderState
from worker.sites.port import AMOUNT_CODE, Page, PageChangedError, Payment, PreSendCheck, SiteError
from worker.sites.sandbox import checkout_pages
from worker.sites.sandbox.visit import Visit, in_utc

CONVENIENCE_STORE = "convenience_store"
PAYMENT_METHODS = tuple(checkout_pages.PAYMENT_LABELS)
HUMAN_STEPS = {"3ds": "3-D Secure", "sms": "SMS code"}
CHALLENGE_PATH = "/payment/challenge"


async def pay(
    visit: Visit, site_order_id: str, payable_yen: int | None, options: Mapping[str, Any], pre_send_check: PreSendCheck
) -> Payment:
    """Open the order's payment page and send its form once; what is paid or has a slip already is not sent."""
    method = payment_method(options)
    page = await visit.page_at("/payment", {"order_number": site_order_id})
    shown = await visit.reader.read(checkout_pages.read_payment_form, page)
    if shown is None:
        return await _payment(visit, site_order_id, page, method)
    if shown.order_number != site_order_id or shown.payment_method != method:
        raise SiteError(f"the payment page is for {shown.order_number} by {shown.payment_method}", page=page)
    if payable_yen is None or shown.payable_yen != payable_yen:
        asked = "an amount that cannot be read" if shown.payable_yen is None else f"{shown.payable_yen} yen"
        message = f"the payment page asks for {asked}, confirmed were {payable_yen} yen; nothing was paid"
        raise SiteError(message, error_code=AMOUNT_CODE, page=page)
    answer = await visit.fine(await visit.http.post_once(shown.form.action, dict(shown.form.fields), pre_send_check))
    if urlsplit(answer.location or "").path == CHALLENGE_PATH:
        page = await visit.landed_if_possible(answer)
        kind = None
        with suppress(PageChangedError):
            kind = await visit.reader.read(checkout_pages.read_challenge, page)
        detail = "the shop shows its identity check; nothing was entered"
        step = HUMAN_STEPS.get(kind or "", "identity check")
        return Payment(OrderState.AWAITING_PAYMENT, None, step, detail, page)
    return await _payment(visit, site_order_id, await visit.landed(answer), method)


async def _payment(visit: Visit, order_number: str, page: Page, method: str) -> Payment:
    """Return what the result page says, as far as it can be true of an order that is paid by this method."""
    status = await visit.reader.read(checkout_pages.read_payment_status, page)
    if status.order_number != order_number:
        raise PageChangedError("the payment page is about another order", page=page)
    in_store = method == CONVENIENCE_STORE
    if status.state is OrderState.PAID and not in_store:
        return Payment(OrderState.PAID, None, None, "paid by card", page)
    if status.state is OrderState.AWAITING_PAYMENT and status.slip_number and in_store:
        detail = f"convenience store payment, slip number {status.slip_number}"
        return Payment(OrderState.AWAITING_PAYMENT, in_utc(status.pay_deadline), None, detail, page)
    shown = "no known state" if status.state is None else status.state.value
    slip = " and a slip" if status.slip_number else ""
    raise SiteError(f"the payment page of an order to be paid by {method} shows {shown}{slip}", page=page)


def payment_method(options: Mapping[str, Any]) -> str:
    """Return how the options say that the order is paid. Raises SiteError where the shop knows no such way."""
    method = options.get("payment_method", PAYMENT_METHODS[0])
    if method not in PAYMENT_METHODS:
        raise SiteError(f"options.payment_method must be one of {', '.join(PAYMENT_METHODS)}")
    return str(method)
