"""What tests of reports share."""

from typing import Any

from gateway.domain.leases import Lease
from gateway.domain.models import Reported
from gateway.domain.states import TaskStatus
from tests.gateway.support.book import Book


def accepted(outcome: object) -> Reported:
    assert isinstance(outcome, Reported), outcome
    return outcome


def late(book: Book) -> tuple[Lease, TaskStatus]:
    lease = book.take()
    book.lapse(lease)
    return lease, TaskStatus.STALE


def mirror(book: Book, task_id: str = "po-1") -> list[dict[str, Any]]:
    return book.rows("SELECT * FROM reports WHERE task_id = ? ORDER BY row", task_id)
