"""Reading results of queries: only the normalised fields, and nothing that is not there.

The rule: docs/specification.md#catalogue.

A result is whatever a worker brought. A part that cannot be read is left out, and whoever leaves something out may not
conclude that an order is absent.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from common.order_numbers import MAX_ORDER_NUMBER
from gateway.domain.catalog import ListedOrder, OrderDetail
from gateway.domain.instant import utc_text
from gateway.domain.states import OrderState

_MAX_TEXT: Final = 300
_STATES: Final = {state.value: state for state in OrderState}


@dataclass(frozen=True, slots=True)
class ListReading:
    """What a list shows, newest first. `complete`: every order of the window is in it."""

    orders: tuple[ListedOrder, ...]
    complete: bool


def read_list(result_json: str) -> ListReading:
    """Read a result of the kind order_list."""
    result = json.loads(result_json)
    entries = result.get("orders")
    if not isinstance(entries, list):
        return ListReading((), complete=False)
    read = [_listed(entry) for entry in entries]
    orders = {order.order_number: order for order in read if order is not None}
    complete = result.get("window_fully_covered") is True and None not in read
    return ListReading(tuple(orders.values()), complete)


def read_detail(result_json: str, order_number: str) -> OrderDetail | None:
    """Read a result of the kind order_detail; None where the site did not show this order."""
    result = json.loads(result_json)
    if result.get("found") is not True or result.get("order_number") != order_number:
        return None
    state = result.get("order_state")
    return OrderDetail(
        delivery_status=_text(result.get("delivery_status")) or _text(result.get("stage_label")),
        order_state=_STATES.get(state) if isinstance(state, str) else None,
    )


def _listed(entry: Any) -> ListedOrder | None:
    if not isinstance(entry, dict):
        return None
    number = entry.get("order_number")
    if not isinstance(number, str) or not 0 < len(number) <= MAX_ORDER_NUMBER:
        return None
    return ListedOrder(
        number, _text(entry.get("shop_id")), _text(entry.get("shop_name")), _time(entry.get("order_date"))
    )


def _text(value: Any) -> str:
    """Return a text or a whole number as text, bounded; anything else is empty."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return str(value)[:_MAX_TEXT]


def _time(value: Any) -> str | None:
    """Return a time with its offset as UTC text; anything else is None."""
    try:
        moment = datetime.fromisoformat(value)
        return utc_text(moment) if moment.tzinfo else None
    except (TypeError, ValueError, OverflowError):
        return None
