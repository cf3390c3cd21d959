"""The outbox of alerts: a row for each notice that the log or the webhook still has to be told."""

from dataclasses import dataclass

from gateway.domain.instant import Instant
from gateway.domain.models import AlertKind
from gateway.store.port import ReadTransaction, Row, Transaction


@dataclass(frozen=True, slots=True)
class Notice:
    """That an alert was `raised` or `cleared` (`edge`). `delivery_id` is the same on each try.

    `created_us` and `due_us` are microseconds of the service clock.
    """

    delivery_id: int
    edge: str
    alert_id: int
    kind: AlertKind
    subject: str
    message: str
    raised_at: str
    cleared_at: str | None
    attempts: int
    created_us: int
    due_us: int


def add(tx: Transaction, now: Instant, alert_id: int, edge: str) -> None:
    """File a notice, due now."""
    tx.insert("alert_delivery_add", alert_id=alert_id, edge=edge, elapsed_us=now.elapsed_us)


def find(tx: ReadTransaction, delivery_id: int) -> Notice | None:
    """Return the notice, or None if it is gone."""
    row = tx.one("alert_delivery_get", delivery_id=delivery_id)
    return None if row is None else _notice(row)


def first(tx: ReadTransaction) -> Notice | None:
    """Return the oldest notice about tasks, or else the oldest of all, or None."""
    kinds = ",".join(kind for kind in AlertKind if kind.is_about_tasks)
    row = tx.one("alert_delivery_first", first_kinds=f",{kinds},")
    return None if row is None else _notice(row)


def most_tried(tx: ReadTransaction) -> Notice | None:
    """Return the notice that was tried most often, or None."""
    row = tx.one("alert_delivery_most_tried")
    return None if row is None else _notice(row)


def unlogged(tx: ReadTransaction, count: int) -> list[Notice]:
    """Return up to `count` notices that the log has not told yet, the oldest first."""
    return [_notice(row) for row in tx.all("alert_deliveries_unlogged", count=count)]


def mark_logged(tx: Transaction, delivery_id: int) -> bool:
    """Note that the log has told a notice; False if it is gone."""
    return tx.change("alert_delivery_logged", delivery_id=delivery_id) > 0


def retry(tx: Transaction, delivery_id: int, due_us: int) -> None:
    """Put a notice off until then, by the service clock."""
    tx.change_one("alert_delivery_retry", delivery_id=delivery_id, due_us=due_us)


def remove(tx: Transaction, delivery_id: int) -> bool:
    """Take a notice out; False if it is gone already."""
    return tx.change("alert_delivery_done", delivery_id=delivery_id) > 0


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
        created_us=row["created_us"],
        due_us=row["due_us"],
    )
