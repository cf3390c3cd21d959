"""When the database was put back from a backup."""

from gateway.domain.instant import Instant
from gateway.store.port import ReadTransaction, Transaction


def add(tx: Transaction, now: Instant, reason: str) -> None:
    """Note that the database was restored now."""
    tx.insert("restore_add", reason=reason, at=now.utc)


def any_since(tx: ReadTransaction, since: str) -> bool:
    """Tell whether there was a restore at or after a time, UTC text."""
    return tx.one("restored_since", since=since) is not None
