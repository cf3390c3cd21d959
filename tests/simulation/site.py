"""The sandbox shop behind the worker's seam: its real logic, its pages reduced to a line, a bad connection between.

What a browser does is done here too: on a connection that was used before and turns out dead, a request is sent again.
"""

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

import httpx

from tests.simulation.loop import Process
from tests.simulation.network import Link, Weather
from worker.order_state import OrderState
from worker.sandbox_shop.catalogue import SHOP_CODE, SHOP_ID, SHOP_NAME
from worker.sandbox_shop.orders import Line, Order, PaymentState, Stage
from worker.sandbox_shop.shop import Shop, ShopError
from worker.site.seam import (
    Cart,
    Confirmation,
    Item,
    ItemUnavailableError,
    LastLook,
    ListedItem,
    ListedOrder,
    LoggedOutError,
    OrderDetail,
    OrderList,
    Page,
    Payment,
    SiteError,
    Submission,
)

T = TypeVar("T")
ORIGIN = "http://shop.test"
ACCOUNT = "buyer@sandbox.example"
TIMEOUT = 8.0
_STAGES = {
    Stage.SHIPPED: OrderState.SHIPPED,
    Stage.DELIVERED: OrderState.DELIVERED,
    Stage.CANCELLED: OrderState.CANCELLED,
}
_PAYMENTS = {
    PaymentState.UNPAID: OrderState.ORDERED,
    PaymentState.WAITING: OrderState.AWAITING_PAYMENT,
    PaymentState.PAID: OrderState.PAID,
}


class SiteWatch(Protocol):
    """Sees what a worker does on the site."""

    def write_begins(self, what: str) -> None: ...
    def submit_begins(self) -> str: ...
    def placed(self, task_id: str, order: Order) -> None: ...
    def pay_begins(self, number: str) -> None: ...
    def paid(self, order: Order) -> None: ...


