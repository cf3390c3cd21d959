"""The port between the worker and a shop's site (docs/specification.md#sites).

An adapter does one thing on the site a call and never retries by itself; what to do, in which order, and what a failure
means is the worker's. Every call that shows a page returns it, so that the page can be kept as evidence before anything
is reported.

The protocol and its values stand together, so the module is longer than others: whoever writes an adapter reads this
one page.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from common.target import Target
from worker.orders.state import OrderState

AMOUNT_CODE = 5004
"""What is to be paid is over the limit, unknown, or another amount than the one that was confirmed."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page as the site sent it: what was asked for, the HTTP status, and the body in bytes, unchanged.

    `location`: the answer's Location header as it came, None where there was none. The body may be cut short where it
    was broken off or over a limit.
    """

    url: str
    method: str
    http_status: int
    html: bytes
    location: str | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One item to buy. `variant_id` None: the item has no variants; `choice`: options of the item, in order."""

    item_url: str
    quantity: int = 1
    variant_id: str | None = None
    choice: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cart:
    """What the cart, or the confirmation page, shows: its items in the order of the page."""

    items: tuple[Item, ...]
    page: Page


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The confirmation page: the last one before the click.

    `unit_prices`: of each item in yen, None where the page does not show it; empty: it shows none.

    `payable_yen` is None where the page does not show one amount, and only one. `form` is what `submit` needs from the
    page, opaque to the worker; whatever can be found wrong with it before it is sent was looked for.
    """

    items: tuple[Item, ...]
    payable_yen: int | None
    form: Mapping[str, str]
    page: Page
    unit_prices: tuple[int | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Submission:
    """What the site answered to the click. `site_order_id` is None where the page shows no number.

    `thanks_path`: where the answer leads for further evidence, which nobody has asked for yet; None where it leads
    nowhere or was followed already.
    """

    site_order_id: str | None
    page: Page
    thanks_path: str | None = None


@dataclass(frozen=True, slots=True)
class Thanks:
    """What the site shows after a click whose answer told the order's number.

    `contradicts`: in words, what in the answer or on this page speaks against an order of that number; None where
    nothing does, also where the page could not be read.
    """

    page: Page
    contradicts: str | None = None


@dataclass(frozen=True, slots=True)
class Payment:
    """What came of paying.

    `state` is PAID, or AWAITING_PAYMENT where the order is not paid yet: the customer pays elsewhere until
    `pay_deadline`, or `human_step` names a step that only a person can take (3-D Secure, SMS code). Where nothing was
    sent because the site showed this before, it is no payment of this call: the caller knows from its
    `pre_send_check`.
    """

    state: OrderState
    pay_deadline: datetime | None
    human_step: str | None
    detail: str
    page: Page


@dataclass(frozen=True, slots=True)
class ListedItem:
    """An item of a listed order. `quantity` and `variant_id` are None where the list does not show them.

    `comparable` False: the address has not the form of this site's item pages, so it may be any item.
    """

    item_id: int | str
    item_name: str
    item_url: str
    quantity: int | None = None
    variant_id: str | None = None
    comparable: bool = True


@dataclass(frozen=True, slots=True)
class ListedOrder:
    """An order in the account's order list. `order_date` is aware (UTC), None where it could not be read."""

    order_number: str
    order_date: datetime | None
    shop_id: int | str
    shop_name: str
    items: tuple[ListedItem, ...]


@dataclass(frozen=True, slots=True)
class OrderList:
    """The account's orders, newest first, as far as they were read. An order that the list shows twice is here once
    where both say the same, and twice where they differ.

    `window_fully_covered` is True only if every order since `since` was seen: an order that is missing then does not
    exist. `raw_pages` holds each page's own data as the site embeds it, in page order.
    """

    orders: tuple[ListedOrder, ...]
    window_fully_covered: bool
    raw_pages: tuple[Any, ...]
    pages: tuple[Page, ...]


@dataclass(frozen=True, slots=True)
class OrderDetail:
    """One order's page. `found` False is no error: a new order shows up only after about ten minutes.

    `stage_label` is the site's own wording, `delivery_status` the site's stage code where it has one, `order_state`
    what the stage maps to or None. `raw` is the page's embedded data, None where there was none to read.
    """

    order_number: str
    found: bool
    stage_label: str | None
    delivery_status: str | None
    order_state: OrderState | None
    pay_deadline: datetime | None
    raw: Any
    page: Page


