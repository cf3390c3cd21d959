"""The three orders of the demo, and how each must end."""

import json
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class DemoOrder:
    """An order to submit and everything that must be true of it afterwards.

    `states` are the order states in the order of their reports; `orders_in_shop` and `payments_in_shop` are what the
    shop must have counted in all once this order has ended.
    """

    task_id: str
    title: str
    intent: dict[str, object]
    status: str
    states: tuple[str, ...]
    placement: str
    error_code: int | None
    orders_in_shop: int
    payments_in_shop: int

    @property
    def intent_json(self) -> str:
        """The intent as it is submitted."""
        return json.dumps(self.intent, ensure_ascii=False)


def demo_orders(shop_url: str) -> list[DemoOrder]:
    """The orders for the shop at this address, in turn."""

    def item(code: str, **reclaim_request: object) -> dict[str, object]:
        return {"item_url": f"{shop_url}/item/{SHOP}/{code}/", **reclaim_request}

    return [
        DemoOrder(
            task_id="demo-1-card",
            title="Tea and a T-shirt, paid by card",
            intent={
                "items": [item("sencha-100g", quantity=2), item("tshirt-basic", quantity=1, variant_id="white-m")],
                "options": {"payment_method": "card"},
                "max_total_yen": 10_000,
            },
            status="succeeded",
            states=("created", "in_cart", "ordered", "paid"),
            placement="certain",
            error_code=None,
            orders_in_shop=1,
            payments_in_shop=1,
        ),
        DemoOrder(
            task_id="demo-2-over-the-limit",
            title="A camera that costs more than the order may: stops before the click",
            intent={
                "items": [item("camera-body")],
                "options": {"payment_method": "card"},
                "max_total_yen": 30_000,
            },
            status="needs_human",
            states=("created", "in_cart"),
            placement="impossible",
            error_code=5004,
            orders_in_shop=1,
            payments_in_shop=1,
        ),
        DemoOrder(
            task_id="demo-3-3d-secure",
            title="The bank asks for 3-D Secure: ordered, then handed to a person",
            intent={
                "items": [item("mug-named", choice=["ネイビー", "ギフト包装"])],
                "options": {"payment_method": "card_3ds"},
                "max_total_yen": 10_000,
            },
            status="needs_human",
            states=("created", "in_cart", "ordered", "awaiting_payment"),
            placement="certain",
            error_code=None,
            orders_in_shop=2,
            payments_in_shop=1,
        ),
    ]


SHOP: Final = "sandbox-store"
