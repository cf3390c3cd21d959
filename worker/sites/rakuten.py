"""Rakuten's adapter: a name, and nothing that was never tried on the real site."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NoReturn

from common.target import ONLY_ACCOUNT
from worker.sites.port import (
    Cart,
    Confirmation,
    Item,
    OrderDetail,
    OrderList,
    Page,
    Payment,
    PreSendCheck,
    Submission,
    Thanks,
)


def _not_tried(operation: str) -> NoReturn:
    raise NotImplementedError(
        f"rakuten: {operation} is not implemented: it was never tried on the real site, and its pages are not guessed"
    )


class RakutenSite:
    """Raises NotImplementedError for every operation. `can_order` is False, so the worker leases no order for it."""

    def __init__(self, account: str = ONLY_ACCOUNT) -> None:
        self._account = account

    @property
    def name(self) -> str:
        """Always `rakuten`."""
        return "rakuten"

    @property
    def account(self) -> str:
        """The account that it would work for."""
        return self._account

    @property
    def can_order(self) -> bool:
        """Always False."""
        return False

    @property
    def can_read_orders(self) -> bool:
        """Always False."""
        return False

    async def check_session(self) -> bool:
        """Not implemented."""
        _not_tried("checking the session")

    async def clear_cart(self) -> Cart:
        """Not implemented."""
        _not_tried("clearing the cart")

    async def add_to_cart(self, item: Item) -> Page:
        """Not implemented."""
        _not_tried("adding to the cart")

    async def read_cart(self) -> Cart:
        """Not implemented."""
        _not_tried("reading the cart")

    async def open_confirmation(self, options: Mapping[str, Any]) -> Confirmation:
        """Not implemented."""
        _not_tried("opening the confirmation page")

    async def submit(self, confirmation: Confirmation, pre_send_check: PreSendCheck) -> Submission:
        """Not implemented."""
        _not_tried("submitting an order")

    async def read_thanks(self, submission: Submission) -> Thanks:
        """Not implemented."""
        _not_tried("reading the thank-you page")

    async def pay(
        self, site_order_id: str, payable_yen: int | None, options: Mapping[str, Any], pre_send_check: PreSendCheck
    ) -> Payment:
        """Not implemented."""
        _not_tried("paying")

    async def list_orders(self, *, since: datetime | None, max_pages: int) -> OrderList:
        """Not implemented."""
        _not_tried("reading the order list")

    async def order_detail(self, order_number: str) -> OrderDetail:
        """Not implemented."""
        _not_tried("reading an order")

    async def close(self) -> None:
        """Nothing is open."""
