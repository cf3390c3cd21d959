"""The shop itself: accounts, carts, orders, payments and what it counted.

Everything is in memory and lives as long as the process. All of it runs on one event loop and every change is one
synchronous call, so no two requests can interleave within a change. Memory grows only with orders taken; sessions and
form tokens are bounded.

One class, so the module is longer than others: one request changes stock, cart, orders and counters together.
"""

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sandbox_shop.catalogue import SHOP_ID, Product, seed_catalogue
from sandbox_shop.faults import FaultPlan
from sandbox_shop.orders import (
    JST,
    PAYMENT_METHODS,
    STAGES_IN_ORDER,
    Line,
    Order,
    PaymentState,
    Quote,
    Stage,
)

FIRST_ORDER_SEQUENCE = 863947697
MAX_KEPT = 1000
MAX_QUANTITY = 99


class ShopError(Exception):
    """The shop refuses; the message is what its page says."""


@dataclass(frozen=True, slots=True)
class ShopSettings:
    """How the shop behaves.

    `reflection_delay_seconds`: how long a new order stays out of order list and detail. The real site takes about ten
    minutes; the default is short so that a person trying things out need not wait.
    `single_use_form_tokens`: True refuses a confirmation's form the second time. Many shops do not check, so by default
    the same form sent twice is two orders.
    """

    username: str = "buyer@sandbox.example"
    accounts_host: str = "accounts.sandbox.example"
    password: str = "sandbox"  # noqa: S105 - opens nothing but this shop
    scraper_token: str = "sandbox-token"  # noqa: S105 - as above
    reflection_delay_seconds: float = 3.0
    orders_per_page: int = 5
    single_use_form_tokens: bool = False


