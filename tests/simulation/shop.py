"""The sandbox shop in a simulation: its real logic, and everybody else who uses the account or the shop.

Order numbers end alike, as they may where a shop counts in steps of its own.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from sandbox_shop.orders import Order, Quote
from sandbox_shop.shop import Shop, ShopSettings

ACCOUNT = "buyer@sandbox.example"
REFLECTION_SECONDS = 30.0
PER_PAGE = 5
STEP = 10_000
"""Between two order numbers: their last four characters are the same."""
APART = 1_000
"""So many numbers a shop is away from the next one, whose accounts are others."""
NOBODY_ELSES = ("mug-named", None, ("ネイビー", "包装なし"), 1)
"""An article that no task is about."""


class SimShop(Shop):
    """What one account of a site sees. `in_cart_since`: when each thing in the cart was put there, virtual seconds."""

    def __init__(self, seconds: Callable[[], float], beginning: datetime, number: int = 0) -> None:
        super().__init__(
            ShopSettings(reflection_delay_seconds=REFLECTION_SECONDS, orders_per_page=PER_PAGE),
            lambda: beginning + timedelta(seconds=seconds()),
        )
        self._seconds = seconds
        self.in_cart_since: list[float] = []
        self._sequence = number * APART * STEP

    def notify(self) -> None:
        """Nobody waits for a change of the shop here."""

    def add_to_cart(self, *about: Any) -> None:
        super().add_to_cart(*about)
        self.in_cart_since.append(self._seconds())

    def empty_cart(self) -> int:
        """Takes every line out; returns how many there were."""
        lines = len(self.cart(ACCOUNT))
        for _ in range(lines):
            self.remove_from_cart(ACCOUNT, 0)
        self.in_cart_since.clear()
        return lines

    def submit(self, account: str, token: str) -> Order:
        order = super().submit(account, token)
        self.in_cart_since.clear()
        return order

    def _record(self, quote: Quote, placed_at: datetime, *, placed_here: bool) -> Order:
        order = super()._record(quote, placed_at, placed_here=placed_here)
        self._sequence += STEP - 1
        return order

    def order_from_elsewhere(self, count: int, ago: timedelta = timedelta(0), article: Any = NOBODY_ELSES) -> None:
        """Orders of the same account that have nothing to do with us, on the list from the start."""
        for _ in range(count):
            self.add_order_from_elsewhere(self.now() - ago, [article])

    def order_the_same(self, intent: dict[str, Any]) -> None:
        """Two orders with exactly the items of an intent: as long as there is one alone, nobody could tell it apart."""
        articles = [
            (item["item_url"].rstrip("/").rpartition("/")[2], item.get("variant_id"), (), item["quantity"])
            for item in intent["items"]
        ]
        for _ in range(2):
            self.add_order_from_elsewhere(self.now(), articles)
