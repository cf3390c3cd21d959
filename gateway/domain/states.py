"""The two vocabularies that are never mixed (docs/specification.md#vocabularies)."""

from enum import StrEnum


class TaskStatus(StrEnum):
    """Where a task stands. The gateway decides; `gateway.domain.transitions` says what moves it on."""

    QUEUED = "queued"
    LEASED = "leased"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    NEEDS_HUMAN = "needs_human"
    STALE = "stale"


ACTIVE = frozenset({TaskStatus.LEASED, TaskStatus.RUNNING})
"""A worker holds a lease; the task occupies its slot."""

ENDED = frozenset({TaskStatus.SUCCEEDED, TaskStatus.FAILED, TaskStatus.NEEDS_HUMAN})
"""The worker is done with the task; its last holder may still append reports."""


class OrderState(StrEnum):
    """Where the order stands on the site. The worker decides; the gateway mirrors it."""

    CREATED = "created"
    IN_CART = "in_cart"
    ORDERED = "ordered"
    AWAITING_PAYMENT = "awaiting_payment"
    PAID = "paid"
    SHIPPED = "shipped"
    DELIVERED = "delivered"
    CANCELLED = "cancelled"


NOTHING_PLACED = frozenset({OrderState.CREATED, OrderState.IN_CART})
"""In these states no order exists on the site; every other state tells of one."""


class Placement(StrEnum):
    """What is known of an order on the site."""

    # The rule: docs/specification.md#placement. Not in the docstring, which openapi.json shows to callers.

    IMPOSSIBLE = "impossible"
    POSSIBLE = "possible"
    CERTAIN = "certain"
