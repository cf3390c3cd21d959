"""The sandbox shop's adapter: every operation of the port, over HTTP.

Intent options: `payment_method` is `card` (default), `card_3ds`, `card_sms` or `convenience_store`. Item URLs are the
addresses of the shop's item pages exactly as the shop links to them: `{origin}/item/{shop}/{code}/`.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

from common.target import ONLY_ACCOUNT
from worker.sites.page_reader import CPU_SECONDS, PageReader
from worker.sites.port import (
    Cart,
    Confirmation,
    Item,
    ItemUnavailableError,
    LoggedOutError,
    OrderDetail,
    OrderList,
    Page,
    PageChangedError,
    Payment,
    PreSendCheck,
    SiteError,
    Submission,
    Thanks,
)
from worker.sites.sandbox import account, checkout_pages, pages, payment
from worker.sites.sandbox.http import MAX_PAGE_BYTES, SEND_AGAIN, Credentials, SandboxHttp, credentials_of
from worker.sites.sandbox.visit import HTTP_ERROR, Visit

THANKS_PATH = "/order/thanks"
ACTION = "action"
"""Under which name a confirmation's form keeps where it is sent to; the form itself has only its token."""


class SandboxSite:
    """The adapter of the sandbox shop at `base_url`; see `worker.sites.port.Site` for what each operation promises."""

    def __init__(
        self,
        base_url: str,
        credentials: Credentials | None = None,
        *,
        account: str = ONLY_ACCOUNT,
        timeout_seconds: float = 30,
        max_page_bytes: int = MAX_PAGE_BYTES,
        reading_seconds: float = CPU_SECONDS,
    ) -> None:
        self._account = account
        self._reader = PageReader(cpu_seconds=reading_seconds)
        self._http = SandboxHttp(
            base_url,
            credentials or credentials_of(account),
            self._reader,
            timeout_seconds=timeout_seconds,
            max_page_bytes=max_page_bytes,
        )
        self._visit = Visit(self._http, self._reader)

    @property
    def name(self) -> str:
        """Always `sandbox`."""
        return "sandbox"

    @property
    def account(self) -> str:
        """The account whose orders it places and reads."""
        return self._account

    @property
    def can_order(self) -> bool:
        """Always True."""
        return True

    @property
    def can_read_orders(self) -> bool:
        """Always True."""
        return True

    async def check_session(self) -> bool:
        """Return True if the account's own page can be read, after logging in where there was no session yet."""
        try:
            page = await self._visit.page_at("/account")
        except LoggedOutError:
            return False
        return bool(await self._reader.read(pages.read_account_name, page))

    async def clear_cart(self) -> Cart:
        """Remove line by line what the cart shows; an empty cart is only read."""
        page = await self._visit.page_at("/cart")
        lines = await self._reader.read(pages.read_cart, page)
        while lines:
            removal = lines[-1].removal
            page = await self._visit.landed(await self._http.post(removal.action, dict(removal.fields)))
            left = await self._reader.read(pages.read_cart, page)
            if len(left) >= len(lines):
                raise SiteError("the cart still holds what was removed from it", page=page)
            lines = left
        return Cart((), page)

    async def add_to_cart(self, item: Item) -> Page:
        """Open the item's page and send its form; return the cart as the shop shows it then."""
        path = self._item_path(item)
        answer = await self._http.get(path)
        if await self._reader.read(pages.is_not_found, answer.page):
            raise ItemUnavailableError(f"the shop has no item {item.item_url}", page=answer.page)
        shown = await self._reader.read(pages.read_item_form, (await self._visit.fine(answer)).page)
        _check_available(item, shown, answer.page)
        fields: dict[str, str | list[str]] = {
            **shown.form.fields,
            "quantity": str(item.quantity),
            "choice": [*item.choice],
        }
        if item.variant_id is not None:
            fields["variant_id"] = item.variant_id
        added = await self._http.post(shown.form.action, fields)
        if refusal := await self._reader.read(pages.read_refusal, added.page):
            raise ItemUnavailableError(f"the shop refuses the item: {refusal}", page=added.page)
        return await self._visit.landed(added)

    async def read_cart(self) -> Cart:
        """Return the cart as it is."""
        page = await self._visit.page_at("/cart")
        return Cart(tuple(line.item for line in await self._reader.read(pages.read_cart, page)), page)

    async def open_confirmation(self, options: Mapping[str, Any]) -> Confirmation:
        """Open the confirmation page for the way to pay that the options name."""
        method = payment.payment_method(options)
        page = await self._visit.page_at("/order/confirm", {"payment_method": method})
        shown = await self._reader.read(checkout_pages.read_confirmation, page)
        if shown.payment_method != method:
            raise SiteError(f"the shop would have the order paid by {shown.payment_method}, not {method}", page=page)
        form = {**shown.form.fields, ACTION: shown.form.action}
        return Confirmation(shown.items, shown.payable_yen, form, page, shown.unit_prices)

    async def submit(self, confirmation: Confirmation, pre_send_check: PreSendCheck) -> Submission:
        """Send the confirmation's form once. An answer that leads to the thank-you page with a number is returned at
        once: its head says that the order is placed. Otherwise the page says so, or the one to which the answer leads.

        Raises ItemUnavailableError where the shop says in so many words that it took no order, and PageChangedError
        where it neither says so nor thanks.
        """
        fields: dict[str, str | list[str]] = dict(confirmation.form)
        action = str(fields.pop(ACTION))
        answer = await self._http.post_once(action, fields, pre_send_check)
        thanks_path = self._http.path_of(answer.page)
        if (number := _number_in(thanks_path)) is not None:
            return Submission(number, answer.page, thanks_path)
        if refusal := await self._reader.read(pages.read_refusal, answer.sound().page):
            raise ItemUnavailableError(f"the shop took no order: {refusal}", page=answer.page)
        page = await self._visit.landed_if_possible(await self._visit.fine(answer))
        thanks = None
        with suppress(PageChangedError):
            thanks = await self._reader.read(checkout_pages.read_thanks, page)
        if thanks is None:
            raise PageChangedError("the shop neither takes the order nor refuses it in words that are known", page=page)
        return Submission(thanks.order_number, page)

    async def read_thanks(self, submission: Submission) -> Thanks:
        """Read the answer's own page, then the thank-you page. What cannot be read contradicts nothing."""
        answer = submission.page
        if answer.http_status >= HTTP_ERROR or answer.http_status in SEND_AGAIN:
            return Thanks(answer, f"answers HTTP {answer.http_status}")
        if said := await self._visit.refusal(answer):
            return Thanks(answer, f"refuses: {said}")
        page = (await self._visit.fine(await self._http.get(submission.thanks_path or THANKS_PATH))).page
        if said := await self._visit.refusal(page):
            return Thanks(page, f"then refuses: {said}")
        thanks = None
        with suppress(PageChangedError):
            thanks = await self._reader.read(checkout_pages.read_thanks, page)
        number = None if thanks is None else thanks.order_number
        differs = number not in (None, submission.site_order_id)
        return Thanks(page, f"then shows order {number}" if differs else None)

    async def pay(
        self, site_order_id: str, payable_yen: int | None, options: Mapping[str, Any], pre_send_check: PreSendCheck
    ) -> Payment:
        """Send the payment page's form once; see `payment.pay`."""
        return await payment.pay(self._visit, site_order_id, payable_yen, options, pre_send_check)

    async def list_orders(self, *, since: datetime | None, max_pages: int) -> OrderList:
        """Read page after page; see `account.list_orders`."""
        return await account.list_orders(self._visit, since=since, max_pages=max_pages)

    async def order_detail(self, order_number: str) -> OrderDetail:
        """One order's page; see `account.order_detail`."""
        return await account.order_detail(self._visit, order_number)

    async def close(self) -> None:
        """Give connections back, and end the process that reads pages."""
        await self._http.close()
        await self._reader.close()

    def _item_path(self, item: Item) -> str:
        path = item.item_url.removeprefix(self._http.origin)
        if path == item.item_url or not pages.ITEM_PATH.fullmatch(path):
            raise ItemUnavailableError(
                f"not the address of an item of this shop, {self._http.origin}/item/…/…/: {item.item_url}"
            )
        return path


