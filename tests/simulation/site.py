"""The sandbox shop behind the worker's seam: its real logic, its pages reduced to a line, a bad connection between.

What a browser does is done here too: on a connection that was used before and turns out dead, a request is sent again.
"""

import asyncio
import random
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Protocol, TypeVar

import httpx

from common.target import Target
from sandbox_shop.catalogue import SHOP_CODE, SHOP_ID, SHOP_NAME
from sandbox_shop.orders import Line, Order, PaymentState, Stage
from sandbox_shop.shop import ShopError
from tests.simulation.loop import Process
from tests.simulation.network import Link
from tests.simulation.shop import ACCOUNT, SimShop
from worker.orders.state import OrderState
from worker.sites.port import (
    Cart,
    Confirmation,
    Item,
    ItemUnavailableError,
    ListedItem,
    ListedOrder,
    LoggedOutError,
    OrderDetail,
    OrderList,
    Page,
    Payment,
    PreSendCheck,
    SiteError,
    Submission,
    Thanks,
)

T = TypeVar("T")
ORIGIN = "http://shop.test"
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

    def write_begins(self, worker: Any, what: str, session: Target) -> None: ...
    def submit_begins(self, worker: Any, opened_at: float, session: Target) -> None: ...
    def submit_broken_off(self, worker: Any, began: float) -> None: ...
    def placed(self, worker_name: str, task_id: str, order: Order, session: Target) -> None: ...
    def pay_begins(self, worker: Any, number: str, session: Target) -> None: ...
    def paid(self, order: Order) -> None: ...
    def cart_cleared(self, lines: int) -> None: ...
    def looked(
        self, worker: Any, began: float, shown: tuple[list[Order], list[Order]], *, read: bool, covered: bool
    ) -> None: ...


class Buyer(Protocol):
    """The worker that is on the site."""

    @property
    def name(self) -> str: ...
    @property
    def current_task(self) -> str: ...


