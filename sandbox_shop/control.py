"""The control API: misbehaviour on command, changes behind the visitor's back, and the shop's own counts.

JSON in and out, answered only to loopback and, where it changes something, only with `Content-Type: application/json`.
A refusal is 422 with `{"error": "…"}`.

| call | does |
|---|---|
| `GET /_control/counters` | orders_placed, order_numbers, units_sold, units_by_item, submits_received, payments_made, payments_by_order, double_payments, requests (by step) |
| `GET /_control/wait?submits=&orders=&payments=&timeout=` | answers as soon as at least so many were counted: `{"reached": true, "counters": …}`; after `timeout` seconds (default 10) reached is false. `step=confirm&requests=2` waits for requests of any step |
| `GET /_control/orders` | every order, reflected or not |
| `POST /_control/orders` | `{"days_ago": 2, "items": [{"code", "variant_id", "choice", "quantity"}]}`: an order placed elsewhere |
| `POST /_control/orders/{number}` | `{"action": "advance" \\| "cancel" \\| "pay" \\| "reflect" \\| "hide_date"}` |
| `GET`, `POST`, `DELETE /_control/faults` | armed faults; arm one (`sandbox_shop.faults.Fault.from_json`); disarm all |
| `POST /_control/items/{code}` | `{"price_yen": 1200, "stock": 0 \\| {"white-m": 0}}` |
| `POST /_control/cart` | `{"items": […]}`: leftovers in the account's cart |
| `POST /_control/account` | `{"end_sessions": true, "login_refused": true}` |
| `POST /_control/payment` | `{"challenge": "3ds" \\| "sms" \\| null}`: every card payment then asks for it |
"""  # noqa: E501 - a table row is one line

import ipaddress
import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sandbox_shop.faults import Fault
from sandbox_shop.orders import Order, Stage
from sandbox_shop.shop import Shop, ShopError
from sandbox_shop.web import BodyTooLargeError, bounded_body

MAX_WAIT_SECONDS = 120.0

Handler = Callable[[Request, dict[str, Any]], Awaitable[Any]]


def routes(shop: Shop) -> list[Route]:
    """Return the routes of the control API."""
    control = Control(shop)
    table: list[tuple[str, str, Handler]] = [
        ("GET", "/counters", control.counters),
        ("GET", "/wait", control.wait),
        ("GET", "/orders", control.orders),
        ("POST", "/orders", control.add_order),
        ("POST", "/orders/{number}", control.change_order),
        ("GET", "/faults", control.faults),
        ("POST", "/faults", control.arm_fault),
        ("DELETE", "/faults", control.clear_faults),
        ("POST", "/items/{code}", control.change_item),
        ("POST", "/cart", control.fill_cart),
        ("POST", "/account", control.change_account),
        ("POST", "/payment", control.change_payment),
    ]
    return [Route(f"/_control{path}", _endpoint(handler), methods=[method]) for method, path, handler in table]


