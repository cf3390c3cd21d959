"""What a query's parameters may be, and the exact shapes of the results."""

from datetime import UTC, datetime
from typing import Any

import pytest
from ordergateway.v1.account_queries_pb2 import QUERY_KIND_ORDER_DETAIL, QUERY_KIND_ORDER_LIST

from worker.account_queries.kinds import ListOrders, MalformedParamsError, ShowOrder, parse_query
from worker.orders.state import OrderState
from worker.sites.port import ListedItem, ListedOrder, OrderDetail, OrderList, Page

PAGE = Page("http://shop/", "GET", 200, b"")


class FakeSite:
    """Shows what the test says."""

    def __init__(self, shown: Any) -> None:
        self.shown = shown
        self.asked: Any = None

    async def list_orders(self, *, since: datetime | None, max_pages: int) -> OrderList:
        self.asked = since, max_pages
        shown: OrderList = self.shown
        return shown

    async def order_detail(self, order_number: str) -> OrderDetail:
        self.asked = order_number
        shown: OrderDetail = self.shown
        return shown


def parse(kind: int, params: str) -> ListOrders | ShowOrder:
    return parse_query(kind, params, default_max_pages=3)


@pytest.mark.parametrize(
    "params",
    [
        "[]", "", "no", '"x"', '{"max_pages": 0}', '{"max_pages": 21}', '{"max_pages": "3"}', '{"max_pages": 3.0}',
        '{"max_pages": true}', '{"max_pages": null}', '{"since": "2026-08-01"}', '{"since": "2026-08-01T00:00:00"}',
        '{"since": 5}', '{"since": "soon"}', '{"since": ""}',
    ],
)  # fmt: skip
def test_malformed_params_of_a_list(params: str) -> None:
    with pytest.raises(MalformedParamsError):
        parse(QUERY_KIND_ORDER_LIST, params)


@pytest.mark.parametrize(
    "params", ["{}", '{"order_number": ""}', '{"order_number": 5}', '{"order_number": "a\\nb"}',
               '{"order_number": "' + "x" * 129 + '"}'],
)  # fmt: skip
def test_malformed_params_of_a_detail(params: str) -> None:
    with pytest.raises(MalformedParamsError):
        parse(QUERY_KIND_ORDER_DETAIL, params)


def test_a_kind_of_a_newer_gateway_is_refused() -> None:
    with pytest.raises(MalformedParamsError, match="99"):
        parse(99, "{}")


def test_defaults_and_limits_of_a_list() -> None:
    assert parse(QUERY_KIND_ORDER_LIST, '{"unknown": 1}') == ListOrders(None, None, 3)
    assert parse(QUERY_KIND_ORDER_LIST, '{"since": null, "max_pages": 20}') == ListOrders(None, None, 20)
    since = parse(QUERY_KIND_ORDER_LIST, '{"since": "2026-08-01T09:00:00+09:00", "max_pages": 1}')
    assert since == ListOrders("2026-08-01T09:00:00+09:00", datetime(2026, 8, 1, tzinfo=UTC), 1)


async def test_the_shape_of_a_list() -> None:
    items = (ListedItem(17, "お茶", "http://shop/item", quantity=2, variant_id="m"),)
    orders = (
        ListedOrder("306087-1", datetime(2026, 8, 1, tzinfo=UTC), 306087, "茶の店", items),
        ListedOrder("306087-2", None, 306087, "茶の店", ()),
    )
    raw = {"page": 1, "anything": [None]}
    site: Any = FakeSite(OrderList(orders, False, (raw,), (PAGE,)))
    found = await parse(QUERY_KIND_ORDER_LIST, '{"since": "2026-08-01T00:00:00Z"}').read(site)

    assert site.asked == (datetime(2026, 8, 1, tzinfo=UTC), 3)
    assert found == {
        "kind": "order_list",
        "since": "2026-08-01T00:00:00Z",
        "max_pages": 3,
        "window_fully_covered": False,
        "orders": [
            {
                "order_number": "306087-1",
                "order_date": "2026-08-01T00:00:00.000000Z",
                "shop_id": 306087,
                "shop_name": "茶の店",
                "items": [{"item_id": 17, "item_name": "お茶", "item_url": "http://shop/item"}],
            },
            {
                "order_number": "306087-2",
                "order_date": None,
                "shop_id": 306087,
                "shop_name": "茶の店",
                "items": [],
            },
        ],
        "raw_pages": [raw],
    }


async def test_the_shape_of_a_detail() -> None:
    shown = OrderDetail("306087-1", True, "出荷", "SHIPPED", OrderState.SHIPPED, None, {"any": 1}, PAGE)
    assert await ShowOrder("306087-1").read(_site(shown)) == {
        "kind": "order_detail",
        "order_number": "306087-1",
        "found": True,
        "stage_label": "出荷",
        "delivery_status": "SHIPPED",
        "order_state": "shipped",
        "raw": {"any": 1},
        "raw_available": True,
    }
    missing = OrderDetail("306087-1", False, None, None, None, None, None, PAGE)
    found = await ShowOrder("306087-1").read(_site(missing))
    assert (found["found"], found["order_state"], found["raw"], found["raw_available"]) == (False, None, None, False)


def _site(shown: OrderDetail) -> Any:
    return FakeSite(shown)
