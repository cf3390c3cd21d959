"""The sandbox shop's adapter: every operation of the seam, over HTTP.

Intent options: `payment_method` is `card` (default), `card_3ds`, `card_sms` or `convenience_store`. Item URLs are the
addresses of the shop's item pages exactly as the shop links to them: `{origin}/item/{shop}/{code}/`.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

from worker.orders.state import OrderState
from worker.sites.page_reader import CPU_SECONDS, PageReader
from worker.sites.port import (
    AMOUNT_CODE,
    Cart,
    Confirmation,
    Item,
    ItemUnavailableError,
    ListedOrder,
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
from worker.sites.sandbox import account_pages, pages
from worker.sites.sandbox.http import MAX_PAGE_BYTES, SEND_AGAIN, Answer, Credentials, SandboxHttp

CONVENIENCE_STORE = "convenience_store"
PAYMENT_METHODS = tuple(pages.PAYMENT_LABELS)
HUMAN_STEPS = {"3ds": "3-D Secure", "sms": "SMS code"}
THANKS_PATH = "/order/thanks"
CHALLENGE_PATH = "/payment/challenge"
ACTION = "action"
"""Under which name a confirmation's form keeps where it is sent to; the form itself has only its token."""
HTTP_NOT_FOUND = 404
HTTP_ERROR = 400


