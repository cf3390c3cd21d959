"""Tasks: one row a task, filed once, moved by one statement, never deleted."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from common.target import Target
from gateway.domain.approvals import HELD_FOR_APPROVAL, ApprovalReason
from gateway.domain.instant import Instant
from gateway.domain.models import Submission, Task
from gateway.domain.states import OrderState, TaskStatus
from gateway.domain.terms import Terms, terms_of, terms_text
from gateway.store import targets
from gateway.store.port import ABOVE_ALL_ROWS, ReadTransaction, Row, Transaction


@dataclass(frozen=True, slots=True)
class Filed:
    """A task that was filed just now, and which other one wants the same; None: none."""

    same_intent_as: str | None
    held_for_approval: bool


@dataclass(frozen=True, slots=True)
class Due:
    """Whether there are leases that have run out, queued tasks that are too late, held ones whose time has come, and
    approvals that have run out.
    """

    lapsed: bool
    late: bool
    held: bool
    unapproved: bool


@dataclass(frozen=True, slots=True)
class WaitingTask:
    """A task that waits for a person, with the number of its oldest standing alert."""

    task: Task
    first_alert: int


def wanting_the_same(tx: ReadTransaction, now: Instant, submission: Submission, same_within: timedelta) -> str | None:
    """Return the id of the newest task that wants the same, if it was filed within this time and has not failed."""
    return _id(tx.one("task_same_intent", intent_key=submission.intent_key, same_since=now.later(-same_within)))


def add(
    tx: Transaction,
    now: Instant,
    submission: Submission,
    submitted_by: str,
    approval_reasons: Sequence[ApprovalReason],
    same_within: timedelta,
) -> Filed | None:
    """File a task as queued; None if there is one of this id, which is left as it is.

    `same_within`: for how long another one's wish counts as the same.
    None also where its target is not known, or no use of it was written down lately: see `gateway.targets.use`.
    """
    row = tx.one(
        "task_insert",
        task_id=submission.task_id,
        site=submission.site,
        account=submission.account,
        intent_json=submission.intent_json,
        callback_url=submission.callback_url,
        labels_json=submission.labels_json,
        traceparent=submission.traceparent,
        max_total_yen=submission.max_total_yen,
        not_before=submission.not_before,
        not_after=submission.not_after,
        held_until=HELD_FOR_APPROVAL if approval_reasons else held_until(now, submission.not_before),
        approval_reasons=",".join(approval_reasons) or None,
        stop_before_submit=int(submission.stop_before_submit),
        intent_key=submission.intent_key,
        submitted_by=submitted_by,
        same_since=now.later(-same_within),
        target_used_after_us=targets.stamped_after_us(now),
        elapsed_us=now.elapsed_us,
        at=now.utc,
    )
    return None if row is None else Filed(row["same_intent_as"], bool(approval_reasons))


def held_until(now: Instant, not_before: str | None) -> str | None:
    """Return until when a task that comes into the queue now is kept back; None: it may be handed out."""
    return not_before if not_before is not None and now.utc < not_before else None


def exists(tx: ReadTransaction, task_id: str) -> bool:
    """Tell whether there is a task of this id."""
    return tx.one("task_exists", task_id=task_id) is not None


def find(tx: ReadTransaction, task_id: str) -> Task | None:
    """Return the task, or None."""
    row = tx.one("task_get", task_id=task_id)
    return None if row is None else task_of(row)


def get(tx: ReadTransaction, task_id: str) -> Task:
    """Return a task that is known to exist. Raises LookupError."""
    task = find(tx, task_id)
    if task is None:
        raise LookupError(f"task {task_id} should exist")
    return task


def move(tx: Transaction, before: Task, after: Task) -> None:
    """Turn a task from what it was read as into `after`; only `gateway.orders.transition` may.

    Raises RowCountError if the task is not as it was read: another status or lease, or more known of an order.
    """
    tx.change_one(
        "task_move",
        task_id=before.task_id,
        from_status=before.status,
        from_lease_count=before.lease_count,
        from_may_have_clicked=int(before.may_have_clicked),
        from_order_known=int(before.order_known),
        from_order_stated=int(before.order_stated),
        status=after.status,
        slot=after.slot,
        lease_owner=after.lease_owner,
        lease_expires_at=after.lease_expires_at,
        lease_deadline_us=after.lease_deadline_us,
        lease_count=after.lease_count,
        queued_us=after.queued_us,
        latest_state=after.latest_state,
        latest_lease=after.latest_lease,
        latest_sequence=after.latest_sequence,
        end_state=after.end_state,
        end_status=after.end_status,
        order_known=int(after.order_known),
        may_have_clicked=int(after.may_have_clicked),
        submit_permitted_at=after.submit_permitted_at,
        resolved_at=after.resolved_at,
        order_stated=int(after.order_stated),
        held_until=after.held_until,
        updated_at=after.updated_at,
    )


def mark_permitted(tx: Transaction, now: Instant, task: Task, terms: Terms | None) -> None:
    """Note that the task's lease allows a click. Raises RowCountError unless it is this lease's still."""
    tx.change_one(
        "task_mark_permitted",
        task_id=task.task_id,
        lease_number=task.lease_count,
        terms_json=terms_text(terms),
        at=now.utc,
    )


def request_cancel(tx: Transaction, now: Instant, task: Task) -> None:
    """Note that the end of an active task is wanted. Raises RowCountError unless it is in the same hand still."""
    tx.change_one("task_request_cancel", task_id=task.task_id, lease_number=task.lease_count, at=now.utc)


def keep_terms(tx: Transaction, now: Instant, task: Task, terms: Terms) -> None:
    """Keep the terms that the holder shows of a task of which no permit was ever granted."""
    tx.change_one("task_keep_terms", task_id=task.task_id, terms_json=terms_text(terms), at=now.utc)


def mark_order_known(tx: Transaction, now: Instant, task: Task) -> None:
    """Note that a worker told of an order, which nobody had done yet."""
    tx.change_one("task_mark_order_known", task_id=task.task_id, at=now.utc)


def rekey_slot(tx: Transaction, task: Task, slot: str) -> None:
    """Let an active task occupy another slot."""
    tx.change_one("task_rekey_slot", task_id=task.task_id, slot=slot)


def rebase_deadline(tx: Transaction, task: Task, deadline_us: int) -> None:
    """Set the deadline of an active task's lease, in microseconds of the service clock."""
    tx.change_one("task_rebase_deadline", task_id=task.task_id, deadline_us=deadline_us)


