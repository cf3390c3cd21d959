"""What the database itself makes impossible of proposals, also for a program that knows of none."""

from typing import Any

import pytest

from tests.gateway.store.conformance.conftest import StoreBook

AT, LATER = "2026-11-29T16:00:00.000000Z", "2026-11-30T16:00:00.000000Z"
PROPOSE = (
    "INSERT INTO proposals (kind, task_id, decision_json, reason, basis, proposed_by, proposed_at, valid_until, status)"
    " VALUES (:kind, :task_id, '{}', '', '', 'alice', :at, :until, :status)"
)
CLOSE = "UPDATE proposals SET status = :status, closed_by = :by, closed_at = :at"


def propose(book: StoreBook, **fields: Any) -> None:
    """Write a proposal past all use cases."""
    values = {"kind": "resolve", "task_id": "po-1", "at": AT, "until": LATER, "status": "waiting"} | fields
    book.connection.execute(PROPOSE, values)


def close(book: StoreBook, status: str = "confirmed", by: str | None = "bob", at: str | None = LATER) -> None:
    book.connection.execute(CLOSE, {"status": status, "by": by, "at": at})


@pytest.fixture(autouse=True)
def filed(book: StoreBook) -> None:
    book.submit()


def test_nobody_confirms_their_own(book: StoreBook) -> None:
    propose(book)
    with pytest.raises(book.engine.violation):
        close(book, by="alice")
    close(book)


@pytest.mark.parametrize(
    "fields", [{"status": "confirmed"}, {"kind": "resume"}, {"task_id": None}, {"until": AT}, {"kind": "buy"}], ids=str
)
def test_what_a_proposal_must_be(book: StoreBook, fields: dict[str, Any]) -> None:
    with pytest.raises(book.engine.violation):
        propose(book, **fields)


def test_one_waits_at_a_time_about_the_same(book: StoreBook) -> None:
    propose(book)
    propose(book, kind="resume", task_id=None)
    for kind, task_id in (("approve", "po-1"), ("resume", None)):
        with pytest.raises(book.engine.violation):
            propose(book, kind=kind, task_id=task_id)
    close(book, "withdrawn")
    propose(book)


def test_it_is_closed_once_never_changes_and_stays(book: StoreBook) -> None:
    propose(book)
    for change in ("reason = 'other'", "proposed_by = 'bob'", "decision_json = '[]'", "basis = 'x'", "closed_by = 'x'"):
        with pytest.raises(book.engine.violation):
            book.connection.execute(f"UPDATE proposals SET {change}")  # noqa: S608 - ours
    with pytest.raises(book.engine.violation):
        close(book, by=None)
    close(book)
    with pytest.raises(book.engine.violation):
        close(book, "withdrawn")
    with pytest.raises(book.engine.violation, match="never deleted"):
        book.connection.execute("DELETE FROM proposals")