class SimSite:
    """Implements worker.site.seam.Site for one worker process."""

    name = "sandbox"
    can_order = True

    def __init__(self, shop: Shop, link: Link, process: Process, chance: random.Random, watch: SiteWatch) -> None:
        self._shop = shop
        self._link = link
        self._process = process
        self._chance = chance
        self._watch = watch

    async def _exchange(self, what: str, effect: Callable[[], T], *, fresh: bool = False, writes: bool = False) -> T:
        await self._process.point(f"site: before {what}")
        answer = self._link.loop.create_future()
        tries = 0

        def lost(why: str) -> Exception:
            return httpx.ReadError(f"{what}: {why}")

        def serve(back: Callable[[Any], None]) -> None:
            if self._link.weather.lost_answer and self._chance.random() < self._link.weather.lost_answer / 4:
                back(LoggedOutError() if self._chance.random() < 0.3 else SiteError(f"{what}: HTTP 500"))
                return
            try:
                back(effect())
            except SiteError as error:
                back(error)
            except ShopError as error:
                back(ItemUnavailableError(f"the shop refuses: {error}"))

        while True:
            tries += 1
            # The client's own requests are not duplicated by the network: one connection, one request.
            weather, self._link.weather = self._link.weather, _without_duplicates(self._link.weather)
            self._link.roundtrip(serve, answer, lost)
            self._link.weather = weather
            self._link.later(TIMEOUT, lambda answer=answer: _time_out(answer, what))
            try:
                result: T = await answer
            except httpx.ReadError:
                if fresh or tries > 1 or not writes or self._chance.random() < 0.5:
                    raise
                answer = self._link.loop.create_future()
                continue
            await self._process.point(f"site: after {what}")
            return result

    async def check_session(self) -> bool:
        return await self._exchange("check_session", lambda: True)

    async def clear_cart(self) -> Cart:
        self._watch.write_begins("clear_cart")

        def clear() -> Cart:
            while self._shop.cart(ACCOUNT):
                self._shop.remove_from_cart(ACCOUNT, 0)
            return Cart((), _page("/cart"))

        return await self._exchange("clear_cart", clear)

    async def add_to_cart(self, item: Item) -> Page:
        self._watch.write_begins("add_to_cart")

        def add() -> Page:
            code = item.item_url.rstrip("/").rpartition("/")[2]
            self._shop.add_to_cart(ACCOUNT, code, item.variant_id, item.choice, item.quantity)
            return _page("/cart/add", "POST")

        return await self._exchange("add_to_cart", add, writes=True)

    async def read_cart(self) -> Cart:
        return await self._exchange("read_cart", lambda: Cart(_items(self._shop.cart(ACCOUNT)), _page("/cart")))

    async def open_confirmation(self, options: Mapping[str, Any]) -> Confirmation:
        def confirm() -> Confirmation:
            token, quote = self._shop.quote(ACCOUNT, str(options.get("payment_method", "card")))
            return Confirmation(_items(quote.lines), quote.payable_yen, {"token": token}, _page("/order/confirm"))

        return await self._exchange("open_confirmation", confirm)

    async def _connect(self, last_look: LastLook) -> None:
        """A connection of its own, which may take its time."""
        await asyncio.sleep(self._link.delay())
        last_look()

    async def submit(self, confirmation: Confirmation, last_look: LastLook) -> Submission:
        await self._connect(last_look)
        return await self._submit(confirmation, fresh=True)

    async def _submit(self, confirmation: Confirmation, *, fresh: bool) -> Submission:
        task_id = self._watch.submit_begins()

        def place() -> Submission:
            order = self._shop.submit(ACCOUNT, confirmation.form["token"])
            self._watch.placed(task_id, order)
            shown = order.number if self._chance.random() < 0.97 else None
            return Submission(shown, _page("/order/thanks"))

        return await self._exchange("submit", place, fresh=fresh, writes=True)

    async def pay(
        self, site_order_id: str, payable_yen: int | None, options: Mapping[str, Any], last_look: LastLook
    ) -> Payment:
        del payable_yen, options
        await self._connect(last_look)
        self._watch.pay_begins(site_order_id)

        def pay() -> Payment:
            order = self._shop.order_of(ACCOUNT, site_order_id)
            if order is None:
                raise SiteError("there is no such order")
            self._shop.pay(order)  # as often as it is asked: nothing but the worker keeps it from a second payment
            self._watch.paid(order)
            step = {"3ds": "3-D Secure", "sms": "SMS code"}.get(order.challenge or "")
            return Payment(_PAYMENTS[order.payment], order.pay_deadline, step, "payment page", _page("/payment"))

        return await self._exchange("pay", pay, fresh=True, writes=True)

    async def list_orders(self, *, since: datetime | None, max_pages: int) -> OrderList:
        def look() -> OrderList:
            orders = [
                order for order in self._shop.visible_orders(ACCOUNT) if since is None or order.placed_at >= since
            ]
            size = self._shop.settings.orders_per_page
            shown = orders[: max_pages * size]
            covered = len(shown) == len(orders) and not (
                self._link.weather.lost_answer and self._chance.random() < self._link.weather.lost_answer / 4
            )
            return OrderList(tuple(map(_listed, shown)), covered, (), (_page("/account/orders"),))

        return await self._exchange("list_orders", look)

    async def order_detail(self, order_number: str) -> OrderDetail:
        def detail() -> OrderDetail:
            order = self._shop.order_of(ACCOUNT, order_number)
            page = _page("/account/orders/detail")
            if order is None or order.visible_at > self._shop.now():
                return OrderDetail(order_number, False, None, None, None, None, None, page)
            state = _STAGES.get(order.stage) or _PAYMENTS[order.payment]
            return OrderDetail(
                order_number, True, order.stage.value, order.stage.value, state, order.pay_deadline, {}, page
            )

        return await self._exchange("order_detail", detail)

    async def close(self) -> None: ...


def _without_duplicates(weather: Weather) -> Weather:
    return replace(weather, duplicate=0.0) if weather.duplicate else weather


def _time_out(answer: Any, what: str) -> None:
    if not answer.done():
        answer.set_exception(httpx.ReadTimeout(f"{what}: no answer within {TIMEOUT:g} s"))


def item_url(code: str) -> str:
    return f"{ORIGIN}/item/{SHOP_CODE}/{code}/"


def _page(path: str, method: str = "GET") -> Page:
    return Page(ORIGIN + path, method, 200, path.encode())


def _items(lines: tuple[Line, ...]) -> tuple[Item, ...]:
    return tuple(Item(item_url(line.code), line.quantity, line.variant_id, line.choice) for line in lines)


def _listed(order: Order) -> ListedOrder:
    items = tuple(
        ListedItem(line.item_id, line.name, item_url(line.code), line.quantity, line.variant_id)
        for line in order.quote.lines
    )
    return ListedOrder(order.number, order.placed_at + timedelta(0), SHOP_ID, SHOP_NAME, items)