class SandboxSite:
    """The adapter of the sandbox shop at `base_url`; see `worker.sites.port.Site` for what each operation promises."""

    def __init__(
        self,
        base_url: str,
        credentials: Credentials | None = None,
        *,
        timeout_seconds: float = 30,
        max_page_bytes: int = MAX_PAGE_BYTES,
        reading_seconds: float = CPU_SECONDS,
    ) -> None:
        self._reader = PageReader(cpu_seconds=reading_seconds)
        self._http = SandboxHttp(
            base_url,
            credentials or Credentials(),
            self._reader,
            timeout_seconds=timeout_seconds,
            max_page_bytes=max_page_bytes,
        )

    @property
    def name(self) -> str:
        """Always `sandbox`."""
        return "sandbox"

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
            page = await self._read("/account")
        except LoggedOutError:
            return False
        return bool(await self._reader.read(pages.read_account_name, page))

    async def clear_cart(self) -> Cart:
        """Remove line by line what the cart shows; an empty cart is only read."""
        page = await self._read("/cart")
        lines = await self._reader.read(pages.read_cart, page)
        while lines:
            removal = lines[-1].removal
            page = await self._landed(await self._http.post(removal.action, dict(removal.fields)))
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
        shown = await self._reader.read(pages.read_item_form, (await self._fine(answer)).page)
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
        return await self._landed(added)

    async def read_cart(self) -> Cart:
        """Return the cart as it is."""
        page = await self._read("/cart")
        return Cart(tuple(line.item for line in await self._reader.read(pages.read_cart, page)), page)

    async def open_confirmation(self, options: Mapping[str, Any]) -> Confirmation:
        """Open the confirmation page for the way to pay that the options name."""
        method = _payment_method(options)
        page = await self._read("/order/confirm", {"payment_method": method})
        shown = await self._reader.read(pages.read_confirmation, page)
        if shown.payment_method != method:
            raise SiteError(f"the shop would have the order paid by {shown.payment_method}, not {method}", page=page)
        return Confirmation(shown.items, shown.payable_yen, {**shown.form.fields, ACTION: shown.form.action}, page)

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
        page = await self._landed_if_possible(await self._fine(answer))
        thanks = None
        with suppress(PageChangedError):
            thanks = await self._reader.read(pages.read_thanks, page)
        if thanks is None:
            raise PageChangedError("the shop neither takes the order nor refuses it in words that are known", page=page)
        return Submission(thanks.order_number, page)

    async def read_thanks(self, submission: Submission) -> Thanks:
        """Read the answer's own page, then the thank-you page. What cannot be read contradicts nothing."""
        answer = submission.page
        if answer.http_status >= HTTP_ERROR or answer.http_status in SEND_AGAIN:
            return Thanks(answer, f"answers HTTP {answer.http_status}")
        if said := await self._refusal(answer):
            return Thanks(answer, f"refuses: {said}")
        page = (await self._fine(await self._http.get(submission.thanks_path or THANKS_PATH))).page
        if said := await self._refusal(page):
            return Thanks(page, f"then refuses: {said}")
        thanks = None
        with suppress(PageChangedError):
            thanks = await self._reader.read(pages.read_thanks, page)
        number = None if thanks is None else thanks.order_number
        differs = number not in (None, submission.site_order_id)
        return Thanks(page, f"then shows order {number}" if differs else None)

    async def _refusal(self, page: Page) -> str | None:
        """Return what a page says it refuses; None where it refuses nothing, or cannot be read."""
        with suppress(PageChangedError):
            return await self._reader.read(pages.read_refusal, page)
        return None

    async def pay(
        self, site_order_id: str, payable_yen: int | None, options: Mapping[str, Any], pre_send_check: PreSendCheck
    ) -> Payment:
        """Open the order's payment page and send its form once; what is paid or has a slip already is not sent."""
        method = _payment_method(options)
        page = await self._read("/payment", {"order_number": site_order_id})
        shown = await self._reader.read(pages.read_payment_form, page)
        if shown is None:
            return await self._payment(site_order_id, page, method)
        if shown.order_number != site_order_id or shown.payment_method != method:
            raise SiteError(f"the payment page is for {shown.order_number} by {shown.payment_method}", page=page)
        if payable_yen is None or shown.payable_yen != payable_yen:
            asked = "an amount that cannot be read" if shown.payable_yen is None else f"{shown.payable_yen} yen"
            message = f"the payment page asks for {asked}, confirmed were {payable_yen} yen; nothing was paid"
            raise SiteError(message, error_code=AMOUNT_CODE, page=page)
        answer = await self._fine(
            await self._http.post_once(shown.form.action, dict(shown.form.fields), pre_send_check)
        )
        if urlsplit(answer.location or "").path == CHALLENGE_PATH:
            page = await self._landed_if_possible(answer)
            kind = None
            with suppress(PageChangedError):
                kind = await self._reader.read(pages.read_challenge, page)
            detail = "the shop shows its identity check; nothing was entered"
            step = HUMAN_STEPS.get(kind or "", "identity check")
            return Payment(OrderState.AWAITING_PAYMENT, None, step, detail, page)
        return await self._payment(site_order_id, await self._landed(answer), method)

    async def _payment(self, order_number: str, page: Page, method: str) -> Payment:
        """Return what the result page says, as far as it can be true of an order that is paid by this method."""
        status = await self._reader.read(pages.read_payment_status, page)
        if status.order_number != order_number:
            raise PageChangedError("the payment page is about another order", page=page)
        in_store = method == CONVENIENCE_STORE
        if status.state is OrderState.PAID and not in_store:
            return Payment(OrderState.PAID, None, None, "paid by card", page)
        if status.state is OrderState.AWAITING_PAYMENT and status.slip_number and in_store:
            detail = f"convenience store payment, slip number {status.slip_number}"
            return Payment(OrderState.AWAITING_PAYMENT, _in_utc(status.pay_deadline), None, detail, page)
        shown = "no known state" if status.state is None else status.state.value
        slip = " and a slip" if status.slip_number else ""
        raise SiteError(f"the payment page of an order to be paid by {method} shows {shown}{slip}", page=page)

    async def list_orders(self, *, since: datetime | None, max_pages: int) -> OrderList:
        """Read page after page until an order older than `since`, the last page, or `max_pages`.

        Redesigned pages and a logout after the first page end the list early, and so does an order without a readable
        date count: the window is then not fully covered.
        """
        orders: dict[ListedOrder, None] = {}  # in the order of the list, without what is listed twice alike
        raw_pages: list[Any] = []
        read: list[Page] = []
        reached_end = False
        for number in range(1, max_pages + 1):
            try:
                read.append(await self._read("/account/orders", {"page": str(number)}))
                listed = await self._reader.read(account_pages.read_order_list, read[-1])
            except LoggedOutError as error:
                if number == 1:
                    raise
                read += [error.page] if error.page else []
                break
            except PageChangedError:
                break
            raw_pages.append(listed.raw)
            if listed.page != number:
                break
            orders |= dict.fromkeys(listed.orders)
            passed_since = since is not None and any(_is_before(order, since) for order in listed.orders)
            seen = {order.order_number for order in orders}
            all_seen = number >= listed.page_count and len(seen) >= listed.total
            reached_end = passed_since or all_seen
            if reached_end or number >= listed.page_count:
                break
        wanted = tuple(order for order in orders if since is None or not _is_before(order, since))
        covered = reached_end and _are_newest_first(list(orders))
        return OrderList(wanted, covered, tuple(raw_pages), tuple(read))

    async def order_detail(self, order_number: str) -> OrderDetail:
        """One order's page; an order that the shop does not show (yet) is `found` False."""
        answer = await self._http.get("/account/orders/detail", {"order_number": order_number})
        page = answer.page if answer.page.http_status == HTTP_NOT_FOUND else (await self._fine(answer)).page
        shown = await self._reader.read(account_pages.read_order_detail, page)
        if shown is None:
            return OrderDetail(order_number, False, None, None, None, None, None, page)
        if shown.order_number != order_number:
            raise PageChangedError("the page shows another order than the one asked for", page=page)
        return OrderDetail(
            order_number=order_number,
            found=True,
            stage_label=shown.stage_label,
            delivery_status=shown.stage_code,
            order_state=shown.order_state,
            pay_deadline=_in_utc(shown.pay_deadline),
            raw=shown.raw,
            page=page,
        )

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

    async def _read(self, path: str, params: Mapping[str, str] | None = None) -> Page:
        answer = await self._fine(await self._http.get(path, params))
        if answer.location is not None:
            raise PageChangedError(f"instead of {path} the shop shows {answer.location}", page=answer.page)
        return answer.page

    async def _landed(self, answer: Answer) -> Page:
        """Return the page to which a redirect leads, or the answer's own."""
        fine = await self._fine(answer)
        return fine.page if fine.location is None else await self._read(fine.location)

    async def _landed_if_possible(self, answer: Answer) -> Page:
        """As `_landed`, but the redirect itself where the page cannot be had: what was done is done."""
        with suppress(SiteError, OSError, httpx.HTTPError):
            return await self._landed(answer)
        return answer.page

    async def _fine(self, answer: Answer) -> Answer:
        """Return the answer. Raises SiteError where the shop refuses or fails."""
        page = answer.page
        if page.http_status >= HTTP_ERROR:
            said = await self._refusal(page) or "no reason given"
            raise SiteError(f"the shop answered HTTP {page.http_status}: {said}", page=page)
        return answer.sound()


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


def _payment_method(options: Mapping[str, Any]) -> str:
    method = options.get("payment_method", PAYMENT_METHODS[0])
    if method not in PAYMENT_METHODS:
        raise SiteError(f"options.payment_method must be one of {', '.join(PAYMENT_METHODS)}")
    return str(method)


def _in_utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.astimezone(UTC)


def _number_in(location: str | None) -> str | None:
    """Return the order's number in the redirect to the thank-you page; None where there is no readable one."""
    parts = urlsplit(location or "")
    told = parse_qs(parts.query).get("order_number", []) if parts.path == THANKS_PATH else []
    return told[0] if len(told) == 1 and pages.ORDER_NUMBER.fullmatch(told[0]) else None


def _is_before(order: ListedOrder, since: datetime) -> bool:
    return order.order_date is not None and order.order_date < since


def _are_newest_first(orders: list[ListedOrder]) -> bool:
    """Return True if every date could be read and none is later than the one before it."""
    dates = [order.order_date for order in orders if order.order_date is not None]
    return len(dates) == len(orders) and all(newer >= older for newer, older in pairwise(dates))
