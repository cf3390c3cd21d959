"""The mirror of what was told of an order: a row a task and order state, by workers or `stated` by a person."""

from dataclasses import dataclass

from gateway.domain.instant import Instant
from gateway.domain.models import NewReport, Report, Task, TaskDetail
from gateway.domain.states import OrderState
from gateway.store import approvals
from gateway.store.port import ReadTransaction, Row, Transaction


@dataclass(frozen=True, order=True, slots=True)
class ReportAge:
    """How new a report is: the lease that it belongs to, then the number that the worker's journal gave it."""

    lease_number: int
    sequence: int


def with_reports(tx: ReadTransaction, task: Task) -> TaskDetail:
    """Return the task with its reports, the oldest first, and what was last decided where it needs an approval."""
    approval = approvals.latest(tx, task.task_id) if task.requires_approval else None
    return TaskDetail(task, tuple(_report(row) for row in tx.all("reports_of_task", task_id=task.task_id)), approval)


def find_age(tx: ReadTransaction, task_id: str, state: OrderState) -> ReportAge | None:
    """Return how new what is known of this state is; None if nothing is."""
    row = tx.one("report_get", task_id=task_id, state=state)
    return None if row is None else ReportAge(row["lease_number"], row["sequence"])


def add(tx: Transaction, now: Instant, task_id: str, state: OrderState, told: NewReport, age: ReportAge) -> None:
    """Write the first report of a state."""
    tx.insert(
        "report_insert",
        task_id=task_id,
        state=state,
        **_told(told),
        lease_number=age.lease_number,
        sequence=age.sequence,
        at=now.utc,
    )


def overwrite(tx: Transaction, task_id: str, state: OrderState, told: NewReport, age: ReportAge) -> None:
    """Put what a newer report brings over what is known of the state; what it does not bring stays."""
    tx.change_one(
        "report_overwrite",
        task_id=task_id,
        state=state,
        **_told(told),
        lease_number=age.lease_number,
        sequence=age.sequence,
    )


def fill_in(tx: Transaction, task_id: str, state: OrderState, told: NewReport) -> None:
    """Let an older report fill in what is not known of the state."""
    tx.change_one(
        "report_fill_in",
        task_id=task_id,
        state=state,
        **_told(told),
    )


def add_statement(
    tx: Transaction, now: Instant, task: Task, state: OrderState, site_order_id: str | None, detail: str
) -> None:
    """Write what a person states of an order state of which no worker has told."""
    tx.insert(
        "statement_row_insert",
        task_id=task.task_id,
        state=state,
        site_order_id=site_order_id,
        detail=detail,
        lease_number=task.lease_count,
        sequence=task.latest_sequence,
        at=now.utc,
    )


def fill_in_number(tx: Transaction, task_id: str, state: OrderState, site_order_id: str | None) -> None:
    """Give a report the order number that a person states, if it has none."""
    tx.change_one("statement_number_fill_in", task_id=task_id, state=state, site_order_id=site_order_id)


def take_back_statements(tx: Transaction, task_id: str) -> None:
    """Delete what a person had stated, of however many states."""
    tx.change_any("statement_rows_take_back", task_id=task_id)


def clear_number(tx: Transaction, task_id: str, site_order_id: str) -> None:
    """Take an order number out of a task's reports, however many have it."""
    tx.change_any("statement_number_clear", task_id=task_id, site_order_id=site_order_id)


def amount_of_order(tx: ReadTransaction, task_id: str) -> int | None:
    """Return what workers told last of the amount of an order that is on the site, in yen; None if they told none."""
    row = tx.one("report_amount_of_order", task_id=task_id)
    return None if row is None else int(row["payable_yen"])


def latest_state_of_workers(tx: ReadTransaction, task_id: str) -> OrderState | None:
    """Return the state that workers told last; None if they told none."""
    row = tx.one("report_latest_of_workers", task_id=task_id)
    return None if row is None else OrderState(row["state"])


def _report(row: Row) -> Report:
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


def _told(told: NewReport) -> dict[str, str | int | None]:
    """Return what a report brings of its state, by the names of the columns."""
    return {
        "payable_yen": told.payable_yen,
        "pay_deadline": told.pay_deadline,
        "site_order_id": told.site_order_id,
        "evidence_ref": told.evidence_ref,
        "detail": told.detail,
        "error_code": told.error_code,
    }