class Shop:
    """The state of one shop. `now` gives aware UTC times."""

    def __init__(self, settings: ShopSettings, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.settings = settings
        self.now = now
        self.faults = FaultPlan()
        self.products: dict[str, Product] = seed_catalogue()
        self.orders: dict[str, Order] = {}
        self.requests: Counter[str] = Counter()
        self.login_refused = False
        self.forced_challenge: str | None = None
        self.closing = asyncio.Event()
        self._carts: dict[str, list[Line]] = {}
        self._sessions: dict[str, str] = {}
        self._quotes: dict[str, Quote] = {}
        self._sequence = 0
        self._changed = asyncio.Event()

    # -- sessions ------------------------------------------------------------------------------------------------------

    def log_in(self, username: str, password: str) -> str | None:
        """Open a session and return its id; None where the credentials are wrong or logging in is refused.

        Every address at `accounts_host` is an account too, with a cart and orders of its own.
        """
        name_matches = secrets.compare_digest(username.encode(), self.settings.username.encode()) or (
            username.partition("@")[2] == self.settings.accounts_host
        )
        password_matches = secrets.compare_digest(password.encode(), self.settings.password.encode())
        if self.login_refused or not (name_matches and password_matches):
            return None
        session_id = secrets.token_urlsafe(24)
        self._sessions[session_id] = username
        _drop_oldest(self._sessions)
        return session_id

    def account_of(self, session_id: str | None) -> str | None:
        """Return the account that is logged in with this session."""
        return self._sessions.get(session_id) if session_id else None

    def end_sessions(self) -> None:
        """Log everybody out."""
        self._sessions.clear()

    # -- cart ----------------------------------------------------------------------------------------------------------

    def cart(self, account: str) -> tuple[Line, ...]:
        """Return the account's cart at today's prices. It outlives sessions, as a shop's cart does."""
        return tuple(
            replace(line, unit_price_yen=self.products[line.code].price_yen) for line in self._carts.get(account, [])
        )

    def add_to_cart(
        self, account: str, code: str, variant_id: str | None, choice: tuple[str, ...], quantity: int
    ) -> None:
        """Add units; the same article with the same choice becomes one line. Raises ShopError."""
        lines = self._carts.setdefault(account, [])
        line = self._line(code, variant_id, choice, quantity)
        in_cart = sum(other.quantity for other in lines if (other.code, other.variant_id) == (code, variant_id))
        stock = self.products[code].stock[variant_id]
        if in_cart + quantity > stock:
            raise ShopError(f"在庫が不足しています(残り{stock}点)")
        for index, other in enumerate(lines):
            if (other.code, other.variant_id, other.choice) == (code, variant_id, choice):
                lines[index] = replace(other, quantity=other.quantity + quantity)
                break
        else:
            lines.append(line)
        self.notify()

    def remove_from_cart(self, account: str, index: int) -> None:
        """Remove one line; a line that is not there is no error."""
        lines = self._carts.get(account, [])
        if 0 <= index < len(lines):
            del lines[index]
        self.notify()

    def _line(self, code: str, variant_id: str | None, choice: tuple[str, ...], quantity: int) -> Line:
        product = self.products.get(code)
        if product is None or not product.sells(variant_id):
            raise ShopError("商品が見つかりません")
        if not product.accepts(choice):
            raise ShopError("項目選択肢を選択してください")
        if not 1 <= quantity <= MAX_QUANTITY:
            raise ShopError(f"個数は1から{MAX_QUANTITY}までで指定してください")
        variant = product.variant(variant_id)
        label = variant.label if variant else None
        return Line(
            product.item_id, code, product.name, product.path, variant_id, label, choice, quantity, product.price_yen
        )

    # -- ordering ------------------------------------------------------------------------------------------------------

    def quote(self, account: str, payment_method: str) -> tuple[str, Quote]:
        """Return what the confirmation page promises, and the token of its form. Raises ShopError."""
        if payment_method not in PAYMENT_METHODS:
            raise ShopError("お支払い方法を選択してください")
        lines = self.cart(account)
        if not lines:
            raise ShopError("買い物かごに商品がありません")
        token = secrets.token_urlsafe(16)
        self._quotes[token] = Quote(account, lines, payment_method)
        _drop_oldest(self._quotes)
        return token, self._quotes[token]

    def submit(self, account: str, token: str) -> Order:
        """Take the order exactly as quoted, and empty the cart. Raises ShopError where nothing was ordered.

        The shop does not ask whether the same was ordered a moment ago: two submits are two orders.
        """
        quote = self._quotes.get(token)
        if quote is None or quote.account != account:
            raise ShopError("画面の有効期限が切れました。もう一度ご注文手続きを行ってください")
        wanted = Counter[tuple[str, str | None]]()
        for line in quote.lines:
            wanted[line.code, line.variant_id] += line.quantity
        if any(self.products[code].stock[variant] < units for (code, variant), units in wanted.items()):
            raise ShopError("申し訳ございません。ご注文手続き中に在庫がなくなりました")
        if self.settings.single_use_form_tokens:
            del self._quotes[token]
        for (code, variant), units in wanted.items():
            self.products[code].stock[variant] -= units
        self._carts[account] = []
        return self._record(quote, self.now(), placed_here=True)

    def add_order_from_elsewhere(
        self, placed_at: datetime, articles: Iterable[tuple[str, str | None, tuple[str, ...], int]]
    ) -> Order:
        """Place an order of the same account that did not come in here, for example from a phone. Raises ShopError."""
        lines = tuple(self._line(*article) for article in articles)
        order = self._record(Quote(self.settings.username, lines, "card"), placed_at, placed_here=False)
        order.payment, order.visible_at = PaymentState.PAID, placed_at
        return order

    def _record(self, quote: Quote, placed_at: datetime, *, placed_here: bool) -> Order:
        number = f"{SHOP_ID}-{placed_at.astimezone(JST):%Y%m%d}-{FIRST_ORDER_SEQUENCE + self._sequence:010d}"
        self._sequence += 1
        visible_at = placed_at + timedelta(seconds=self.settings.reflection_delay_seconds)
        order = self.orders[number] = Order(number, quote, placed_at, visible_at, placed_here=placed_here)
        self.notify()
        return order

    def visible_orders(self, account: str) -> list[Order]:
        """Return what the order list shows: the newest first, without those not reflected yet."""
        now = self.now()
        shown = [order for order in self.orders.values() if order.quote.account == account and order.visible_at <= now]
        return sorted(shown, key=lambda order: (order.placed_at, order.number), reverse=True)

    def order_of(self, account: str, number: str) -> Order | None:
        """Return the account's order of that number, reflected or not."""
        order = self.orders.get(number)
        return order if order and order.quote.account == account else None

    # -- paying --------------------------------------------------------------------------------------------------------

    def pay(self, order: Order) -> None:
        """Do what the payment form does: pay, ask for a challenge, or print a slip. Raises ShopError if cancelled."""
        if order.stage is Stage.CANCELLED:
            raise ShopError("キャンセルされた注文です")
        method = order.quote.payment_method
        if method == "convenience_store":
            order.slip_number = order.slip_number or f"{int(order.number[-10:]) * 7 % 10**8:08d}"
            order.pay_deadline = order.pay_deadline or order.three_days_from_now(self.now())
            order.payment = PaymentState.WAITING
        elif challenge := {"card_3ds": "3ds", "card_sms": "sms"}.get(method, self.forced_challenge):
            order.challenge, order.payment = challenge, PaymentState.WAITING
        else:
            self.take_payment(order)
        self.notify()

    def take_payment(self, order: Order) -> None:
        """Money moves. The shop counts every time, so that paying twice can be seen."""
        order.payment, order.challenge, order.pay_deadline = PaymentState.PAID, None, None
        order.payments += 1
        self.notify()

    def advance(self, order: Order) -> None:
        """Move the order to its next stage. Raises ShopError at the end."""
        if order.stage not in STAGES_IN_ORDER[:-1]:
            raise ShopError("the order is at its last stage")
        order.stage = STAGES_IN_ORDER[STAGES_IN_ORDER.index(order.stage) + 1]
        self.notify()

    # -- counting ------------------------------------------------------------------------------------------------------

    def count_request(self, step: str) -> None:
        """Note that a request of this step has arrived, whatever becomes of it."""
        self.requests[step] += 1
        self.notify()

    def counters(self) -> dict[str, Any]:
        """Return what the shop counted: orders and units that came in by a submit, payments, and requests by step."""
        placed = [order for order in self.orders.values() if order.placed_here]
        units = Counter[str]()
        for order in placed:
            for line in order.quote.lines:
                units[line.code] += line.quantity
        return {
            "orders_placed": len(placed),
            "order_numbers": [order.number for order in placed],
            "units_sold": units.total(),
            "units_by_item": dict(units),
            "submits_received": self.requests["submit"],
            "payments_made": sum(order.payments for order in placed),
            "payments_by_order": {order.number: order.payments for order in placed},
            "double_payments": [order.number for order in placed if order.payments > 1],
            "requests": dict(self.requests),
        }

    def notify(self) -> None:
        """Wakes those who wait for a change."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait_until(self, reached: Callable[[], bool], timeout: float) -> bool:  # noqa: ASYNC109 - reports, not raises
        """Return True as soon as `reached()` is, False after `timeout` seconds or when the shop closes."""
        try:
            async with asyncio.timeout(timeout):
                while not reached() and not self.closing.is_set():
                    await self._changed.wait()
        except TimeoutError:
            pass
        return reached()

    def close(self) -> None:
        """Let go of every request that hangs or wait."""
        self.closing.set()
        self.notify()


def _drop_oldest(kept: dict[str, Any]) -> None:
    while len(kept) > MAX_KEPT:
        del kept[next(iter(kept))]
