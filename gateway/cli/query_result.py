"""What a worker read on the site, for people. The shapes are the worker's, so whatever does not fit is left out.

The site's own pages (`raw`, `raw_pages`) may be a mebibyte; `--json` has them.
"""

from collections.abc import Iterator
from typing import Any

from common.output import say
from common.tables import print_fields, print_table


def print_result(result: dict[str, Any]) -> None:
    """Print the result of an account query: a table of orders, or one order's page."""
    if isinstance(result.get("orders"), list):
        rows = [_row(order) for order in result["orders"] if isinstance(order, dict)]
        print_table(("order number", "ordered", "shop", "items"), rows, "the site shows no order")
        if result.get("window_fully_covered") is not True:
            say("the list was not read to its end: an order that is missing here may still be there")
    elif result.get("found") is False:
        say("the site does not show this order; a new one may show up only after about ten minutes")
    else:
        print_fields(_fields(result))


def _row(order: dict[str, Any]) -> tuple[str, ...]:
    listed = order.get("items")
    items = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    names = ", ".join(_text(item.get("item_name")) for item in items)
    return _text(order.get("order_number")), _text(order.get("order_date")), _text(order.get("shop_name")), names


def _fields(result: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name in ("order_number", "order_state", "stage_label", "delivery_status"):
        yield name.replace("_", " "), _text(result.get(name))


def _text(value: Any) -> str:
    return "" if value is None else str(value)
