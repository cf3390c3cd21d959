"""What the database itself makes impossible of approvals, also for a program that knows of none."""

from typing import Any

import pytest

from gateway.domain.approvals import Consent
from gateway.domain.models import Actor
from gateway.operations.actions import expire_now, requeue
from gateway.operations.approvals import approve
from tests.gateway.store.conformance.conftest import StoreBook

FOREVER = "9999-12-31T23:59:59.999999Z"
PERMIT = (
    "UPDATE leases SET permit_payable_yen = :yen, permit_terms_json = '{}', permit_expires_us = 1, permitted_at = :at"
    " WHERE permitted_at IS NULL"
)
SOON = "2026-11-29T16:00:00.000000Z"
APPROVE = (
    "INSERT INTO approvals (task_id, approval_number, verdict, decided_by, decided_at, reason, intent_hash,"
    " max_total_yen, valid_until) VALUES ('po-1', :number, 'approved', :by, :at, '', '', :yen, :until)"
)


def given(book: StoreBook, **fields: Any) -> None:
    """Write an approval past all use cases."""
    values = {"number": 1, "by": "mika", "at": SOON, "yen": 3_000, "until": FOREVER} | fields
    book.connection.execute(APPROVE, values)


def taken(book: StoreBook) -> None:
    """Have po-1 approved for 3,000 yen, and taken."""
    book.submit(requires_approval=True)
    book.run(approve, book.policy, Consent("po-1", "needed", 3_000), Actor("mika"))
    book.take()


def used(book: StoreBook) -> None:
    book.connection.execute("UPDATE approvals SET used_by_lease = 1, ended_at = :at", {"at": SOON})


def test_a_permit_without_an_approval(book: StoreBook) -> None:
    taken(book)
    with pytest.raises(book.engine.violation, match="lacks its approval"):
        book.connection.execute(PERMIT, {"yen": 3_000, "at": SOON})
    used(book)
    for yen, at in ((3_001, SOON), (3_000, FOREVER)):
        with pytest.raises(book.engine.violation, match="lacks its approval"):
            book.connection.execute(PERMIT, {"yen": yen, "at": at})
    with pytest.raises(book.engine.violation, match="lacks its approval"):
        book.connection.execute("UPDATE leases SET permitted_at = :at, permit_expires_us = 1", {"at": SOON})
    book.connection.execute(PERMIT, {"yen": 3_000, "at": SOON})


def test_a_permit_of_a_task_that_needs_none(book: StoreBook) -> None:
    book.take()
    book.connection.execute(PERMIT, {"yen": 3_000, "at": SOON})


def test_an_approval_is_used_once_and_never_changes(book: StoreBook) -> None:
    taken(book)
    for change in ("max_total_yen = 9000", "valid_until = 'z'", "task_id = 'po-2'", "intent_hash = 'z'"):
        with pytest.raises(book.engine.violation, match="never changes"):
            book.connection.execute(f"UPDATE approvals SET {change}")  # noqa: S608 -- own texts
    used(book)
    with pytest.raises(book.engine.violation, match="used once"):
        used(book)
    with pytest.raises(book.engine.violation, match="used once"):
        book.connection.execute("UPDATE approvals SET ended_at = NULL, used_by_lease = NULL")
    with pytest.raises(book.engine.violation, match="never deleted"):
        book.connection.execute("DELETE FROM approvals")


def test_an_approval_of_one_s_own(book: StoreBook) -> None:
    book.submit(requires_approval=True)
    with pytest.raises(book.engine.violation, match="nobody approves an order that they filed"):
        given(book, by="upstream")
    given(book)


def test_an_approval_over_the_cap(book: StoreBook) -> None:
    book.submit(requires_approval=True, max_total_yen=3_000)
    with pytest.raises(book.engine.violation, match="raises no cap"):
        given(book, yen=3_001)
    given(book)


def test_two_that_stand(book: StoreBook) -> None:
    book.submit(requires_approval=True)
    given(book)
    with pytest.raises(book.engine.violation, match=r"(?i)unique"):
        given(book, number=2)


@pytest.mark.parametrize("fields", [{"yen": None}, {"until": None}, {"yen": 0}, {"until": SOON}], ids=str)
def test_half_an_approval(book: StoreBook, fields: dict[str, Any]) -> None:
    book.submit(requires_approval=True)
    with pytest.raises(book.engine.violation, match=r"(?i)check"):
        given(book, **fields)


@pytest.mark.parametrize("until", ["NULL", "'2026-11-30T00:00:00.000000Z'"])
def test_a_task_that_is_let_go_unapproved(book: StoreBook, until: str) -> None:
    book.submit(requires_approval=True)
    with pytest.raises(book.engine.violation, match="held until it is approved"):
        book.connection.execute(f"UPDATE tasks SET held_until = {until}")  # noqa: S608 -- own texts
    given(book)
    book.connection.execute(f"UPDATE tasks SET held_until = {until}")  # noqa: S608 -- own texts


def test_a_task_that_is_queued_again_unapproved(book: StoreBook) -> None:
    taken(book)
    used(book)
    book.run(expire_now, "po-1", "gone", Actor("mika"))
    with pytest.raises(book.engine.violation, match="held until it is approved"):
        book.connection.execute("UPDATE tasks SET status = 'queued', slot = NULL WHERE status = 'stale'")
    book.run(requeue, "po-1", "again", Actor("mika"))
    assert book.task().is_held_for_approval


def test_a_need_that_changes(book: StoreBook) -> None:
    book.submit(requires_approval=True)
    for change in ("approval_reasons = NULL", "submitted_by = 'mika'"):
        with pytest.raises(book.engine.violation, match="a task keeps"):
            book.connection.execute(f"UPDATE tasks SET {change}")  # noqa: S608 -- own texts


def test_a_callback_of_its_own(book: StoreBook) -> None:
    book.submit()
    book.connection.execute(
        "INSERT INTO callbacks (callback_id, task_id, url, endpoint, type, data_json, created_at, since_us, due_us,"
        " next_attempt_at)"
        " VALUES ('cb', 'po-1', '', '', 'order.approval_required', '{}', '', 0, 0, '')"
    )
    with pytest.raises(book.engine.violation, match=r"(?i)check"):
        book.connection.execute("UPDATE callbacks SET type = 'order.unknown'")
