"""Where an order stands on the site. The worker decides it; the gateway only mirrors it.

The rule: docs/protocol.md#order-states.
"""

from enum import StrEnum


class OrderState(StrEnum):
    """States in the order in which an order usually passes through them."""

    CREATED = "created"
    IN_CART = "in_cart"
    ORDERED = "ordered"
    AWAITING_PAYMENT = "awaiting_payment"
    PAID = "paid"
    SHIPPED = "shipped"
    DELIVERED = "delivered"
    CANCELLED = "cancelled"

    @property
    def is_placed(self) -> bool:
        """True if an order number exists on the site in this state, cancelled orders included."""
        return self not in (OrderState.CREATED, OrderState.IN_CART)

    @property
    def is_final(self) -> bool:
        """True if the site will not move the order any further."""
        return self in (OrderState.DELIVERED, OrderState.CANCELLED)


def later(state: OrderState, other: OrderState | None) -> OrderState:
    """Return the later of two states, in the order in which an order passes through them."""
    return max(state, other or state, key=list(OrderState).index)
