"""The kinds of query: their parameters, checked here since the gateway passes them through, and their results' shapes.

Both the site's own data and normalised fields are given: the fields are the contract, the raw data is for what the
fields do not hold.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias, TypeVar

from ordergateway.v1 import account_queries_pb2

from worker.clock import utc_text
from worker.journal.carryable import carryable_text
from worker.sites.port import ListedOrder, OrderDetail, OrderList, Site

MOST_PAGES = 20
MAX_NUMBER = 128
MAX_TEXT = 4_000

T = TypeVar("T")

Result: TypeAlias = dict[str, Any]


class MalformedParamsError(Exception):
    """The parameters are not what this kind takes; the message names the field and the limit."""


@dataclass(frozen=True, slots=True)
class ListOrders:
    """Read the account's order list. `since` is the text as it was given."""

    since: str | None
    since_at: datetime | None
    max_pages: int

    async def read(self, site: Site) -> Result:
        """Return the result of kind order_list."""
        listed = await site.list_orders(since=self.since_at, max_pages=self.max_pages)
        return _list_result(self, listed)


@dataclass(frozen=True, slots=True)
class ShowOrder:
    """Read one order's page."""

    order_number: str

    async def read(self, site: Site) -> Result:
        """Return the result of kind order_detail. An order that the site does not show (yet) is no error."""
        return _detail_result(await site.order_detail(self.order_number))


def parse_query(kind: int, params_json: str, *, default_max_pages: int) -> ListOrders | ShowOrder:
    """Return what a lease asks for. Raises MalformedParamsError."""
    try:
        params = json.loads(params_json)
    except (ValueError, RecursionError):
        params = None
    if not isinstance(params, dict):
        raise MalformedParamsError("params must be a JSON object")
    if kind == account_queries_pb2.QUERY_KIND_ORDER_LIST:
        since = params.get("since")
        return ListOrders(since, _since(since), _max_pages(params.get("max_pages", default_max_pages)))
    if kind == account_queries_pb2.QUERY_KIND_ORDER_DETAIL:
        number = params.get("order_number")
        if not isinstance(number, str) or not 0 < len(number) <= MAX_NUMBER or not number.isprintable():
            raise MalformedParamsError(f"order_number is required: 1 to {MAX_NUMBER} printable characters")
        return ShowOrder(number)
    raise MalformedParamsError(f"this worker does not know the kind {kind}")


def _since(value: Any) -> datetime | None:
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        pass
    raise MalformedParamsError("since must be an RFC 3339 time with its offset, such as 2026-08-01T00:00:00Z")


def _max_pages(value: Any) -> int:
    if type(value) is not int or not 1 <= value <= MOST_PAGES:
        raise MalformedParamsError(f"max_pages must be a whole number from 1 to {MOST_PAGES}")
    return value


def _list_result(asked: ListOrders, listed: OrderList) -> Result:
    return {
        "kind": "order_list",
        "since": asked.since,
        "max_pages": asked.max_pages,
        "window_fully_covered": listed.window_fully_covered,
        "orders": [_listed_order(order) for order in listed.orders],
        "raw_pages": list(listed.raw_pages),
    }


def _listed_order(order: ListedOrder) -> Result:
    return {
        "order_number": _carried(order.order_number),
        "order_date": None if order.order_date is None else utc_text(order.order_date),
        "shop_id": _carried(order.shop_id),
        "shop_name": _carried(order.shop_name),
        "items": [
            {
                "item_id": _carried(item.item_id),
                "item_name": _carried(item.item_name),
                "item_url": _carried(item.item_url),
            }
            for item in order.items
        ],
    }


def _carried(value: T) -> T | str:
    """Return a text in a form that the contract's JSON takes; the raw data beside it goes if it holds what is not."""
    return carryable_text(value, MAX_TEXT) if isinstance(value, str) else value


def _detail_result(detail: OrderDetail) -> Result:
    return {
        "kind": "order_detail",
        "order_number": detail.order_number,
        "found": detail.found,
        "stage_label": _carried(detail.stage_label),
        "delivery_status": _carried(detail.delivery_status),
        "order_state": None if detail.order_state is None else detail.order_state.value,
        "raw": detail.raw,
        "raw_available": detail.raw is not None,
    }
