"""What still has to be told of alerts: written with the alert, gone when everybody knows.

The rule: docs/specification.md#alerts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from gateway.domain.instant import Instant, microseconds
from gateway.domain.models import AlertKind
from gateway.store.port import ReadTransaction, Row, Transaction

FIRST_DELAY: Final = timedelta(seconds=5)
LONGEST_DELAY: Final = timedelta(hours=1)
GIVE_UP_AFTER: Final = timedelta(days=3)


@dataclass(frozen=True, slots=True)
class Notice:
    """That an alert was `raised` or `cleared` (`edge`). `delivery_id` is the same on each try."""

    delivery_id: int
    edge: str
    alert_id: int
    kind: AlertKind
    subject: str
    message: str
    raised_at: str
    cleared_at: str | None
    attempts: int


def unlogged(tx: ReadTransaction, _now: Instant, count: int) -> list[Notice]:
    """Return what the log has not told yet, the oldest first."""
    return [_notice(row) for row in tx.all("alert_deliveries_unlogged", count=count)]


def settle_logged(tx: Transaction, _now: Instant, notices: Sequence[Notice], *, keep: bool) -> None:
    """Note that the log has told these; `keep` them if the webhook still has to."""
    for notice in notices:
        tx.change("alert_delivery_logged" if keep else "alert_delivery_done", delivery_id=notice.delivery_id)


def next_due(tx: ReadTransaction, now: Instant) -> Notice | None:
    """Return the oldest notice if its time has come: they go out in order, so `raised` comes before `cleared`."""
    row = tx.one("alert_delivery_oldest")
    return None if row is None or row["due_us"] > now.elapsed_us else _notice(row)


def delivered(tx: Transaction, _now: Instant, delivery_id: int) -> None:
    """Note that the webhook has taken a notice."""
    tx.change("alert_delivery_done", delivery_id=delivery_id)


def failed(tx: Transaction, now: Instant, delivery_id: int) -> bool:
    """Put a notice off, longer each time; True if it is given up instead."""
    row = tx.one("alert_delivery_get", delivery_id=delivery_id)
    if row is None:
        return False
    if now.elapsed_us - row["created_us"] >= microseconds(GIVE_UP_AFTER):
        tx.change("alert_delivery_done", delivery_id=delivery_id)
        return True
    doublings = min(row["attempts"], 16)
    delay = min(FIRST_DELAY * 2**doublings, LONGEST_DELAY)
    tx.change("alert_delivery_retry", delivery_id=delivery_id, due_us=now.elapsed_us + microseconds(delay))
    return False


def _notice(row: Row) -> Notice:
    return Notice(
        delivery_id=row["delivery_id"],
        edge=row["edge"],
        alert_id=row["alert_id"],
        kind=AlertKind(row["kind"]),
        subject=row["subject"],
        message=row["message"],
        raised_at=row["raised_at"],
        cleared_at=row["cleared_at"],
        attempts=row["attempts"],
    )