def _endpoint(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        if request.client is None or not _is_loopback(request.client.host):
            return JSONResponse({"error": "not found"}, 404)
        try:
            body = await _json_object(request) if request.method == "POST" else {}
            return JSONResponse(await handler(request, body))
        except (ShopError, ValueError, BodyTooLargeError) as refusal:
            return JSONResponse({"error": str(refusal) or "the body is too large"}, 422)
        except ClientDisconnect:
            return Response()

    return endpoint


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def _json_object(request: Request) -> dict[str, Any]:
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise ValueError("Content-Type must be application/json")
    try:
        body = json.loads(await bounded_body(request))
    except RecursionError:
        raise ValueError("the body is nested too deeply") from None
    if not isinstance(body, dict):
        raise ValueError("the body must be a JSON object")  # noqa: TRY004 - every refusal is a ValueError
    return body


class Control:
    """The calls of the control API over one shop. They raise ValueError or ShopError to refuse."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop

    async def counters(self, _request: Request, _body: dict[str, Any]) -> Any:
        """Return what the shop counted."""
        return self._shop.counters()

    async def wait(self, request: Request, _body: dict[str, Any]) -> Any:
        """Wait until the counts are reached."""
        params = request.query_params
        submits, orders, payments = (int(params.get(name, "0")) for name in ("submits", "orders", "payments"))
        requests, step = int(params.get("requests", "0")), params.get("step", "")
        timeout = min(float(params.get("timeout", "10")), MAX_WAIT_SECONDS)

        def reached() -> bool:
            counts = self._shop.counters()
            return (
                counts["submits_received"] >= submits
                and counts["orders_placed"] >= orders
                and counts["payments_made"] >= payments
                and self._shop.requests[step] >= requests
            )

        return {"reached": await self._shop.wait_until(reached, timeout), "counters": self._shop.counters()}

    async def orders(self, _request: Request, _body: dict[str, Any]) -> Any:
        """Every order."""
        return {"orders": [self._shown(order) for order in self._shop.orders.values()]}

    async def add_order(self, _request: Request, body: dict[str, Any]) -> Any:
        """Place an order as if elsewhere."""
        placed_at = self._shop.now() - timedelta(days=float(body.get("days_ago", 0)))
        return self._shown(self._shop.add_order_from_elsewhere(placed_at, _articles(body)))

    async def change_order(self, request: Request, body: dict[str, Any]) -> Any:
        """Move an order on."""
        order = self._shop.orders.get(request.path_params["number"])
        if order is None:
            raise ValueError("no such order")
        match body.get("action"):
            case "advance":
                self._shop.advance(order)
            case "cancel":
                order.stage = Stage.CANCELLED
            case "pay":
                self._shop.take_payment(order)
            case "reflect":
                order.visible_at = order.placed_at
            case "hide_date":
                order.date_hidden = True
            case _:
                raise ValueError("action must be one of advance, cancel, pay, reflect, hide_date")
        return self._shown(order)

    async def faults(self, _request: Request, _body: dict[str, Any]) -> Any:
        """Return the armed faults."""
        return {"faults": [fault.to_json() for fault in self._shop.faults.armed()]}

    async def arm_fault(self, request: Request, body: dict[str, Any]) -> Any:
        """Arm a fault."""
        self._shop.faults.arm(Fault.from_json(body))
        return await self.faults(request, body)

    async def clear_faults(self, request: Request, body: dict[str, Any]) -> Any:
        """Disarm all."""
        self._shop.faults.clear()
        return await self.faults(request, body)

    async def change_item(self, request: Request, body: dict[str, Any]) -> Any:
        """Change price or stock."""
        product = self._shop.products.get(request.path_params["code"])
        if product is None:
            raise ValueError("no such item")
        stock = body.get("stock", {})
        changes = stock if isinstance(stock, dict) else dict.fromkeys(product.stock, stock)
        price = body.get("price_yen", product.price_yen)
        if not set(changes) <= set(product.stock) or not all(_is_count(units) for units in changes.values()):
            raise ValueError("stock must be a count, or counts by variant_id of this item")
        if not _is_count(price):
            raise ValueError("price_yen must be a whole number of at least 0")
        product.price_yen = price
        product.stock.update(changes)
        return {"code": product.code, "price_yen": price, "stock": {key or "": n for key, n in product.stock.items()}}

    async def fill_cart(self, _request: Request, body: dict[str, Any]) -> Any:
        """Leave something in the cart."""
        account = self._shop.settings.username
        for code, variant_id, choice, quantity in _articles(body):
            self._shop.add_to_cart(account, code, variant_id, choice, quantity)
        return {"lines": len(self._shop.cart(account))}

    async def change_account(self, _request: Request, body: dict[str, Any]) -> Any:
        """End sessions, refuse or allow logging in."""
        if body.get("end_sessions"):
            self._shop.end_sessions()
        self._shop.login_refused = bool(body.get("login_refused", self._shop.login_refused))
        return {"login_refused": self._shop.login_refused}

    async def change_payment(self, _request: Request, body: dict[str, Any]) -> Any:
        """Switches a challenge for card payments on or off."""
        challenge = body.get("challenge")
        if challenge not in ("3ds", "sms", None):
            raise ValueError("challenge must be 3ds, sms or null")
        self._shop.forced_challenge = challenge
        return {"challenge": challenge}

    def _shown(self, order: Order) -> dict[str, Any]:
        return {
            **order.to_list_entry(""),
            "placedHere": order.placed_here,
            "payments": order.payments,
            "reflected": order.visible_at <= self._shop.now(),
        }


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _articles(body: dict[str, Any]) -> list[tuple[str, str | None, tuple[str, ...], int]]:
    try:
        return [
            (str(item["code"]), item.get("variant_id"), tuple(item.get("choice", ())), int(item.get("quantity", 1)))
            for item in body["items"]
        ]
    except (KeyError, TypeError, AttributeError):
        raise ValueError("items must be a list of {code, variant_id, choice, quantity}") from None