class SiteError(Exception):
    """The site did not do what was asked. `error_code` travels in the report; `page` is what it showed, if anything."""

    def __init__(self, message: str, *, error_code: int | None = None, page: Page | None = None) -> None:
        super().__init__(message)
        self.error_code = error_code
        self.page = page


class LoggedOutError(SiteError):
    """The account's session has ended; a person must log in again. Code 5001."""

    def __init__(self, message: str = "the account is logged out on the site", *, page: Page | None = None) -> None:
        super().__init__(message, error_code=5001, page=page)


class ItemUnavailableError(SiteError):
    """The item, the variant or the quantity cannot be bought."""


class PageChangedError(SiteError):
    """The page lacks a part that the adapter reads; nothing may be concluded from it."""


PreSendCheck = Callable[[], None]
"""Raises where it is too late to send: a connection may take longer to open than the permit or the lease lasts."""


class Site(Protocol):
    """What the worker needs from a site, as one account of it, in a session of its own.

    Raises SiteError and its kinds, and OSError or httpx.HTTPError where the connection fails; NotImplementedError where
    the operation was never tried on the real site.
    """

    @property
    def name(self) -> str:
        """The site's name as tasks give it."""
        ...

    @property
    def account(self) -> str:
        """The account as tasks give it; empty: the site's only account."""
        ...

    @property
    def can_order(self) -> bool:
        """False where ordering is not implemented: the worker then leases no order of this site."""
        ...

    @property
    def can_read_orders(self) -> bool:
        """False where reading the account's orders is not implemented: the worker then leases no query of this site."""
        ...

    async def check_session(self) -> bool:
        """Return True if the account is logged in."""
        ...

    async def clear_cart(self) -> Cart:
        """Empty the cart and return it as it is then."""
        ...

    async def add_to_cart(self, item: Item) -> Page:
        """Put one item into the cart. Raises ItemUnavailableError."""
        ...

    async def read_cart(self) -> Cart:
        """Return the cart as it is."""
        ...

    async def open_confirmation(self, options: Mapping[str, Any]) -> Confirmation:
        """Go from the cart to the confirmation page. `options` is the intent's own, for example the way to pay.

        Raises PageChangedError where its form could not be sent as it must be: before a permit is asked for.
        """
        ...

    async def submit(self, confirmation: Confirmation, pre_send_check: PreSendCheck) -> Submission:
        """Make the irreversible click. Uses a fresh connection and sends its request at most once, whatever happens.

        An answer whose head tells the order's number is returned as it is, whatever its body holds and before anything
        else is asked for: `read_thanks` looks further.

        Calls `pre_send_check` when the connection stands, right before it sends; what that raises goes to the caller,
        and then nothing was sent.
        """
        ...

    async def read_thanks(self, submission: Submission) -> Thanks:
        """Look for evidence that confirms or contradicts an answer with a `thanks_path`; a read, nothing is sent
        twice.
        """
        ...

    async def pay(
        self, site_order_id: str, payable_yen: int | None, options: Mapping[str, Any], pre_send_check: PreSendCheck
    ) -> Payment:
        """Pay a placed order, as `options` say, if exactly the amount that was confirmed is asked for.

        Sends its request at most once on a fresh connection, after a `pre_send_check` as in `submit`. Stops at any step
        that only a person can take.
        """
        ...

    async def list_orders(self, *, since: datetime | None, max_pages: int) -> OrderList:
        """Return the account's orders since then (None: no lower bound), at most `max_pages` pages."""
        ...

    async def order_detail(self, order_number: str) -> OrderDetail:
        """One order's page."""
        ...

    async def close(self) -> None:
        """Give connections back."""
        ...


def sites_that_can_order(sites: Sequence[Site]) -> list[str]:
    """Names of the sites on which an order may be leased."""
    return [*dict.fromkeys(site.name for site in sites if site.can_order)]


def sites_that_can_read_orders(sites: Sequence[Site]) -> list[str]:
    """Names of the sites of which an account query may be leased."""
    return [*dict.fromkeys(site.name for site in sites if site.can_read_orders)]


def by_target(sites: Iterable[Site]) -> Mapping[Target, Site]:
    """Return the adapters by the target that each works for."""
    return {Target(site.name, site.account): site for site in sites}