def oldest_plain(tx: ReadTransaction, target: Target) -> int | None:
    """Return the row of the target's task that was filed first of those that may be handed out without a condition."""
    row = tx.one("task_oldest_queued_plain", site=target.site, account=target.account)
    return None if row is None else int(row["row"])


def at(tx: ReadTransaction, row: int) -> Task:
    """Return the task of a row. Raises LookupError."""
    found = tx.one("task_at", row=row)
    if found is None:
        raise LookupError(f"there should be a task in row {row}")
    return task_of(found)


def active(tx: ReadTransaction, count: int = ABOVE_ALL_ROWS) -> list[Task]:
    """Return up to `count` of the tasks that occupy a slot, as they were filed."""
    return [task_of(row) for row in tx.all("tasks_active", count=count)]


def any_active(tx: ReadTransaction) -> str | None:
    """Return the id of a task that occupies a slot, whichever slot; None if all are free."""
    return _id(tx.one("task_any_active"))


def any_active_on(tx: ReadTransaction, site: str) -> str | None:
    """Return the id of a task of this site that occupies a slot; None if there is none."""
    return _id(tx.one("task_any_active_on_site", site=site))


def any_active_of(tx: ReadTransaction, target: Target) -> str | None:
    """Return the id of the target's task that occupies a slot; None if there is none."""
    return _id(tx.one("task_any_active_of_target", site=target.site, account=target.account))


def held_by(tx: ReadTransaction, worker_id: str) -> str | None:
    """Return the id of a task that a worker holds; None if it holds none."""
    return _id(tx.one("task_of_worker", worker_id=worker_id))


def due(tx: ReadTransaction, now: Instant) -> Due:
    """Tell what time has brought about and nobody has written down."""
    row = tx.one("tasks_due", elapsed_us=now.elapsed_us, at=now.utc)
    return Due(*(row is not None and row[name] > 0 for name in ("lapsed", "late", "held", "unapproved")))


def late(tx: ReadTransaction, now: Instant, count: int) -> list[Task]:
    """Return up to `count` queued tasks of which nothing can be ordered and whose time has passed."""
    return [task_of(row) for row in tx.all("tasks_late", at=now.utc, count=count)]


def release(tx: Transaction, now: Instant, count: int) -> list[Target]:
    """Let up to `count` held tasks whose time has come wait like others; return their targets."""
    rows = tx.all("tasks_release", at=now.utc, elapsed_us=now.elapsed_us, count=count)
    return [Target(row["site"], row["account"]) for row in rows]


def next_held(tx: ReadTransaction) -> str | None:
    """Return when the next held task may be handed out, as UTC text; None: none is held."""
    row = tx.one("task_next_held")
    return None if row is None else str(row["held_until"])


def lapsed(tx: ReadTransaction, now: Instant) -> list[Task]:
    """Return the active tasks whose lease has reached its deadline, the one that did first at first."""
    return [task_of(row) for row in tx.all("tasks_lapsed", elapsed_us=now.elapsed_us)]


def open_at_restore(tx: ReadTransaction) -> list[Task]:
    """Return the tasks that may still be, or have been since the backup, in a worker's hand."""
    return [task_of(row) for row in tx.all("tasks_open")]


def waiting_for_a_person(tx: ReadTransaction, after: tuple[int, int], count: int) -> list[WaitingTask]:
    """Return up to `count` tasks with a standing alert behind this position (alert, row), the longest waiting first."""
    rows = tx.all("tasks_to_decide", after_alert=after[0], after_row=after[1], count=count)
    return [WaitingTask(task_of(row), row["first_alert"]) for row in rows]


def _id(row: Row | None) -> str | None:
    return None if row is None else str(row["task_id"])


def _reasons(words: str | None) -> tuple[ApprovalReason, ...]:
    return () if words is None else tuple(map(ApprovalReason, words.split(",")))


def task_of(row: Row) -> Task:
    """Return the task of a row that has all of its columns."""
    return Task(
        row=row["row"],
        task_id=row["task_id"],
        site=row["site"],
        intent_json=row["intent_json"],
        callback_url=row["callback_url"],
        traceparent=row["traceparent"],
        status=TaskStatus(row["status"]),
        slot=row["slot"],
        lease_owner=row["lease_owner"],
        lease_expires_at=row["lease_expires_at"],
        lease_deadline_us=row["lease_deadline_us"],
        lease_count=row["lease_count"],
        queued_us=row["queued_us"],
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
        account=row["account"],
        labels_json=row["labels_json"],
        max_total_yen=row["max_total_yen"],
        terms=terms_of(row["terms_json"]),
        not_before=row["not_before"],
        not_after=row["not_after"],
        held_until=row["held_until"],
        stop_before_submit=bool(row["stop_before_submit"]),
        cancel_requested_at=row["cancel_requested_at"],
        same_intent_as=row["same_intent_as"],
        submitted_by=row["submitted_by"],
        approval_reasons=_reasons(row["approval_reasons"]),
    )
