"""Approvals: a row a decision about a task that needs one, the latest of which counts."""

from gateway.domain.approvals import Approval, Verdict
from gateway.domain.instant import Instant
from gateway.store.port import ReadTransaction, Row, Transaction


def latest(tx: ReadTransaction, task_id: str) -> Approval | None:
    """Return what was last decided about a task; None: nothing yet."""
    row = tx.one("approval_latest", task_id=task_id)
    return None if row is None else _approval(row)


def add(tx: Transaction, now: Instant, approval: Approval) -> None:
    """Write down a decision. What stood before must have ended."""
    tx.insert(
        "approval_insert",
        task_id=approval.task_id,
        approval_number=approval.number,
        verdict=approval.verdict,
        decided_by=approval.decided_by,
        reason=approval.reason,
        intent_hash=approval.intent_sha256,
        max_total_yen=approval.max_total_yen,
        valid_until=approval.valid_until,
        ended_at=approval.ended_at,
        at=now.utc,
    )


def use(tx: Transaction, now: Instant, approval: Approval, lease_number: int) -> None:
    """Let the permit of a lease use an approval. Raises RowCountError unless it stands."""
    tx.change_one(
        "approval_use",
        task_id=approval.task_id,
        approval_number=approval.number,
        lease_number=lease_number,
        at=now.utc,
    )


def end(tx: Transaction, now: Instant, task_id: str) -> None:
    """Let what stands for a task stand no more, if anything does."""
    tx.change_any("approval_end", task_id=task_id, at=now.utc)


def run_out(tx: ReadTransaction, now: Instant, count: int) -> list[str]:
    """Return up to `count` tasks whose standing approval has run out, the one that did first at first."""
    return [row["task_id"] for row in tx.all("approvals_run_out", at=now.utc, count=count)]


def _approval(row: Row) -> Approval:
    return Approval(
        task_id=row["task_id"],
        number=row["approval_number"],
        verdict=Verdict(row["verdict"]),
        decided_by=row["decided_by"],
        decided_at=row["decided_at"],
        reason=row["reason"],
        intent_sha256=row["intent_hash"],
        max_total_yen=row["max_total_yen"],
        valid_until=row["valid_until"],
        used_by_lease=row["used_by_lease"],
        ended_at=row["ended_at"],
    )
