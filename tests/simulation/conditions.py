"""What an upstream demands of a task's permit in a world of conditions, drawn around the boundary of each."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sandbox_shop.orders import FREE_SHIPPING_FROM_YEN, SHIPPING_YEN

A_DRY_RUN = 0.15
FIELDS = ("max_total_yen", "not_before", "not_after", "stop_before_submit", "requires_approval")


@dataclass(frozen=True, slots=True)
class Conditions:
    """Of one task; None: it does not demand that. Times are aware."""

    max_total_yen: int | None = None
    not_before: datetime | None = None
    not_after: datetime | None = None
    stop_before_submit: bool | None = None
    cancelled_after: float | None = None
    """Seconds from its acknowledgement until its upstream wants it no more, whoever has it in hand."""

    requires_approval: bool | None = None
    filed_by_approver: bool = False
    """By one of those who approve, who must not do so then."""

    def as_fields(self) -> dict[str, Any]:
        """The fields of a submission."""
        demanded = {name: getattr(self, name) for name in FIELDS}
        return {name: value for name, value in demanded.items() if value is not None}


NONE = Conditions()


def make_conditions(
    chance: random.Random, intent: Mapping[str, Any], prices: Mapping[str, int], filed_at: datetime
) -> Conditions:
    """Conditions for an intent, given what each item costs now and when it is filed."""
    payable = payable_yen(intent, prices)
    begins = filed_at + timedelta(seconds=chance.uniform(1.0, 25.0))
    ends = chance.choice((begins, filed_at)) + timedelta(
        seconds=chance.choice((chance.uniform(0.5, 8.0), chance.uniform(5.0, 60.0)))
    )
    not_before = chance.choice((None, begins))
    return Conditions(
        max_total_yen=chance.choice((None, payable - 1, payable, payable, payable + 1, payable + 5_000)),
        not_before=not_before,
        not_after=chance.choice((None, None, ends if not_before is None else max(ends, begins))),
        stop_before_submit=True if chance.random() < A_DRY_RUN else None,
        cancelled_after=chance.choice((None, None, chance.uniform(0.0, 8.0), chance.uniform(3.0, 40.0))),
    )


def payable_yen(intent: Mapping[str, Any], prices: Mapping[str, int]) -> int:
    """What an intent costs, postage included, at these prices."""
    subtotal = sum(item["quantity"] * prices[item["item_url"]] for item in intent["items"])
    return subtotal + (0 if subtotal >= FREE_SHIPPING_FROM_YEN else SHIPPING_YEN)
