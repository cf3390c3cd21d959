"""Rows of the journal as values."""

import sqlite3
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from common.target import ONLY_ACCOUNT, Target
from worker.clock import from_utc_text
from worker.orders.state import OrderState


class OrderStatus(StrEnum):
    """How the worker ended a task; `open` while it has not."""

    OPEN = "open"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    NEEDS_HUMAN = "needs_human"


class Outcome(StrEnum):
    """What the gateway made of a report. `refused` stands in old journals alone: such a report is sent again now."""

    ACCEPTED = "accepted"
    RECORDED_LATE = "recorded_late"
    REFUSED = "refused"


class ReclaimStatus(StrEnum):
    """Where a reclaim request stands; the last three are its end."""

    WAITING = "waiting"
    TAKEN = "taken"
    DONE = "done"
    REFUSED = "refused"
    INTERRUPTED = "interrupted"

    @property
    def is_open(self) -> bool:
        """True before its end."""
        return self in (ReclaimStatus.WAITING, ReclaimStatus.TAKEN)


@dataclass(frozen=True, slots=True)
class Order:
    """An order as the journal knows it. Amount in yen; times aware, UTC."""

    task_id: str
    site: str
    account: str
    intent_json: str
    task_created_at: datetime
    state: OrderState
    status: OrderStatus
    lease_token: str
    run_folder: str
    site_order_id: str | None
    payable_yen: int | None
    pay_deadline: datetime | None
    evidence_ref: str | None
    detail: str
    error_code: int | None
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None
    deadline_alerted_at: datetime | None

    @property
    def target(self) -> Target:
        """The account of the site that orders."""
        return Target(self.site, self.account)

    @classmethod
    def from_row(cls, row: sqlite3.Row) -> "Order":
        """Read a row of `orders`."""
        return cls(
            task_id=row["task_id"],
            site=row["site"],
            account=row["account"],
            intent_json=row["intent_json"],
            task_created_at=from_utc_text(row["task_created_at"]),
            state=OrderState(row["state"]),
            status=OrderStatus(row["status"]),
            lease_token=row["lease_token"],
            run_folder=row["run_folder"],
            site_order_id=row["site_order_id"],
            payable_yen=row["payable_yen"],
            pay_deadline=_moment(row["pay_deadline"]),
            evidence_ref=row["evidence_ref"],
            detail=row["detail"],
            error_code=row["error_code"],
            created_at=from_utc_text(row["created_at"]),
            updated_at=from_utc_text(row["updated_at"]),
            ended_at=_moment(row["ended_at"]),
            deadline_alerted_at=_moment(row["deadline_alerted_at"]),
        )


@dataclass(frozen=True, slots=True)
class LeasedTask:
    """A lease as it came: the task, and what this lease of it is. `lease_count` is 1 for the task's first."""

    task_id: str
    site: str
    intent_json: str
    task_created_at: datetime
    lease_token: str
    lease_count: int
    account: str = ONLY_ACCOUNT


@dataclass(frozen=True, slots=True)
class Taken:
    """A lease that is new to the journal; `known` True if the task itself was not."""

    order: Order
    known: bool


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """Something that happened to an order and is told to the gateway. None: not known, or as before.

    `status` other than OPEN ends the task. `event` names it in the journal's history.
    """

    event: str
    state: OrderState
    status: OrderStatus = OrderStatus.OPEN
    evidence_ref: str | None = None
    site_order_id: str | None = None
    payable_yen: int | None = None
    pay_deadline: datetime | None = None
    detail: str = ""
    error_code: int | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """A report in the outbox. `terminal_status` None: the task goes on."""

    sequence: int
    task_id: str
    lease_token: str
    state: OrderState
    payable_yen: int | None
    pay_deadline: datetime | None
    site_order_id: str | None
    evidence_ref: str | None
    detail: str
    error_code: int | None
    terminal_status: OrderStatus | None
    outcome: Outcome | None

    @classmethod
    def from_row(cls, row: sqlite3.Row) -> "Report":
        """Read a row of `outbox`."""
        return cls(
            sequence=row["sequence"],
            task_id=row["task_id"],
            lease_token=row["lease_token"],
            state=OrderState(row["state"]),
            payable_yen=row["payable_yen"],
            pay_deadline=_moment(row["pay_deadline"]),
            site_order_id=row["site_order_id"],
            evidence_ref=row["evidence_ref"],
            detail=row["detail"],
            error_code=row["error_code"],
            terminal_status=OrderStatus(row["terminal_status"]) if row["terminal_status"] else None,
            outcome=Outcome(row["outcome"]) if row["outcome"] else None,
        )


@dataclass(frozen=True, slots=True)
class Transition:
    """One entry of an order's history."""

    id: int
    at: datetime
    event: str
    from_state: str | None
    to_state: str
    from_status: str | None
    to_status: str
    evidence_ref: str | None
    detail: str


@dataclass(frozen=True, slots=True)
class EvidenceFile:
    """One file of evidence; `path` and `evidence_ref` are relative to the evidence folder."""

    path: str
    evidence_ref: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class ReclaimRequest:
    """A person's request that a stale task be taken again, and why; `note` says what came of it so far."""

    id: int
    task_id: str
    status: ReclaimStatus
    note: str
    requested_by: str
    reason: str

    @classmethod
    def from_row(cls, row: sqlite3.Row) -> "ReclaimRequest":
        """Read a row of `reclaim_wishes`."""
        return cls(
            id=row["id"],
            task_id=row["task_id"],
            status=ReclaimStatus(row["status"]),
            note=row["note"],
            requested_by=row["requested_by"],
            reason=row["reason"],
        )

    @property
    def names_no_task(self) -> bool:
        """True if the gateway refused it because it knows no such task."""
        return self.status is ReclaimStatus.REFUSED and self.note.startswith("TASK_NOT_FOUND:")


def _moment(text: str | None) -> datetime | None:
    return None if text is None else from_utc_text(text)