def _check_available(item: Item, form: pages.ItemForm, page: Page) -> None:
    """Raise ItemUnavailableError where the item's page says that this cannot be bought."""
    if form.sold_out:
        raise ItemUnavailableError(f"{item.item_url} is sold out", page=page)
    if item.variant_id is None and form.variants:
        raise ItemUnavailableError(f"{item.item_url} has variants and none was chosen", page=page)
    if item.variant_id is not None and not form.variants.get(item.variant_id):
        state = "sold out" if item.variant_id in form.variants else "not offered"
        raise ItemUnavailableError(f"variant {item.variant_id} of {item.item_url} is {state}", page=page)
    chosen_well = len(item.choice) == len(form.options) and all(
        choice in offered for choice, offered in zip(item.choice, form.options, strict=True)
    )
    if not chosen_well:
        offered = "; ".join(" | ".join(choices) for choices in form.options) or "nothing"
        raise ItemUnavailableError(f"choice of {item.item_url} must name one of each: {offered}", page=page)


def _number_in(location: str | None) -> str | None:
    """Return the order's number in the redirect to the thank-you page; None where there is no readable one."""
    parts = urlsplit(location or "")
    told = parse_qs(parts.query).get("order_number", []) if parts.path == THANKS_PATH else []
    return told[0] if len(told) == 1 and pages.ORDER_NUMBER.fullmatch(told[0]) else None
