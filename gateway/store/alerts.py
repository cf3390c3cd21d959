"""Alerts: what a person should look at. Each change of one writes its own notice into the outbox beside it."""

from gateway.domain.instant import Instant
from gateway.domain.models import AlertKind, OrderNumber
from gateway.domain.operations import Alert
from gateway.store import alert_deliveries
from gateway.store.port import ReadTransaction, Row, Transaction


def raise_once(tx: Transaction, now: Instant, kind: AlertKind, subject: str | OrderNumber, message: str) -> bool:
    """Raise an alert; one that stands is not raised again. Tell whether it was raised.

    `subject`: the task's id, or the worker's or callback's where the kind is about one.
    """
    number = subject if isinstance(subject, OrderNumber) else None
    raised = tx.one(
        "alert_raise",
        kind=kind,
        subject=str(subject),
        task_id=str(subject) if kind.is_about_tasks and number is None else None,
        site=number.site if number else None,
        site_order_id=number.site_order_id if number else None,
        message=message,
        at=now.utc,
    )
    if raised is None:
        return False
    alert_deliveries.add(tx, now, raised["alert_id"], "raised")
    return True


def clear(tx: Transaction, now: Instant, kind: AlertKind, subject: str | OrderNumber) -> None:
    """Clear an alert if it stands."""
    standing = tx.one("alert_standing", kind=kind, subject=str(subject))
    if standing is not None:
        tx.change_one("alert_clear", alert_id=standing["alert_id"], at=now.utc)
        alert_deliveries.add(tx, now, standing["alert_id"], "cleared")


def find(tx: ReadTransaction, alert_id: int) -> Alert | None:
    """Return the alert, or None."""
    row = tx.one("alert_get", alert_id=alert_id)
    return None if row is None else _alert(row)


def newest(tx: ReadTransaction, kind: AlertKind | None, *, cleared_too: bool, below: int, count: int) -> list[Alert]:
    """Return up to `count` alerts of a kind (None: all) with numbers smaller than `below`, newest first."""
    rows = tx.all("alerts_newest", below=below, kind=kind or "", cleared_too=int(cleared_too), count=count)
    return [_alert(row) for row in rows]


def standing_subjects(tx: ReadTransaction, kind: AlertKind) -> set[str]:
    """Return the subjects of the alerts of a kind that stand."""
    return {row["subject"] for row in tx.all("alerts_standing_of_kind", kind=kind)}


def standing_of_task(tx: ReadTransaction, task_id: str) -> tuple[Alert, ...]:
    """Return what stands about a task, or about an order number that it shares with another one, oldest first."""
    return tuple(_alert(row) for row in tx.all("alerts_standing_of_task", task_id=task_id))


def _alert(row: Row) -> Alert:
    return Alert(
        row["alert_id"],
        AlertKind(row["kind"]),
        row["subject"],
        row["message"],
        row["raised_at"],
        row["cleared_at"],
    )
