"""Reading the sandbox shop's pages from the confirmation to the payment. Pure, and run as `pages` beside it.

The one exception from its rule is an amount: it reads as None, and the worker stops at it.
"""

import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime

from selectolax.lexbor import LexborNode

from worker.orders.state import OrderState
from worker.sites.forms import Form, read_form
from worker.sites.port import AMOUNT_CODE, Item, Page, PageChangedError
from worker.sites.sandbox.pages import only_form, parse_time, read_line, rows
from worker.sites.shown import Document

PAYABLE_LABEL = "お支払い金額"
PAYMENT_STATES = {"unpaid": OrderState.ORDERED, "waiting": OrderState.AWAITING_PAYMENT, "paid": OrderState.PAID}
PAYMENT_LABELS = {
    "card": "クレジットカード",
    "card_3ds": "クレジットカード 本人認証サービス",
    "card_sms": "クレジットカード SMS認証",
    "convenience_store": "コンビニ前払い",
}
"""Ways to pay by the names that forms send, and what the shop's pages say."""
_YEN = re.compile(r"(0|[1-9][0-9]{0,2}(?:,[0-9]{3})*|[1-9][0-9]*)円")
_MAX_YEN_DIGITS = 12
_MAX_COUNTED_DIGITS = 20
_ANY_AMOUNT = re.compile(r"¥\s*([0-9][0-9,]*)|([0-9][0-9,]*)\s*(万?)\s*円")


@dataclass(frozen=True, slots=True)
class ConfirmationForm:
    """The confirmation page's content and the form that places the order. `unit_prices`: an item's each, in yen."""

    items: tuple[Item, ...]
    unit_prices: tuple[int | None, ...]
    payable_yen: int | None
    payment_method: str
    form: Form


@dataclass(frozen=True, slots=True)
class PaymentForm:
    """The payment page's form, and the order, the way to pay and the amount that it is for."""

    order_number: str
    payment_method: str
    payable_yen: int | None
    form: Form


@dataclass(frozen=True, slots=True)
class PaymentStatus:
    """What the payment's result page says; `state` is None where the page uses a word that is not known."""

    order_number: str
    state: OrderState | None
    slip_number: str | None
    pay_deadline: datetime | None


@dataclass(frozen=True, slots=True)
class Thanks:
    """The thank-you page; `order_number` is None where it shows none."""

    order_number: str | None


def parse_yen(text: str | None) -> int | None:
    """Return an amount such as `12,800円` as an integer; None for anything else."""
    match = _YEN.fullmatch(text.strip()) if text else None
    digits = match[1].replace(",", "") if match else ""
    return int(digits) if 0 < len(digits) <= _MAX_YEN_DIGITS else None


def read_confirmation(page: Page) -> ConfirmationForm:
    """Return the confirmation page. Raises PageChangedError, code 5004, but an amount that cannot be read is None."""
    try:
        document = Document(page)
        confirmation = document.one("#confirmation")
        lines = rows(document, "order-lines")
        return ConfirmationForm(
            items=tuple(read_line(document, row) for row in lines),
            unit_prices=tuple(_unit_price(document, row) for row in lines),
            payable_yen=_payable(document),
            payment_method=_payment_method(document, confirmation),
            form=read_form(document, only_form(document, "order-form"), action="/order/submit", hidden={"token"}),
        )
    except PageChangedError as error:
        error.error_code = AMOUNT_CODE  # what would be paid, or for what, is not clear
        raise


def read_thanks(page: Page) -> Thanks | None:
    """Return the thank-you page, None where it is another. Raises PageChangedError."""
    document = Document(page)
    thanks = document.at_most_one("#thanks")
    if thanks is None:
        return None
    number = document.at_most_one("#order-number")
    return Thanks(None if number is None else document.text(number) or None)


def read_payment_form(page: Page) -> PaymentForm | None:
    """Return the payment form; None where the page shows none. Raises PageChangedError where the form is not whole."""
    document = Document(page)
    if not document.every("form"):
        return None
    form = read_form(document, only_form(document, "payment-form"), action="/payment", hidden={"order_number"})
    return PaymentForm(
        order_number=form.fields["order_number"],
        payment_method=_payment_method(document),
        payable_yen=_payable(document),
        form=form,
    )


def read_challenge(page: Page) -> str | None:
    """Return the kind of step that a challenge page asks for, None where it is none. Raises PageChangedError."""
    block = Document(page).at_most_one("#challenge")
    return None if block is None else block.attributes.get("data-kind")


def read_payment_status(page: Page) -> PaymentStatus:
    """Return the payment's result. Raises PageChangedError."""
    document = Document(page)
    state = document.one("#payment-state").attributes.get("data-state")
    slip = document.at_most_one("#slip-number")
    return PaymentStatus(
        order_number=document.text(document.one("#order-number")),
        state=PAYMENT_STATES.get(state or ""),
        slip_number=None if slip is None else document.text(slip) or None,
        pay_deadline=read_deadline(document),
    )


def read_deadline(document: Document) -> datetime | None:
    """Until when the order is to be paid, in UTC; None where the page shows none. Raises PageChangedError."""
    deadline = document.at_most_one("#pay-deadline")
    return None if deadline is None else parse_time(deadline.attributes.get("datetime"))


def _unit_price(document: Document, row: LexborNode) -> int | None:
    """Return the price of one; None where the line does not show it once and beyond doubt: nothing is judged by it."""
    shown = document.every(".unit-price", row)
    return parse_yen(document.text(shown[0])) if len(shown) == 1 else None


def _payment_method(document: Document, within: LexborNode | None = None) -> str:
    """Return the way to pay, as the page's mark and its text both say."""
    node = document.one("#payment-method", within)
    method = node.attributes.get("data-method") or ""
    if document.text(node) != PAYMENT_LABELS.get(method):
        document.changed("a known way to pay, by its mark and its text alike")
    return method


def _payable(document: Document) -> int | None:
    """Return the amount to pay, None where it is in doubt.

    It is the page's only one, beside the page's only label that says so, and the largest among the facts around it.
    """
    try:
        amount = document.one("#payable, .payable")
        facts = document.one("dl.facts:has(.payable)")
        labels = [dt for dt in document.every("dt", facts) if document.text(dt) == PAYABLE_LABEL]
        said = "".join(document.texts()).count(PAYABLE_LABEL)
        if len(labels) != 1 or said != 1 or document.after(labels[0]) != amount:
            return None
        payable = parse_yen(document.text(amount))
        # 0 is read as such: the amount guard says why it stops there.
        return payable if payable is not None and payable in (0, max(payable, _largest_amount(facts))) else None
    except PageChangedError:
        return None


def _largest_amount(facts: LexborNode) -> int:
    """Of all amounts in yen, however their digits look and whether they are shown or not; 0 where there are none."""
    found = _ANY_AMOUNT.findall(unicodedata.normalize("NFKC", facts.text(deep=True)))
    amounts = [(sign or bare).replace(",", "") + ("0000" if unit else "") for sign, bare, unit in found]
    return max((int(digits[:_MAX_COUNTED_DIGITS]) for digits in amounts), default=0)
