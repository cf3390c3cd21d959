"""Reports that came too late to count: refused, and kept as they were told, each once."""

from enum import Enum, auto
from hashlib import sha256
from typing import Final

from gateway.domain.instant import Instant
from gateway.domain.json_writing import dump
from gateway.domain.leases import Holder
from gateway.domain.models import NewReport, Report, Task
from gateway.domain.operations import LateReport
from gateway.domain.refusals import Refusal
from gateway.domain.states import OrderState
from gateway.store.port import ReadTransaction, Row, Transaction

MAX_KEPT: Final = 100
"""Late reports of one task that are kept for one token; of further ones, those that say something new of the order."""


class Kept(Enum):
    """What became of a late report: written down, known word for word, or one too many that says nothing new."""

    NEW = auto()
    REPEAT = auto()
    ONE_TOO_MANY = auto()


def add(
    tx: Transaction, now: Instant, task: Task, holder: Holder, told: NewReport, state: OrderState, refusal: Refusal
) -> Kept:
    """Keep a report of this state, unless the very same was kept before or its token has told enough."""
    says = {
        "task_id": task.task_id,
        "state": state.value,
        "terminal": int(told.terminal),
        "terminal_status": told.terminal_status and told.terminal_status.value,
        "site_order_id": told.site_order_id,
    }
    words = says | {
        "worker_id": holder.worker_id,
        "payable_yen": told.payable_yen,
        "pay_deadline": told.pay_deadline,
        "evidence_ref": told.evidence_ref,
        "detail": told.detail,
        "error_code": told.error_code,
        "sequence": told.sequence,
        "refusal_reason": refusal.reason.value,
    }
    digest = sha256(dump(words).encode("utf-8", "surrogatepass")).hexdigest()
    if tx.one("late_report_with_digest", task_id=task.task_id, digest=digest) is not None:
        return Kept.REPEAT
    told_enough = tx.one("late_report_number", task_id=task.task_id, told_by=holder.identity, number=MAX_KEPT)
    if told_enough is not None and tx.one("late_report_that_says", **says) is not None:
        return Kept.ONE_TOO_MANY
    tx.insert("late_report_add", **words, refusal=refusal.message, at=now.utc, told_by=holder.identity, digest=digest)
    return Kept.NEW


def newest_of_task(tx: ReadTransaction, task_id: str, count: int) -> tuple[LateReport, ...]:
    """Return the newest `count` late reports of a task, the oldest of them first."""
    return tuple(_late_report(row) for row in reversed(tx.all("late_reports_of_task", task_id=task_id, count=count)))


def _late_report(row: Row) -> LateReport:
    return LateReport(
        worker_id=row["worker_id"],
        report=Report(
            state=OrderState(row["state"]),
            payable_yen=row["payable_yen"],
            pay_deadline=row["pay_deadline"],
            site_order_id=row["site_order_id"],
            evidence_ref=row["evidence_ref"],
            detail=row["detail"],
            error_code=row["error_code"],
            reported_at=row["received_at"],
        ),
        refusal=row["refusal"],
    )
