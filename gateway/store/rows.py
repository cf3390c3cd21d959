"""From rows to the domain's values."""

from gateway.domain.models import LeaseRecord, Pause, Report, Task, TaskDetail, Via
from gateway.domain.states import OrderState, TaskStatus
from gateway.store.port import ReadTransaction, Row


def task_from(row: Row) -> Task:
    """Read a row of `tasks`."""
    return Task(
        row=row["row"],
        task_id=row["task_id"],
        site=row["site"],
        intent_json=row["intent_json"],
        callback_url=row["callback_url"],
        traceparent=row["traceparent"],
        status=TaskStatus(row["status"]),
        lease_owner=row["lease_owner"],
        lease_expires_at=row["lease_expires_at"],
        lease_deadline_us=row["lease_deadline_us"],
        lease_count=row["lease_count"],
        latest_state=None if row["latest_state"] is None else OrderState(row["latest_state"]),
        latest_lease=row["latest_lease"],
        latest_sequence=row["latest_sequence"],
        end_state=None if row["end_state"] is None else OrderState(row["end_state"]),
        end_status=None if row["end_status"] is None else TaskStatus(row["end_status"]),
        order_known=bool(row["order_known"]),
        may_have_clicked=bool(row["may_have_clicked"]),
        submit_permitted_at=row["submit_permitted_at"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        resolved_at=row["resolved_at"],
        order_stated=bool(row["order_stated"]),
        intent_digest=row["intent_digest"],
    )


def lease_from(row: Row) -> LeaseRecord:
    """Read a row of `leases`."""
    return LeaseRecord(
        task_id=row["task_id"],
        lease_number=row["lease_number"],
        token=row["token"],
        worker_id=row["worker_id"],
        session_id=row["session_id"],
        journal_id=row["journal_id"],
        via=Via(row["via"]),
        started_us=row["started_us"],
        acknowledged_at=row["acknowledged_at"],
        ended_us=row["ended_us"],
        permitted_at=row["permitted_at"],
        permit_expires_us=row["permit_expires_us"],
    )


def report_from(row: Row) -> Report:
    """Read a row of `reports`."""
    return Report(
        state=OrderState(row["state"]),
        payable_yen=row["payable_yen"],
        pay_deadline=row["pay_deadline"],
        site_order_id=row["site_order_id"],
        evidence_ref=row["evidence_ref"],
        detail=row["detail"],
        error_code=row["error_code"],
        reported_at=row["reported_at"],
    )


def find_task(tx: ReadTransaction, task_id: str) -> Task | None:
    """Return the task, or None."""
    row = tx.one("task_get", task_id=task_id)
    return None if row is None else task_from(row)


def get_task(tx: ReadTransaction, task_id: str) -> Task:
    """Return a task that is known to exist. Raises LookupError."""
    task = find_task(tx, task_id)
    if task is None:
        raise LookupError(f"task {task_id} should exist")
    return task


def current_lease(tx: ReadTransaction, task: Task) -> LeaseRecord | None:
    """Return the lease that the task has now, or had last; None if it was never leased."""
    row = tx.one("lease_get", task_id=task.task_id, lease_number=task.lease_count)
    return None if row is None else lease_from(row)


def with_reports(tx: ReadTransaction, task: Task) -> TaskDetail:
    """Return the task with its reports, the oldest first."""
    return TaskDetail(task, tuple(report_from(row) for row in tx.all("reports_of_task", task_id=task.task_id)))


def all_pauses(tx: ReadTransaction) -> tuple[Pause, ...]:
    """Return where dispatch is paused."""
    return tuple(
        Pause(row["site"] or None, row["paused_at"], row["paused_by"], row["reason"]) for row in tx.all("pauses_all")
    )
