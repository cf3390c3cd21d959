"""Named points between the steps of an order.

A test starts the worker with a failpoint of its own that stops or kills the process at one of them, and so shows what
a crash exactly there leads to. In production nothing happens at a failpoint.
"""

from collections.abc import Awaitable, Callable
from enum import StrEnum


class FailpointName(StrEnum):
    """The points, in the order in which an undisturbed order passes them."""

    LEASED = "leased"
    ACKNOWLEDGED = "acknowledged"
    VERIFIED = "verified"
    CART_ADDED = "cart-added"
    CART_CHECKED = "cart-checked"
    CONFIRMED = "confirmed"
    PERMITTED = "permitted"
    CLICK_RECORDED = "click-recorded"
    CLICKED = "clicked"
    ORDER_JOURNALLED = "order-journalled"
    ORDERED_REPORTED = "ordered-reported"
    PAYMENT_RECORDED = "payment-recorded"
    PAID = "paid"
    END_JOURNALLED = "end-journalled"
    TERMINAL_REPORTED = "terminal-reported"


Failpoint = Callable[[FailpointName], Awaitable[None]]


async def no_failpoint(name: FailpointName) -> None:
    """Pass every point without stopping."""
