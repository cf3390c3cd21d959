"""Leases: a row each time a task was given out, with its permit and the look at the site that was shown for one."""

from datetime import timedelta

from gateway.domain.binding import binding_of
from gateway.domain.instant import Instant, microseconds
from gateway.domain.leases import LeaseRecord, LeaseRequest, Verdict, Verification, Via
from gateway.domain.models import Task
from gateway.domain.operations import UNKNOWN_JOURNAL, UNKNOWN_WORKER
from gateway.domain.terms import Terms, terms_of, terms_text
from gateway.store.port import ReadTransaction, Row, Transaction


def add(tx: Transaction, now: Instant, task: Task, request: LeaseRequest, token: str) -> None:
    """Write down the lease that the task has now."""
    tx.insert(
        "lease_insert",
        task_id=task.task_id,
        lease_number=task.lease_count,
        token=token,
        worker_id=request.worker_id,
        session_id=request.session_id,
        journal_id=request.journal_id,
        via=request.via,
        bound_to=binding_of(request.identity),
        at=now.utc,
        elapsed_us=now.elapsed_us,
    )


def add_unknown(tx: Transaction, now: Instant, task: Task, token: str) -> None:
    """Write down a lease that nobody can hold: permitted and ended now, of a journal that no worker has."""
    tx.insert(
        "lease_of_the_unknown",
        task_id=task.task_id,
        lease_number=task.lease_count,
        token=token,
        worker_id=UNKNOWN_WORKER,
        journal_id=UNKNOWN_JOURNAL,
        at=now.utc,
        elapsed_us=now.elapsed_us,
    )


def current(tx: ReadTransaction, task: Task) -> LeaseRecord | None:
    """Return the lease that the task has now, or had last; None if it was never leased."""
    row = tx.one("lease_get", task_id=task.task_id, lease_number=task.lease_count)
    return None if row is None else _lease(row)


def of_task(tx: ReadTransaction, task_id: str) -> tuple[LeaseRecord, ...]:
    """Return every lease of a task, the first one first."""
    return tuple(_lease(row) for row in tx.all("leases_of_task", task_id=task_id))


def unacknowledged_of_session(tx: ReadTransaction, session_id: str) -> LeaseRecord | None:
    """Return the open lease that a process was given and has not acknowledged."""
    row = tx.one("lease_unacknowledged_of_session", session_id=session_id)
    return None if row is None else _lease(row)


def acknowledge(tx: Transaction, now: Instant, lease: LeaseRecord) -> None:
    """Note that the worker has got the lease. Raises RowCountError unless it is open and not acknowledged yet."""
    tx.change_one("lease_acknowledge", task_id=lease.task_id, lease_number=lease.lease_number, at=now.utc)


def end(tx: Transaction, now: Instant, task: Task) -> None:
    """End the lease that the task has now. Raises RowCountError unless it is open."""
    tx.change_one(
        "lease_end", task_id=task.task_id, lease_number=task.lease_count, at=now.utc, elapsed_us=now.elapsed_us
    )


def give_again(tx: Transaction, lease: LeaseRecord) -> None:
    """Count one more answer that brings a lease. Raises RowCountError unless it is open and not acknowledged yet."""
    tx.change_one("lease_give_again", task_id=lease.task_id, lease_number=lease.lease_number)


def take_back(tx: Transaction, task_id: str, token: str) -> int | None:
    """Count an answer that reached nobody; return how many others brought the lease, None if it is not to be undone."""
    row = tx.one("lease_take_back", task_id=task_id, token=token)
    return None if row is None else int(row["given_count"])


def undo(tx: Transaction, task_id: str, token: str) -> None:
    """Delete a lease that no answer brought to anybody. Raises RowCountError if one did."""
    tx.change_one("lease_undo", task_id=task_id, token=token)


def permit(tx: Transaction, now: Instant, lease: LeaseRecord, valid_for: timedelta, terms: Terms | None) -> None:
    """Give the lease its one permit, for these terms. Raises RowCountError unless it is open and had none."""
    tx.change_one(
        "lease_permit",
        task_id=lease.task_id,
        lease_number=lease.lease_number,
        expires_us=now.elapsed_us + microseconds(valid_for),
        payable_yen=None if terms is None else terms.payable_yen,
        terms_json=terms_text(terms),
        at=now.utc,
    )


def keep_verification(tx: Transaction, lease: LeaseRecord, look: Verification) -> None:
    """Keep the look at the site that the holder of an open lease shows, in place of an earlier one."""
    tx.change_one(
        "lease_verified",
        task_id=lease.task_id,
        lease_number=lease.lease_number,
        verdict=look.verdict,
        covers_window=int(look.window_fully_covered),
        evidence_ref=look.evidence_ref,
        begun_us=microseconds(look.begun_at),
    )


def latest_of_open_us(tx: ReadTransaction) -> int:
    """Return the latest time that an open lease has seen, its permit's end included, by the service clock; 0: none."""
    row = tx.one("leases_open_latest")
    return 0 if row is None else int(row["latest_us"])


def settle_later(tx: Transaction, later_us: int) -> None:
    """Let what is not settled yet be settled that much later: the clock was put ahead, and no time has passed."""
    if later_us > 0:
        tx.change_any("leases_settle_later", later_us=later_us)


def _lease(row: Row) -> LeaseRecord:
    return LeaseRecord(
        task_id=row["task_id"],
        lease_number=row["lease_number"],
        token=row["token"],
        worker_id=row["worker_id"],
        bound_to=row["bound_to"],
        session_id=row["session_id"],
        journal_id=row["journal_id"],
        via=Via(row["via"]),
        started_us=row["started_us"],
        acknowledged_at=row["acknowledged_at"],
        ended_us=row["ended_us"],
        permitted_at=row["permitted_at"],
        permit_expires_us=row["permit_expires_us"],
        verification=_verification(row),
        permit_terms=terms_of(row["permit_terms_json"]),
        started_at=row["started_at"],
        ended_at=row["ended_at"],
    )


def _verification(row: Row) -> Verification | None:
    if row["verification_verdict"] is None:
        return None
    return Verification(
        Verdict(row["verification_verdict"]),
        bool(row["verification_covers_window"]),
        row["verification_evidence_ref"],
        timedelta(microseconds=row["verification_begun_us"]),
    )
