"""What the database itself makes impossible of budgets, also for a program that knows of none."""

import pytest

from tests.gateway.orders.test_budgets import permitted, stands, with_budget
from tests.gateway.store.conformance.conftest import StoreBook

PERMIT = "UPDATE leases SET permitted_at = 'x', permit_expires_us = 1"
TERMS = ", permit_payable_yen = 3000, permit_terms_json = '{}'"
PERIOD = "INSERT INTO budget_periods (budget_id, starts_at) VALUES ('house', 'x')"


def entry(yen: int, state: str = "reserved", counted: int | None = None) -> str:
    counted = yen if counted is None else counted
    return (
        "INSERT INTO budget_entries (budget_id, starts_at, task_id, lease_number, granted_at, reserved_yen, state,"  # noqa: S608
        f" counted_yen, changed_at) VALUES ('house', 'x', 'po-1', 1, 'x', {yen}, '{state}', {counted}, 'x')"
    )


def test_a_permit_outside_the_ledger(book: StoreBook) -> None:
    with_budget(book, 3_000)
    book.take()
    for more in ("", TERMS):
        with pytest.raises(book.engine.violation, match="not in the ledger"):
            book.connection.execute(PERMIT + more)


def test_a_permit_for_more_than_its_reservation(book: StoreBook) -> None:
    with_budget(book, 3_000)
    book.take()
    book.connection.execute(PERIOD)
    book.connection.execute(entry(2_999))
    with pytest.raises(book.engine.violation, match="not in the ledger"):
        book.connection.execute(PERMIT + TERMS)


def test_a_permit_that_no_budget_counts(book: StoreBook) -> None:
    with_budget(book, 0, site="sandbox")
    with_budget(book, 0, "account", site="rakuten", account="other")
    with_budget(book, 0, "identity", identity="alice")
    book.take()
    book.connection.execute(PERMIT)


@pytest.mark.parametrize("scope", [{}, {"site": "rakuten"}, {"site": "rakuten", "account": ""}], ids=str)
def test_a_permit_of_whatever_a_budget_counts(book: StoreBook, scope: dict[str, str]) -> None:
    with_budget(book, 3_000, **scope)
    book.take()
    with pytest.raises(book.engine.violation, match="not in the ledger"):
        book.connection.execute(PERMIT)


def test_a_reservation_beyond_the_budget(book: StoreBook) -> None:
    with_budget(book, 3_000)
    book.take()
    book.connection.execute(PERIOD)
    with pytest.raises(book.engine.violation, match="beyond its budget"):
        book.connection.execute(entry(3_001))
    book.connection.execute(entry(3_000))


def test_an_entry_that_begins_otherwise_than_reserved(book: StoreBook) -> None:
    with_budget(book, 3_000)
    book.take()
    book.connection.execute(PERIOD)
    with pytest.raises(book.engine.violation, match="beyond its budget"):
        book.connection.execute(entry(10, "settled"))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("UPDATE budget_entries SET reserved_yen = 1", "keeps its place"),
        ("UPDATE budget_entries SET starts_at = 'y'", "keeps its place"),
        ("UPDATE budget_entries SET state = 'released'", r"(?i)check"),
        ("UPDATE budget_entries SET counted_yen = 1", r"(?i)check"),
        ("DELETE FROM budget_entries", "never deleted"),
        ("DELETE FROM budget_periods", "never deleted"),
        ("DELETE FROM budgets", "never deleted"),
        ("UPDATE budgets SET zone = 'UTC'", "keeps its scope"),
        ("UPDATE budgets SET scope = 'site:sandbox'", "keeps its scope"),
        ("UPDATE budgets SET limit_yen = -1", r"(?i)check"),
        ("UPDATE tasks SET submitted_by = 'alice'", "who filed it"),
    ],
)
def test_a_change_of_the_ledger(book: StoreBook, change: str, says: str) -> None:
    with_budget(book, 3_000)
    permitted(book, 2_000)
    with pytest.raises(book.engine.violation, match=says):
        book.connection.execute(change)


def test_the_sums_follow_every_change(book: StoreBook) -> None:
    with_budget(book, 3_000)
    permitted(book, 2_000)
    for state, counted, sums in (
        ("settled", 2_500, (0, 2_500, 500)),
        ("settled", 3_500, (0, 3_500, 0)),
        ("released", 0, (0, 0, 3_000)),
        ("reserved", 2_000, (2_000, 0, 1_000)),
        ("released", 0, (0, 0, 3_000)),
    ):
        book.connection.execute(f"UPDATE budget_entries SET state = '{state}', counted_yen = {counted}")  # noqa: S608
        assert stands(book) == sums
