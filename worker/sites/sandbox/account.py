"""Reading what an account has ordered at the sandbox shop: the order list, and one order's page."""

from datetime import datetime
from itertools import pairwise
from typing import Any

from worker.sites.port import ListedOrder, LoggedOutError, OrderDetail, OrderList, Page, PageChangedError
from worker.sites.sandbox import account_pages
from worker.sites.sandbox.visit import HTTP_NOT_FOUND, Visit, in_utc


async def list_orders(visit: Visit, *, since: datetime | None, max_pages: int) -> OrderList:
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
            read.append(await visit.page_at("/account/orders", {"page": str(number)}))
            listed = await visit.reader.read(account_pages.read_order_list, read[-1])
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


async def order_detail(visit: Visit, order_number: str) -> OrderDetail:
    """One order's page; an order that the shop does not show (yet) is `found` False."""
    answer = await visit.http.get("/account/orders/detail", {"order_number": order_number})
    page = answer.page if answer.page.http_status == HTTP_NOT_FOUND else (await visit.fine(answer)).page
    shown = await visit.reader.read(account_pages.read_order_detail, page)
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
        pay_deadline=in_utc(shown.pay_deadline),
        raw=shown.raw,
        page=page,
    )


def _is_before(order: ListedOrder, since: datetime) -> bool:
    return order.order_date is not None and order.order_date < since


def _are_newest_first(orders: list[ListedOrder]) -> bool:
    """Return True if every date could be read and none is later than the one before it."""
    dates = [order.order_date for order in orders if order.order_date is not None]
    return len(dates) == len(orders) and all(newer >= older for newer, older in pairwise(dates))
