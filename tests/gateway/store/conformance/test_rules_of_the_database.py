"""What the database itself makes impossible, whatever the code above it does (docs/architecture.md)."""

from typing import Any

import pytest

from gateway.account_queries.submit import submit_query
from gateway.domain.account_queries import QueryKind, QuerySubmission
from gateway.domain.states import OrderState
from tests.gateway.account_queries.test_rules import POLICY as QUERY_POLICY
from tests.gateway.store.conformance.conftest import StoreBook

ACTIVE = {
    "status": "leased",
    "slot": "global",
    "lease_owner": "w1",
    "lease_expires_at": "2026-11-29T15:58:22.123456Z",
    "lease_deadline_us": 1,
    "lease_count": 1,
}


def update(book: StoreBook, task_id: str = "po-1", **values: Any) -> None:
    columns = ", ".join(f"{name} = :{name}" for name in values)
    book.connection.execute(f"UPDATE tasks SET {columns} WHERE task_id = '{task_id}'", values)  # noqa: S608


def test_two_active_tasks_in_one_slot_are_impossible(book: StoreBook) -> None:
    for task_id in ("po-1", "po-2"):
        book.submit(task_id)
    update(book, "po-1", **ACTIVE)
    with pytest.raises(book.engine.violation, match=r"(?i)unique"):
        update(book, "po-2", **ACTIVE)
    update(book, "po-2", **(ACTIVE | {"slot": "site:rakuten"}))


@pytest.mark.parametrize(
    "slot", ["site:sandbox", "account:rakuten:", "account:rakuten:b", "account:sandbox:a", "site:rakuten:po-2", ""]
)
def test_a_task_in_the_slot_of_another_target_is_impossible(book: StoreBook, slot: str) -> None:
    book.submit(account="a")
    with pytest.raises(book.engine.violation, match=r"(?i)check"):
        update(book, **(ACTIVE | {"slot": slot}))


@pytest.mark.parametrize("slot", ["global", "site:rakuten", "account:rakuten:a", "site:rakuten:po-1"])
def test_a_task_may_be_in_the_slots_of_its_own_target(book: StoreBook, slot: str) -> None:
    book.submit(account="a")
    update(book, **(ACTIVE | {"slot": slot}))


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("status", ("queued", "succeeded", "failed", "needs_human", "stale")),
        ("latest_state", (None, *OrderState)),
    ],
)
def test_a_value_that_its_column_does_not_know_is_impossible(
    book: StoreBook, column: str, values: tuple[str | None, ...]
) -> None:
    book.submit()
    for value in values:
        update(book, **{column: value})
    for value in ("", "Queued", "queued "):
        with pytest.raises(book.engine.violation, match=r"(?i)check"):
            update(book, **{column: value})


def test_an_end_that_is_no_end_is_impossible(book: StoreBook) -> None:
    book.submit()
    for status in ("succeeded", "failed", "needs_human"):
        update(book, end_state="paid", end_status=status)
    for status in ("queued", "stale", ""):
        with pytest.raises(book.engine.violation, match=r"(?i)check"):
            update(book, end_state="paid", end_status=status)


@pytest.mark.parametrize("account", ["-a", ".a", "a b", "a:b", "a/b", "a,b", "a" * 65, "ä"])
@pytest.mark.parametrize("table", ["tasks", "account_queries"])
def test_a_malformed_account_is_impossible(book: StoreBook, table: str, account: str) -> None:
    book.submit()
    book.run(submit_query, QUERY_POLICY, QuerySubmission("aq-1", "sandbox", QueryKind.ORDER_LIST, "{}"), "upstream")
    book.connection.execute(f"UPDATE {table} SET account = :account", {"account": "A-z.0_9"})  # noqa: S608
    with pytest.raises(book.engine.violation, match=r"(?i)check"):
        book.connection.execute(f"UPDATE {table} SET account = :account", {"account": account})  # noqa: S608


@pytest.mark.parametrize(
    "values",
    [
        ACTIVE | {"slot": None},
        ACTIVE | {"lease_owner": None},
        ACTIVE | {"lease_expires_at": None},
        ACTIVE | {"lease_deadline_us": None},
        ACTIVE | {"lease_count": 0},
        ACTIVE | {"status": "queued"},
        ACTIVE | {"status": "stale"},
        ACTIVE | {"status": "succeeded"},
        {"status": "running"},
        {"status": "done"},
        {"lease_owner": "w1"},
        {"lease_count": -1},
        {"latest_state": "lost"},
        {"end_state": "paid"},
        {"end_status": "succeeded"},
        {"end_state": "paid", "end_status": "stale"},
        {"submit_permitted_at": "2026-11-29T15:58:22.123456Z"},
        {"order_known": 2},
        {"may_have_clicked": -1},
        {"lease_count": "many"},
        {"intent_json": None},
    ],
    ids=str,
)
def test_a_task_that_contradicts_itself_is_impossible(book: StoreBook, values: dict[str, Any]) -> None:
    book.submit()
    with pytest.raises(book.engine.violation):
        update(book, **values)


