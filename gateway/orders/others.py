"""Which orders of the target belong to other tasks, or may: a look at the site leaves them out (docs/protocol.md).

Every other task that may have clicked had its permit written down before. So whoever asks after a look at the site
learns of each order that the look can have seen either the number, or that not all numbers are known. What a restore
from a backup has made the gateway forget it cannot name: then not all are known either.
"""

from datetime import timedelta
from typing import Final

from gateway.domain.instant import parse_utc, utc_text
from gateway.domain.leases import OtherOrders
from gateway.domain.models import Task
from gateway.store import order_numbers, restores
from gateway.store.port import ReadTransaction

MAX_OTHER_NUMBERS: Final = 1_000
"""Order numbers of other tasks that an answer brings at most."""

_LOOKS_REACH_BACK: Final = timedelta(days=1)


def other_orders(tx: ReadTransaction, task: Task) -> OtherOrders:
    """Return what is known of the orders of the target's other tasks since a day before this one was filed."""
    since = utc_text(parse_utc(task.created_at) - _LOOKS_REACH_BACK)
    known = order_numbers.of_other_tasks(tx, task, since, MAX_OTHER_NUMBERS + 1)
    incomplete = (
        len(known) > MAX_OTHER_NUMBERS
        or order_numbers.any_missing_of_other_tasks(tx, task, since)
        or restores.any_since(tx, since)
    )
    return OtherOrders(tuple(dict.fromkeys(known[:MAX_OTHER_NUMBERS])), incomplete)