class SimSite:
    """Implements worker.sites.port.Site for one worker process, in the session of one account."""

    can_order = True

    def __init__(
        self,
        target: Target,
        shop: SimShop,
        link: Link,
        process: Process,
        chance: random.Random,
        watch: SiteWatch,
        worker: Buyer,
    ) -> None:
        self.target = target
        self.name, self.account = target
        self._shop = shop
        self._link = link
        self._process = process
        self._chance = chance
        self._watch = watch
        self._worker = worker
        self._opened: dict[str, float] = {}

    async def _exchange(self, what: str, effect: Callable[[], T], *, fresh: bool = False, writes: bool = False) -> T:
        await self._process.point(f"site: before {what}")
        answer = self._link.loop.create_future()
        tries = 0

        def lost(why: str) -> Exception:
            return httpx.ReadError(f"{what}: {why}")

        def serve(back: Callable[[Any], None]) -> None:
            refuses = self._link.weather_at(what).lost_answer / 4
            if refuses and self._chance.random() < refuses:
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
            self._link.roundtrip(serve, answer, lost, what, twice=False)  # one connection, one request
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
        self._watch.write_begins(self._worker, "clear_cart", self.target)

        def clear() -> Cart:
            self._watch.cart_cleared(self._shop.empty_cart())
            return Cart((), self._page("/cart"))

        return await self._exchange("clear_cart", clear)

    async def add_to_cart(self, item: Item) -> Page:
        self._watch.write_begins(self._worker, "add_to_cart", self.target)

        def add() -> Page:
            code = item.item_url.rstrip("/").rpartition("/")[2]
            self._shop.add_to_cart(ACCOUNT, code, item.variant_id, item.choice, item.quantity)
            return self._page("/cart/add", "POST")

        return await self._exchange("add_to_cart", add, writes=True)

    async def read_cart(self) -> Cart:
        return await self._exchange("read_cart", lambda: Cart(_items(self._shop.cart(ACCOUNT)), self._page("/cart")))

    async def open_confirmation(self, options: Mapping[str, Any]) -> Confirmation:
        begun = self._link.loop.time()

        def confirm() -> Confirmation:
            token, quote = self._shop.quote(ACCOUNT, str(options.get("payment_method", "card")))
            self._opened[token] = begun
            prices = tuple(line.unit_price_yen for line in quote.lines)
            page = self._page("/order/confirm")
            return Confirmation(_items(quote.lines), quote.payable_yen, {"token": token}, page, prices)

        return await self._exchange("open_confirmation", confirm)

    async def _connect(self, pre_send_check: PreSendCheck) -> None:
        """A connection of its own, which may take its time."""
        await asyncio.sleep(self._link.connecting("submit"))
        pre_send_check()

    async def submit(self, confirmation: Confirmation, pre_send_check: PreSendCheck) -> Submission:
        began = self._link.loop.time()
        try:
            await self._connect(pre_send_check)
            return await self._submit(confirmation, fresh=True)
        except asyncio.CancelledError:
            if self._process.runs:
                self._watch.submit_broken_off(self._worker, began)
            raise

    async def _submit(self, confirmation: Confirmation, *, fresh: bool) -> Submission:
        task_id, token = self._worker.current_task, confirmation.form["token"]
        self._watch.submit_begins(self._worker, self._opened[token], self.target)

        def place() -> Submission:
            order = self._shop.submit(ACCOUNT, token)
            self._watch.placed(self._worker.name, task_id, order, self.target)
            shown = order.number if self._chance.random() < 0.97 else None
            return Submission(shown, self._page("/order/thanks"))

        return await self._exchange("submit", place, fresh=fresh, writes=True)

    async def read_thanks(self, submission: Submission) -> Thanks:
        return Thanks(submission.page)  # the answer to the click says it all here

    async def pay(
        self, site_order_id: str, payable_yen: int | None, options: Mapping[str, Any], pre_send_check: PreSendCheck
    ) -> Payment:
        del payable_yen, options
        await self._connect(pre_send_check)
        self._watch.pay_begins(self._worker, site_order_id, self.target)

        def pay() -> Payment:
            order = self._shop.order_of(ACCOUNT, site_order_id)
            if order is None:
                raise SiteError("there is no such order")
            self._shop.pay(order)  # as often as it is asked: nothing but the worker keeps it from a second payment
            self._watch.paid(order)
            step = {"3ds": "3-D Secure", "sms": "SMS code"}.get(order.challenge or "")
            return Payment(_PAYMENTS[order.payment], order.pay_deadline, step, "payment page", self._page("/payment"))

        return await self._exchange("pay", pay, fresh=True, writes=True)

    async def list_orders(self, *, since: datetime | None, max_pages: int) -> OrderList:
        """Page by page, until an order older than `since` or the end."""
        began, shown = self._link.loop.time(), self._shop.visible_orders(ACCOUNT)
        read, covered = False, False
        orders: dict[str, ListedOrder] = {}
        pages: list[Page] = []
        try:
            for number in range(1, max_pages + 1):
                listed, last, page = await self._exchange("list_orders", partial(self._list_page, number))
                if number > 1:
                    self._link.count("pages turned")
                orders |= {order.order_number: order for order in listed}
                pages.append(page)
                covered = last or any(since is not None and _date(order) < since for order in listed)
                if covered:
                    break
            if self._chance.random() < self._link.weather_at("list_orders").lost_answer / 4:
                covered = False  # a page that has changed, say
            read = True
        finally:
            if self._process.runs:
                in_the_end = self._shop.visible_orders(ACCOUNT)
                self._watch.looked(self._worker, began, (shown, in_the_end), read=read, covered=covered)
        wanted = tuple(order for order in orders.values() if since is None or _date(order) >= since)
        return OrderList(wanted, covered, (), tuple(pages))

    def _list_page(self, number: int) -> tuple[list[ListedOrder], bool, Page]:
        orders, size = self._shop.visible_orders(ACCOUNT), self._shop.settings.orders_per_page
        listed = [_listed(order) for order in orders[(number - 1) * size : number * size]]
        return listed, number * size >= len(orders), self._page("/account/orders")

    async def order_detail(self, order_number: str) -> OrderDetail:
        def detail() -> OrderDetail:
            order = self._shop.order_of(ACCOUNT, order_number)
            page = self._page("/account/orders/detail")
            if order is None or order.visible_at > self._shop.now():
                return OrderDetail(order_number, False, None, None, None, None, None, page)
            state = _STAGES.get(order.stage) or _PAYMENTS[order.payment]
            return OrderDetail(
                order_number, True, order.stage.value, order.stage.value, state, order.pay_deadline, {}, page
            )

        return await self._exchange("order_detail", detail)

    async def close(self) -> None: ...

    def _page(self, path: str, method: str = "GET") -> Page:
        return Page(ORIGIN + path, method, 200, f"{path} at {self._link.loop.time():.6f}".encode())


def _time_out(answer: Any, what: str) -> None:
    if not answer.done():
        answer.set_exception(httpx.ReadTimeout(f"{what}: no answer within {TIMEOUT:g} s"))


def item_url(code: str) -> str:
    return f"{ORIGIN}/item/{SHOP_CODE}/{code}/"


def _items(lines: tuple[Line, ...]) -> tuple[Item, ...]:
    return tuple(Item(item_url(line.code), line.quantity, line.variant_id, line.choice) for line in lines)


def _listed(order: Order) -> ListedOrder:
    items = tuple(
        ListedItem(line.item_id, line.name, item_url(line.code), line.quantity, line.variant_id)
        for line in order.quote.lines
    )
    return ListedOrder(order.number, order.placed_at, SHOP_ID, SHOP_NAME, items)


def _date(order: ListedOrder) -> datetime:
    assert order.order_date is not None
    return order.order_date
