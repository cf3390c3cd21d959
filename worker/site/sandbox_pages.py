"""Reading the sandbox shop's pages. Pure: bytes in, values out.

Whatever is not where it should be raises PageChangedError with the page, so that nothing is concluded from half a page.
The one exception is an amount: it reads as None, and the worker stops at it.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NoReturn
from urllib.parse import urljoin

from selectolax.lexbor import LexborHTMLParser, LexborNode

from worker.order_state import OrderState
from worker.site.seam import Item, ListedItem, ListedOrder, Page, PageChangedError

_YEN = re.compile(r"([0-9]{1,3}(?:,[0-9]{3})*|[0-9]+)円")
_STATE = re.compile(r"window\.__INITIAL_STATE__\s*=\s*")
_MAX_YEN_DIGITS = 12
_STAGES = {"SHIPPED": OrderState.SHIPPED, "DELIVERED": OrderState.DELIVERED, "CANCELLED": OrderState.CANCELLED}
_PAYMENTS = {"unpaid": OrderState.ORDERED, "waiting": OrderState.AWAITING_PAYMENT, "paid": OrderState.PAID}


@dataclass(frozen=True, slots=True)
class ItemForm:
    """The form of an item's page. `variants`: whether each is in stock; `options`: the choices of each."""

    fields: Mapping[str, str]
    variants: Mapping[str, bool]
    options: tuple[tuple[str, ...], ...]
    sold_out: bool


@dataclass(frozen=True, slots=True)
class CartLine:
    """A line of the cart and the fields of the form that removes it."""

    item: Item
    removal: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ConfirmationForm:
    """The confirmation page's content; `fields` is its form."""

    items: tuple[Item, ...]
    payable_yen: int | None
    payment_method: str
    action: str
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PaymentForm:
    """The payment page's form and the way to pay that it is for."""

    order_number: str
    payment_method: str
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PaymentStatus:
    """What the payment's result page says; `state` is None where the page uses a word that is not known."""

    order_number: str
    state: OrderState | None
    slip_number: str | None
    pay_deadline: datetime | None


@dataclass(frozen=True, slots=True)
class OrderListPage:
    """One page of the order list; `total` counts the orders of all pages."""

    orders: tuple[ListedOrder, ...]
    page: int
    page_count: int
    total: int
    raw: Any


@dataclass(frozen=True, slots=True)
class OrderDetailPage:
    """An order's page; `raw` is its embedded data or None."""

    order_number: str
    stage_label: str
    stage_code: str | None
    order_state: OrderState | None
    pay_deadline: datetime | None
    raw: Any


def _parse(page: Page) -> LexborHTMLParser:
    return LexborHTMLParser(page.html.decode("utf-8", errors="replace"))


def _changed(page: Page, what: str) -> NoReturn:
    raise PageChangedError(f"the page {page.url} (HTTP {page.http_status}) lacks {what}", page=page)


def _need(page: Page, node: LexborHTMLParser | LexborNode, selector: str) -> LexborNode:
    found = node.css_first(selector)
    if found is None:
        _changed(page, selector)
    return found


def _text(node: LexborNode | None) -> str | None:
    return node.text(strip=True) or None if node is not None else None


def _hidden_fields(form: LexborNode) -> dict[str, str]:
    inputs = form.css("input[type=hidden]")
    return {name: node.attributes.get("value") or "" for node in inputs if (name := node.attributes.get("name"))}


def parse_yen(text: str | None) -> int | None:
    """An amount such as `12,800円` as an integer; None for anything else."""
    match = _YEN.fullmatch(text.strip()) if text else None
    digits = match[1].replace(",", "") if match else ""
    return int(digits) if 0 < len(digits) <= _MAX_YEN_DIGITS else None


def parse_time(text: Any) -> datetime | None:
    """A time with its offset, in UTC; None for anything else, a time without an offset included."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else None
    except (TypeError, ValueError, OverflowError):
        return None


def read_refusal(page: Page) -> str | None:
    """What the page says it refuses, None where it refuses nothing."""
    return _text(_parse(page).css_first(".refusal[role=alert]"))


def is_not_found(page: Page) -> bool:
    """True if the shop itself says that there is no such thing."""
    return _parse(page).css_first("#not-found") is not None


def read_login_form(page: Page) -> dict[str, str]:
    """The hidden fields of the login form. Raises PageChangedError."""
    return _hidden_fields(_need(page, _parse(page), "#login-form"))


def read_account_name(page: Page) -> str:
    """Who is logged in. Raises PageChangedError."""
    return _text(_need(page, _parse(page), "#account-name")) or _changed(page, "the account's name")


def read_item_form(page: Page) -> ItemForm:
    """The form of an item's page. Raises PageChangedError."""
    form = _need(page, _parse(page), "#add-to-cart")
    variants = {
        value: "disabled" not in node.attributes
        for node in form.css("input[name=variant_id]")
        if (value := node.attributes.get("value"))
    }
    options = tuple(
        tuple(value for option in select.css("option") if (value := option.attributes.get("value")))
        for select in form.css("select[name=choice]")
    )
    return ItemForm(_hidden_fields(form), variants, options, form.css_first("#sold-out") is not None)


def _read_line(page: Page, row: LexborNode, origin: str) -> Item:
    href = _need(page, row, "a.item-link").attributes.get("href") or _changed(page, "the link of an item")
    quantity = _text(_need(page, row, ".quantity")) or ""
    if not (quantity.isascii() and quantity.isdigit() and len(quantity) < _MAX_YEN_DIGITS):
        _changed(page, "a quantity that can be read")
    choice = tuple(_text(node) or "" for node in row.css("li.choice"))
    return Item(urljoin(origin, href), int(quantity), row.attributes.get("data-variant-id") or None, choice)


