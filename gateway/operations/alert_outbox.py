"""What still has to be told of alerts: written with the alert, gone when everybody knows.

The rule: docs/specification.md#alerts.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from gateway.domain.instant import Instant, microseconds
from gateway.store import alert_deliveries
from gateway.store.alert_deliveries import Notice
from gateway.store.port import ReadTransaction, Transaction

FIRST_DELAY: Final = timedelta(seconds=5)
LONGEST_DELAY: Final = timedelta(hours=1)
GIVE_UP_AFTER: Final = timedelta(days=3)


def unlogged(tx: ReadTransaction, _now: Instant, count: int) -> list[Notice]:
    """Return what the log has not told yet, the oldest first."""
    return alert_deliveries.unlogged(tx, count)


def settle_logged(tx: Transaction, _now: Instant, notices: Sequence[Notice], *, keep: bool) -> int:
    """Note that the log has told these; `keep` them if the webhook still has to. Return how many were still there."""
    told = alert_deliveries.mark_logged if keep else alert_deliveries.remove
    return sum(told(tx, notice.delivery_id) for notice in notices)


def next_due(tx: ReadTransaction, now: Instant) -> Notice | None:
    """Return the first notice if its time has come: they go out in order, so `raised` comes before `cleared`.

    Those about tasks come first: however many workers or callbacks alert, an order does not wait for them.
    """
    notice = alert_deliveries.first(tx)
    return None if notice is None or notice.due_us > now.elapsed_us else notice


def read_time(_tx: ReadTransaction, now: Instant) -> str:
    """Return what time it is, as UTC text."""
    return now.utc


def delivered(tx: Transaction, _now: Instant, delivery_id: int) -> bool:
    """Note that the webhook has taken a notice; False if it was gone already."""
    return alert_deliveries.remove(tx, delivery_id)


def failed(tx: Transaction, now: Instant, delivery_id: int) -> bool:
    """Put a notice off, longer each time; True if it is given up instead."""
    notice = alert_deliveries.find(tx, delivery_id)
    if notice is None:
        return False
    if now.elapsed_us - notice.created_us >= microseconds(GIVE_UP_AFTER):
        return alert_deliveries.remove(tx, delivery_id)
    delay = min(FIRST_DELAY * 2 ** min(notice.attempts, 16), LONGEST_DELAY)
    alert_deliveries.retry(tx, delivery_id, now.elapsed_us + microseconds(delay))
    return False
