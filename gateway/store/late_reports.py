"""Reports that came too late to count: refused, and kept as they were told, each once."""

from gateway.domain.instant import Instant
from gateway.domain.models import Holder, NewReport, Report, Task
from gateway.domain.operations import LateReport
from gateway.domain.refusals import Refusal
from gateway.domain.states import OrderState
from gateway.store.port import ReadTransaction, Row, Transaction


def add(
    tx: Transaction, now: Instant, task: Task, holder: Holder, told: NewReport, state: OrderState, refusal: Refusal
) -> bool:
    """Keep a report of this state; False if the very same was kept before."""
    return (
        tx.change(
            "late_report_add",
            task_id=task.task_id,
            worker_id=holder.worker_id,
            state=state,
            payable_yen=told.payable_yen,
            pay_deadline=told.pay_deadline,
            site_order_id=told.site_order_id,
            evidence_ref=told.evidence_ref,
            detail=told.detail,
            error_code=told.error_code,
            sequence=told.sequence,
            terminal=int(told.terminal),
            terminal_status=told.terminal_status,
            refusal_reason=refusal.reason.value,
            refusal=refusal.message,
            at=now.utc,
        )
        > 0
    )


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
