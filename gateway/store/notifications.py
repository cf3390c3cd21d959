"""What people are still to be told of alerts, by channel, and how each channel answered last."""

from gateway.domain.instant import Instant
from gateway.domain.models import AlertKind
from gateway.domain.notifications import MAX_DIGEST, ChannelState, Pending, Urgency
from gateway.store.port import ReadTransaction, Row, Transaction


def add(tx: Transaction, channel: str, urgency: Urgency, alert_id: int, edge: str, due_us: int) -> None:
    """File what a channel is to be told from then on, by the service clock; once."""
    tx.change_any(
        "notification_add",
        channel=channel,
        urgency=urgency,
        alert_id=alert_id,
        edge=edge,
        due_us=due_us,
    )


def digest_begun(tx: ReadTransaction, channel: str) -> tuple[int, int | None]:
    """Return how much the digest holds that is being gathered (MAX_DIGEST at most), and when it goes out."""
    row = tx.one("notifications_digest_begun", channel=channel, count=MAX_DIGEST)
    return (0, None) if row is None else (int(row["count"]), row["due_us"])


def due(tx: ReadTransaction, now: Instant, channel: str, urgency: Urgency, count: int) -> list[Pending]:
    """Return up to `count` of what a channel is to be told by now, the longest due first."""
    rows = tx.all("notifications_due", channel=channel, urgency=urgency, elapsed_us=now.elapsed_us, count=count)
    return [_pending(row) for row in rows]


def put_off(tx: Transaction, notification_id: int, due_us: int) -> None:
    """Note a try that was not taken; the next one is due then, by the service clock."""
    tx.change_any("notification_put_off", notification_id=notification_id, due_us=due_us)


def remove(tx: Transaction, notification_id: int) -> None:
    """Take one out, which was told or need not be told any more."""
    tx.change_any("notification_remove", notification_id=notification_id)


def note(tx: Transaction, now: Instant, channel: str, told: str, *, taken: bool) -> None:
    """Note how a channel answered."""
    tx.change_any("notification_channel_told", channel=channel, failed=int(not taken), told=told, at=now.utc)


def channels(tx: ReadTransaction) -> list[ChannelState]:
    """Return how each channel answered last, also those that are configured no more."""
    return [
        ChannelState(row["channel"], row["failures"], row["told"], row["tried_at"])
        for row in tx.all("notification_channels")
    ]


def _pending(row: Row) -> Pending:
    return Pending(
        notification_id=row["notification_id"],
        urgency=Urgency(row["urgency"]),
        edge=row["edge"],
        kind=AlertKind(row["kind"]),
        subject=row["subject"],
        task_id=row["task_id"],
        message=row["message"],
        raised_at=row["raised_at"],
        cleared_at=row["cleared_at"],
        attempts=row["attempts"],
        since_us=row["since_us"],
    )
