"""Which backups were made and verified; the files may have been moved anywhere since."""

from gateway.domain.instant import Instant
from gateway.domain.operations import BackupFacts
from gateway.store.port import ReadTransaction, Transaction


def add(tx: Transaction, now: Instant, facts: BackupFacts) -> None:
    """Note that a backup was made and verified."""
    tx.insert("backup_add", file_name=facts.file_name, size=facts.size_bytes, digest=facts.sha256, at=now.utc)


def last_made_at(tx: ReadTransaction) -> str | None:
    """Return when the newest backup was noted, UTC text; None if there is none."""
    row = tx.one("backup_last")
    return None if row is None else str(row["made_at"])