def read_cart(page: Page, origin: str) -> tuple[CartLine, ...]:
    """The lines of the cart's page. Raises PageChangedError."""
    cart = _need(page, _parse(page), "#cart")
    if cart.css_first("#cart-empty") is not None:
        return ()
    rows = _need(page, cart, "#cart-lines").css("tr.line")
    if not rows:
        _changed(page, "lines in a cart that is not empty")
    return tuple(
        CartLine(_read_line(page, row, origin), _hidden_fields(_need(page, row, "form.remove"))) for row in rows
    )


def read_confirmation(page: Page, origin: str) -> ConfirmationForm:
    """The confirmation page. Raises PageChangedError, but an amount that cannot be read is None."""
    tree = _parse(page)
    rows = _need(page, tree, "#confirmation #order-lines").css("tr.line") or _changed(page, "lines")
    form = _need(page, tree, "#order-form")
    fields = _hidden_fields(form)
    action = form.attributes.get("action")
    if not fields.get("token") or not action:
        _changed(page, "the form that places the order")
    return ConfirmationForm(
        items=tuple(_read_line(page, row, origin) for row in rows),
        payable_yen=parse_yen(_text(tree.css_first("#payable"))),
        payment_method=_need(page, tree, "#payment-method").attributes.get("data-method") or "",
        action=action,
        fields=fields,
    )


def read_order_number(page: Page) -> str | None:
    """The number on the thank-you page, None where it shows none."""
    return _text(_parse(page).css_first("#thanks #order-number"))


def read_payment_form(page: Page) -> PaymentForm | None:
    """The payment form; None where the page shows none. Raises PageChangedError where the form is not whole."""
    form = _parse(page).css_first("#payment-form")
    if form is None:
        return None
    fields = _hidden_fields(form)
    method = _need(page, form, "#payment-method").attributes.get("data-method")
    if not method or not fields.get("order_number"):
        _changed(page, "the order number or the way to pay")
    return PaymentForm(fields["order_number"], method, fields)


def read_challenge(page: Page) -> str | None:
    """The kind of step that a challenge page asks for, None where it is no such page."""
    block = _parse(page).css_first("#challenge")
    return block.attributes.get("data-kind") if block else None


def read_payment_status(page: Page) -> PaymentStatus:
    """The payment's result. Raises PageChangedError."""
    block = _need(page, _parse(page), "#payment-state")
    deadline = block.css_first("#pay-deadline")
    return PaymentStatus(
        order_number=_text(_need(page, block, "#order-number")) or "",
        state=_PAYMENTS.get(block.attributes.get("data-state") or ""),
        slip_number=_text(block.css_first("#slip-number")),
        pay_deadline=parse_time(deadline.attributes.get("datetime")) if deadline else None,
    )


def read_state(page: Page) -> Any:
    """The page's `__INITIAL_STATE__`, None where there is none that can be read."""
    for script in _parse(page).css("script"):
        text = script.text()
        if match := _STATE.search(text):
            try:
                return json.JSONDecoder().raw_decode(text, match.end())[0]
            except (ValueError, RecursionError):
                return None
    return None


def read_order_list(page: Page) -> OrderListPage:
    """One page of the order list, from its embedded data. Raises PageChangedError; an unreadable date is None."""
    state = read_state(page)
    data = state.get("orderListData") if isinstance(state, dict) else None
    if not isinstance(data, dict) or not isinstance(data.get("orders"), list):
        _changed(page, "orderListData")
    numbers = [data.get(name) for name in ("page", "pageCount", "totalCount")]
    if not all(type(number) is int for number in numbers):
        _changed(page, "page, pageCount or totalCount")
    orders = tuple(_read_listed_order(page, entry) for entry in data["orders"])
    return OrderListPage(orders, data["page"], data["pageCount"], data["totalCount"], data)


def _read_listed_order(page: Page, entry: Any) -> ListedOrder:
    try:
        items = tuple(
            ListedItem(
                item_id=item["itemId"],
                item_name=item["itemName"],
                item_url=item["itemUrl"],
                quantity=item["quantity"] if type(item.get("quantity")) is int else None,
                variant_id=item.get("variantId"),
            )
            for item in entry["items"]
        )
        number, shop = entry["orderNumber"], entry["shop"]
        order = ListedOrder(number, parse_time(entry.get("orderDate")), shop["shopId"], shop["shopName"], items)
    except (TypeError, KeyError, AttributeError):
        _changed(page, "a part of a listed order")
    if not isinstance(number, str) or not number or not all(isinstance(item.item_url, str) for item in items):
        _changed(page, "an order number or an item's link")
    return order


def read_order_detail(page: Page) -> OrderDetailPage | None:
    """An order's page; None where the shop says that there is no such order (yet). Raises PageChangedError."""
    tree = _parse(page)
    if tree.css_first("#order-missing") is not None:
        return None
    stage = _need(page, tree, "#stages li[aria-current=step]")
    code = stage.attributes.get("data-stage-code")
    payment = _need(page, tree, "#payment-state").attributes.get("data-state") or ""
    deadline = tree.css_first("#pay-deadline")
    return OrderDetailPage(
        order_number=_text(_need(page, tree, "#order-number")) or "",
        stage_label=_text(stage) or _changed(page, "the label of the stage"),
        stage_code=code,
        order_state=_order_state(code, payment),
        pay_deadline=parse_time(deadline.attributes.get("datetime")) if deadline else None,
        raw=read_state(page),
    )


def _order_state(stage_code: str | None, payment: str) -> OrderState | None:
    """From shipment on the stage decides, before it the payment does; an unknown stage maps to nothing."""
    if stage_code in ("ACCEPTED", "PREPARING"):
        return _PAYMENTS.get(payment)
    return _STAGES.get(stage_code or "")