def test_a_task_is_never_deleted(book: StoreBook) -> None:
    book.submit()
    with pytest.raises(book.engine.violation, match="never deleted"):
        book.connection.execute("DELETE FROM tasks")


@pytest.mark.parametrize("statement", ["UPDATE events SET reason = 'another'", "DELETE FROM events"])
def test_the_history_is_append_only(book: StoreBook, statement: str) -> None:
    book.submit()
    with pytest.raises(book.engine.violation, match="append-only"):
        book.connection.execute(statement)


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("UPDATE leases SET permitted_at = 'x'", "given once"),
        ("UPDATE leases SET permit_expires_us = permit_expires_us + 1", "given once"),
        ("UPDATE leases SET permitted_at = NULL, permit_expires_us = NULL", "given once"),
        ("DELETE FROM leases", "never undone"),
        ("UPDATE leases SET acknowledged_at = NULL", r"(?i)check"),
        ("UPDATE leases SET via = 'rest'", r"(?i)check"),
        ("UPDATE leases SET ended_at = 'x'", r"(?i)check"),
        ("UPDATE leases SET lease_number = 0", r"(?i)check"),
    ],
)
def test_a_permit_is_given_once_and_a_lease_is_what_it_is(book: StoreBook, statement: str, says: str) -> None:
    book.permit(book.take())
    with pytest.raises(book.engine.violation, match=says):
        book.connection.execute(statement)


def test_a_permit_needs_an_acknowledged_lease(book: StoreBook) -> None:
    book.take(acknowledge=False)
    with pytest.raises(book.engine.violation, match=r"(?i)check"):
        book.connection.execute("UPDATE leases SET permitted_at = 'x', permit_expires_us = 1")


def test_a_lease_ends_once(book: StoreBook) -> None:
    lease = book.take()
    book.report(lease, OrderState.PAID, terminal=True)
    with pytest.raises(book.engine.violation, match="ends once"):
        book.connection.execute("UPDATE leases SET ended_at = 'x', ended_us = 1")


def test_a_token_exists_once(book: StoreBook) -> None:
    lease = book.take()
    book.report(lease, OrderState.PAID, terminal=True)
    book.submit("po-2")
    with pytest.raises(book.engine.violation, match=r"(?i)unique.*token"):
        book.open(token=lease.token)
    assert book.task("po-2").lease_count == 0


def test_a_report_or_a_lease_needs_its_task_and_a_state_is_told_once(book: StoreBook) -> None:
    book.report(book.take())
    copy = (
        "INSERT INTO reports SELECT row + 9, {}, state, 1, NULL, NULL, NULL, '', 1, 1, 1, reported_at, 0 FROM reports"
    )
    with pytest.raises(book.engine.violation, match=r"(?i)foreign key"):
        book.connection.execute(copy.format("'po-9'"))
    with pytest.raises(book.engine.violation, match=r"(?i)unique"):
        book.connection.execute(copy.format("task_id"))
    with pytest.raises(book.engine.violation, match=r"(?i)check"):
        book.connection.execute("UPDATE reports SET payable_yen = -1")


def test_one_alert_of_a_kind_stands_for_a_subject(book: StoreBook) -> None:
    insert = "INSERT INTO alerts (kind, subject, message, raised_at) VALUES ('task_stale', 'po-1', '', '')"
    book.connection.execute(insert)
    with pytest.raises(book.engine.violation, match=r"(?i)unique"):
        book.connection.execute(insert)


def test_labels_are_indexed_when_a_task_is_filed_and_never_change(book: StoreBook) -> None:
    labels = '{"a":"1","b/c":"\\u65e5\\"\\\\"}'
    book.submit(labels_json=labels)
    found = book.rows("SELECT key, value, row FROM task_labels ORDER BY key")
    assert [tuple(row.values()) for row in found] == [("a", "1", 1), ("b/c", '日"\\', 1)]
    with pytest.raises(book.engine.violation, match="labels never change"):
        book.connection.execute("UPDATE tasks SET labels_json = '{}'")
