"""What the database itself makes impossible of conditions, also for a program that knows of none."""

from typing import Any

import pytest

from tests.gateway.store.conformance.conftest import StoreBook
from tests.gateway.support.book import terms

PERMIT = "UPDATE leases SET permitted_at = 'x', permit_expires_us = 1"
LATER = "2026-12-29T15:58:22.123456Z"
LATEST = "2026-12-30T15:58:22.123456Z"


@pytest.mark.parametrize(
    "more",
    ["", ", permit_payable_yen = 3001, permit_terms_json = '{}'"],
    ids=["without terms", "a yen over it"],
)
def test_a_permit_beyond_the_cap(book: StoreBook, more: str) -> None:
    book.submit(max_total_yen=3_000)
    book.take()
    with pytest.raises(book.engine.violation, match="beyond the cap"):
        book.connection.execute(PERMIT + more)
    book.connection.execute(f"{PERMIT}, permit_payable_yen = 3000, permit_terms_json = '{{}}'")


def test_a_permit_without_a_cap_needs_no_terms(book: StoreBook) -> None:
    book.take()
    book.connection.execute(PERMIT)


def test_a_permit_for_a_dry_run(book: StoreBook) -> None:
    book.submit(stop_before_submit=True)
    book.take()
    with pytest.raises(book.engine.violation, match="a dry run gets no permit"):
        book.connection.execute(PERMIT)


def test_a_permit_after_a_cancel_request_and_a_cancel_request_after_a_permit(book: StoreBook) -> None:
    lease = book.take()
    book.connection.execute("UPDATE tasks SET cancel_requested_at = 'x'")
    with pytest.raises(book.engine.violation, match="whose cancel was requested"):
        book.connection.execute(PERMIT)
    with pytest.raises(book.engine.violation, match="stays requested"):
        book.connection.execute("UPDATE tasks SET cancel_requested_at = NULL")
    book.report(lease, terminal=True, sequence=1)
    book.permit(book.take("po-2"))
    with pytest.raises(book.engine.violation, match="before the permit, or not at all"):
        book.connection.execute("UPDATE tasks SET cancel_requested_at = 'x' WHERE task_id = 'po-2'")


def test_a_lease_before_its_time(book: StoreBook) -> None:
    book.submit(not_before=LATER)
    with pytest.raises(book.engine.violation, match="before its time"):
        book.connection.execute(
            "UPDATE tasks SET status = 'leased', slot = 'global', lease_owner = 'w1', lease_expires_at = 'x',"
            " lease_deadline_us = 1, lease_count = 1"
        )


@pytest.mark.parametrize(
    "change",
    [
        {"max_total_yen": 9_000},
        {"max_total_yen": None},
        {"not_before": None},
        {"not_after": LATEST},
        {"stop_before_submit": 0},
    ],
    ids=str,
)
def test_a_condition_that_changes(book: StoreBook, change: dict[str, Any]) -> None:
    book.submit(max_total_yen=3_000, not_before=LATER, not_after=LATER, stop_before_submit=True)
    ((name, value),) = change.items()
    with pytest.raises(book.engine.violation, match=r"keeps|stays"):
        book.connection.execute(f"UPDATE tasks SET {name} = :value", {"value": value})  # noqa: S608


def test_terms_of_a_permit_that_change(book: StoreBook) -> None:
    book.permit(book.take(), terms=terms(3_000))
    with pytest.raises(book.engine.violation, match="given once"):
        book.connection.execute("UPDATE leases SET permit_payable_yen = 2000")


@pytest.mark.parametrize("cap", [0, -1])
def test_a_cap_that_is_none(book: StoreBook, cap: int) -> None:
    with pytest.raises(book.engine.violation, match=r"(?i)check"):
        book.submit(max_total_yen=cap)


def test_an_end_before_the_beginning(book: StoreBook) -> None:
    with pytest.raises(book.engine.violation, match=r"(?i)check"):
        book.submit(not_before=LATEST, not_after=LATER)


def test_a_lane_leads_past_what_is_kept_back(book: StoreBook) -> None:
    def head() -> str | None:
        (row,) = book.engine.execute("SELECT head_row FROM lanes")
        ids = {row["row"]: row["task_id"] for row in book.engine.execute("SELECT row, task_id FROM tasks")}
        return ids.get(row["head_row"])

    book.submit("held", not_before=LATER)
    assert head() is None
    book.submit("ready")
    assert head() == "ready"
    book.connection.execute("UPDATE tasks SET held_until = NULL")
    assert head() == "held"
    book.cancel("held")
    assert head() == "ready"
