"""Reading the sandbox shop's order list and order pages. Pure, and run as `pages` beside it."""

import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn
from urllib.parse import urlsplit

from worker.orders.state import OrderState
from worker.sites.addresses import same_page
from worker.sites.port import ListedItem, ListedOrder, Page
from worker.sites.sandbox.checkout_pages import PAYMENT_STATES, read_deadline
from worker.sites.sandbox.pages import ITEM_PATH, ORDER_NUMBER, parse_time
from worker.sites.shown import MAX_LINK, Document

MAX_DEPTH = 60
"""Levels of objects and arrays in a page's data; a query's result holds four more around it, and 64 is its limit."""

_STATE = "__INITIAL_STATE__"
_ASSIGNMENT = re.compile(r"\s*window\.__INITIAL_STATE__\s*=")
_MAX_DIGITS = 300
_STAGES = {"SHIPPED": OrderState.SHIPPED, "DELIVERED": OrderState.DELIVERED, "CANCELLED": OrderState.CANCELLED}


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


def read_order_list(page: Page) -> OrderListPage:
    """One page of the order list, from its embedded data. Raises PageChangedError; an unreadable date is None."""
    document = Document(page)
    state = _read_state(document)
    data = state.get("orderListData") if isinstance(state, dict) else None
    if not isinstance(data, dict) or not isinstance(data.get("orders"), list):
        document.changed("orderListData")
    numbers = [data.get(name) for name in ("page", "pageCount", "totalCount")]
    if not all(type(number) is int and number >= 0 for number in numbers):
        document.changed("page, pageCount or totalCount")
    orders = tuple(_read_listed_order(document, entry) for entry in data["orders"])
    return OrderListPage(orders, data["page"], data["pageCount"], data["totalCount"], data)


def read_order_detail(page: Page) -> OrderDetailPage | None:
    """Return an order's page; None where the shop says that there is no such order (yet). Raises PageChangedError."""
    document = Document(page)
    if document.at_most_one("#order-missing") is not None:
        return None
    stage = document.one("#stages li[aria-current=step]")
    code = stage.attributes.get("data-stage-code")
    payment = document.one("#payment-state").attributes.get("data-state") or ""
    return OrderDetailPage(
        order_number=document.text(document.one("#order-number")),
        stage_label=document.text(stage) or document.changed("the label of the stage"),
        stage_code=code,
        order_state=_order_state(code, payment),
        pay_deadline=read_deadline(document),
        raw=_read_state(document),
    )


def _read_state(document: Document) -> Any:
    """Return the page's `__INITIAL_STATE__`; None where there is none, or more than one, or none that can be read."""
    texts = [text for script in document.scripts() if _STATE in (text := script.text())]
    begin = _ASSIGNMENT.match(texts[0]) if len(texts) == 1 else None
    if begin is None:
        return None
    data = texts[0][begin.end() :].rstrip().removesuffix(";")
    try:
        value = json.loads(data, parse_constant=_refuse, parse_int=_integer)
    except (ValueError, RecursionError):
        return None
    return value if _is_shallow(value) else None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _integer(digits: str) -> int:
    """Return an integer in the range of a double, beyond which no reader of a query's result could take it."""
    return int(digits) if len(digits) <= _MAX_DIGITS else _refuse("so large a number")


def _is_shallow(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            child
            for node in level
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
        ]
    return not level


def _read_listed_order(document: Document, entry: Any) -> ListedOrder:
    try:
        number, shop = entry["orderNumber"], entry["shop"]
        items = tuple(_read_listed_item(document, item) for item in entry["items"])
        order = ListedOrder(number, parse_time(entry.get("orderDate")), shop["shopId"], shop["shopName"], items)
    except (TypeError, KeyError, AttributeError):
        document.changed("a part of a listed order")
    if not isinstance(number, str) or not ORDER_NUMBER.fullmatch(number) or not items:
        document.changed("an order number that can be read, or an order's items")
    if type(order.shop_id) not in (int, str) or not isinstance(order.shop_name, str):
        document.changed("an order's shop")
    return order


def _read_listed_item(document: Document, item: Any) -> ListedItem:
    url, quantity, variant_id = item["itemUrl"], item.get("quantity"), item.get("variantId")
    if not _is_url(url) or not isinstance(item["itemName"], str) or type(item["itemId"]) not in (int, str):
        document.changed("the name, the number or the address of a listed item")
    if not (quantity is None or (type(quantity) is int and quantity > 0)):
        document.changed("the quantity of a listed item")
    if not (variant_id is None or isinstance(variant_id, str)):
        document.changed("the variant of a listed item")
    address = _item_address(document, url)
    comparable = address is not None
    return ListedItem(item["itemId"], item["itemName"], address or url, quantity, variant_id, comparable)


def _item_address(document: Document, url: str) -> str | None:
    """Return an item's address in the form that intents use, None where it has not that of this shop.

    A list may add a query to it, or escape a letter of it.
    """
    listed, page = urlsplit(same_page(url)), urlsplit(document.page.url)
    path = f"{listed.path}/"
    is_item = listed.netloc == page.netloc.lower() and ITEM_PATH.fullmatch(path)
    return f"{page.scheme}://{page.netloc}{path}" if is_item else None


def _is_url(text: Any) -> bool:
    try:
        return isinstance(text, str) and len(text) <= MAX_LINK and urlsplit(text).scheme in ("http", "https")
    except ValueError:
        return False


def _order_state(stage_code: str | None, payment: str) -> OrderState | None:
    """From shipment on the stage decides, before it the payment does; an unknown stage maps to nothing."""
    if stage_code in ("ACCEPTED", "PREPARING"):
        return PAYMENT_STATES.get(payment)
    return _STAGES.get(stage_code or "")
