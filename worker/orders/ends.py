"""How an order ends for the worker: a value that the step which ended it returns."""

from dataclasses import dataclass
from datetime import datetime

from worker.journal.records import OrderStatus
from worker.orders.state import OrderState


@dataclass(frozen=True, slots=True)
class End:
    """An end, and what the last report tells of the order. None: as the run knows it, or not known.

    `payable_yen` in yen, `pay_deadline` aware, UTC.
    """

    status: OrderStatus
    detail: str
    error_code: int | None = None
    state: OrderState | None = None
    site_order_id: str | None = None
    payable_yen: int | None = None
    pay_deadline: datetime | None = None


def needs_human(detail: str, *, error_code: int | None = None, payable_yen: int | None = None) -> End:
    """Return the end after which a person must look."""
    return End(OrderStatus.NEEDS_HUMAN, detail, error_code, payable_yen=payable_yen)
