"""How a hostile shop may list an order, and what is made of it: found, or not known, and never not ordered."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.hostile.shop.tampering_shop import TamperingShop
from tests.hostile.shop.test_burning_pages import with_state
from worker.orders.other_tasks import OtherTasks
from worker.orders.verification import Verdict, judge
from worker.sites.port import Item
from worker.sites.sandbox.adapter import SandboxSite

UNKNOWN, ORDERED = Verdict.VERDICT_UNKNOWN, Verdict.VERDICT_ORDERED


def address(change: Callable[[str], str]) -> Callable[[list[Any]], None]:
    def applied(orders: list[Any]) -> None:
        item = orders[0]["items"][0]
        item["itemUrl"] = change(item["itemUrl"])

    return applied


def again(**changes: Any) -> Callable[[list[Any]], None]:
    """The order a second time, with these changes to its item."""

    def applied(orders: list[Any]) -> None:
        copy = json.loads(json.dumps(orders[0]))
        copy["items"][0] |= changes
        orders.append(copy)

    return applied


ROWS: list[tuple[str, Callable[[list[Any]], None], Any]] = [
    ("as it is", lambda _orders: None, ORDERED),
    ("with a query", address(lambda url: url + "?ref=history"), ORDERED),
    ("with a fragment", address(lambda url: url + "#review"), ORDERED),
    ("without a slash", address(lambda url: url.rstrip("/")), ORDERED),
    ("with an escaped letter", address(lambda url: url.replace("sencha", "%73encha")), ORDERED),
    ("over https", address(lambda url: url.replace("http:", "https:")), ORDERED),
    ("on another host", address(lambda url: url.replace("127.0.0.1", "localhost")), UNKNOWN),
    ("of another form", address(lambda url: url.replace("/item/", "/i/")), UNKNOWN),
    ("by its number", address(lambda url: url.split("/item/")[0] + "/?item=1"), UNKNOWN),
    ("with more behind it", address(lambda url: url + "detail/"), UNKNOWN),
    ("twice alike", again(), ORDERED),
    ("twice, with another quantity", again(quantity=7), UNKNOWN),
    ("twice, with another item", again(itemUrl="http://127.0.0.1/item/sandbox-store/camera-body/"), UNKNOWN),
]


@pytest.mark.parametrize(("name", "change", "verdict"), ROWS, ids=[row[0] for row in ROWS])
async def test_an_order_that_is_listed_is_never_not_ordered(
    shop: TamperingShop, site: SandboxSite, name: str, change: Callable[[list[Any]], None], verdict: Any
) -> None:
    number = await shop.control.add_order({"code": "sencha-100g", "quantity": 1})

    def state(text: str) -> str:
        data = json.loads(text)
        change(data["orderListData"]["orders"])
        return json.dumps(data) + " "

    shop.arm("GET", "/account/orders", with_state(state))
    listed = await site.list_orders(since=None, max_pages=1)
    judgement = judge(listed, [Item(shop.item_url("sencha-100g"))], OtherTasks(frozenset()))
    assert judgement.verdict == verdict, f"{name}: {judgement.why}"
    assert judgement.order_number == (number if verdict == ORDERED else None)
