"""Every change of a row says in its WHERE what the row must be like, and changes nothing where it is not.

The single writer makes most of these conditions true anyway; they stand for the day when it does not. Each is tried
here alone, on a copy of the table without constraints and triggers, which would hide a condition that is missing.
"""

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.store.named_sql import statements
from tests.gateway.support.template import make_ready

pytestmark = pytest.mark.sqlite

ID = {"task_id": "po-1"}
QUERY = {"query_id": "q-1"}
LEASE = ID | {"lease_number": 2}
OPEN = {"ended_at": None, "acknowledged_at": None}
# statement: the row as it must be, and per column a value at which the statement must leave the row alone.
# A key with a colon is a parameter that is not called like its column.
FENCES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "task_move": (ID | {"status": "leased", ":from_status": "leased", "lease_count": 2, ":from_lease_count": 2,
                        "may_have_clicked": 0, ":from_may_have_clicked": 0, "order_known": 0, ":from_order_known": 0,
                        "order_stated": 0, ":from_order_stated": 0},
                  {"status": "stale", "lease_count": 3, "may_have_clicked": 1, "order_known": 1, "order_stated": 1}),
    "task_mark_permitted": (ID | {"slot": "global", "lease_count": 2, ":lease_number": 2},
                            {"slot": None, "lease_count": 3}),
    "task_request_cancel": (ID | {"slot": "global", "lease_count": 2, ":lease_number": 2, "cancel_requested_at": None},
                            {"slot": None, "lease_count": 3, "cancel_requested_at": "t"}),
    "task_keep_terms": (ID | {"slot": "global", "submit_permitted_at": None},
                        {"slot": None, "submit_permitted_at": "t"}),
    "task_rebase_deadline": (ID | {"slot": "global"}, {"slot": None}),
    "task_rekey_slot": (ID | {"slot": "global"}, {"slot": None}),
    "task_mark_order_known": (ID | {"order_known": 0}, {"order_known": 1}),
    "task_strip": (ID | {"status": "failed", "intent_digest": None, "updated_at": "1", ":before": "2"},
                   {"status": "stale", "intent_digest": "d", "updated_at": "2"}),
    "lease_acknowledge": (LEASE | OPEN, {"lease_number": 3, "ended_at": "t", "acknowledged_at": "t"}),
    "lease_end": (LEASE | {"ended_at": None}, {"lease_number": 3, "ended_at": "t"}),
    "lease_give_again": (LEASE | OPEN, {"lease_number": 3, "ended_at": "t", "acknowledged_at": "t"}),
    "lease_take_back": (ID | OPEN | {"token": "a", "given_count": 1},
                        {"token": "b", "ended_at": "t", "acknowledged_at": "t", "given_count": 0}),
    "lease_undo": (ID | OPEN | {"token": "a", "given_count": 0},
                   {"token": "b", "ended_at": "t", "acknowledged_at": "t", "given_count": 1}),
    "lease_permit": (LEASE | {"ended_at": None, "permitted_at": None},
                     {"lease_number": 3, "ended_at": "t", "permitted_at": "t"}),
    "lease_verified": (LEASE | {"ended_at": None}, {"lease_number": 3, "ended_at": "t"}),
    "approval_use": (ID | {"approval_number": 2, "ended_at": None}, {"approval_number": 3, "ended_at": "t"}),
    "approval_end": (ID | {"ended_at": None}, {"ended_at": "t"}),
    "query_move": (QUERY | {"status": "leased", ":from_status": "leased", "attempts": 2, ":from_attempts": 2},
                   {"status": "queued", "attempts": 3}),
    "query_attempt_hand_again": (QUERY | {"attempt": 2}, {"attempt": 3}),
    "query_attempt_undo": (QUERY | {"attempt": 2, "handed_again": 0}, {"attempt": 3, "handed_again": 1}),
    "report_overwrite": (ID | {"state": "paid"}, {"state": "ordered"}),
    "report_fill_in": (ID | {"state": "paid"}, {"state": "ordered"}),
    "statement_number_fill_in": (ID | {"state": "paid"}, {"state": "ordered"}),
    "statement_rows_take_back": (ID | {"stated": 1}, {"stated": 0}),
    "statement_number_take_back": (ID | {"site_order_id": "1", "stated": 1}, {"site_order_id": "2", "stated": 0}),
    "statement_number_clear": (ID | {"site_order_id": "1"}, {"site_order_id": "2"}),
    "callback_delivered": ({"callback_id": "c", "status": "pending"}, {"status": "given_up"}),
    "callback_put_off": ({"callback_id": "c", "status": "pending"}, {"status": "delivered"}),
    "callback_give_up": ({"callback_id": "c", "status": "pending"}, {"status": "delivered"}),
    "budget_remove": ({"budget_id": "house", "removed_at": None}, {"removed_at": "t"}),
    "budget_entry_count_anew": ({"entry": 1, "state": "reserved", ":state": "released", "counted_yen": 5, ":yen": 5},
                                {"state": "released"}),
    "proposal_close": ({"proposal_id": 1, "closed_at": None}, {"closed_at": "t"}),
    "alert_clear": ({"alert_id": 1, "cleared_at": None}, {"cleared_at": "t"}),
    "catalog_order_asked": ({"site": "a", "account": "", "order_number": "1"}, {"account": "b", "order_number": "2"}),
    "catalog_order_detail": ({"site": "a", "account": "", "order_number": "1"}, {"account": "b", "order_number": "2"}),
    "target_keep": ({"site": "a", "account": "b", "used_us": 1, ":stamped_after_us": 1},
                    {"account": "c", "used_us": 2}),
    "target_forget": ({"site": "a", "account": "b"}, {"account": "c"}),
    "lane_forget": ({"site": "a", "account": "b", "head_row": None, "active_row": None},
                    {"account": "c", "head_row": 1, "active_row": 1}),
    "query_lane_forget": ({"site": "a", "account": "b", "queued": 0}, {"account": "c", "queued": 1}),
}  # fmt: skip
CASES = [
    (name, column, value)
    for name, (row, wrong) in FENCES.items()
    for column, value in ({next(iter(row)): "another"} | wrong).items()
]
"""Each condition alone; the first column of a row is its key."""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """The gateway's tables without anything that holds them together."""
    path: Path = tmp_path_factory.mktemp("fences") / "gateway.db"
    make_ready(path)
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("ATTACH ? AS ready", (str(path),))
    tables = connection.execute("SELECT name FROM ready.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
    for (table,) in tables.fetchall():
        connection.execute(f"CREATE TABLE {table} AS SELECT * FROM ready.{table} WHERE 0")  # noqa: S608 -- own names
    connection.execute("DETACH ready")
    yield connection
    connection.close()


def changed(bare: sqlite3.Connection, name: str, row: dict[str, Any], reclaim_request: dict[str, Any]) -> int:
    """How many rows the statement changes where this row alone is there."""
    sql = statements()[name]
    (table,) = re.findall(r"^(?:--.*\n)*(?:UPDATE|DELETE FROM)\s+(\w+)", sql)
    columns = {column: value for column, value in row.items() if not column.startswith(":")}
    parameters = dict.fromkeys(re.findall(r":(\w+)", sql)) | {
        column.lstrip(":"): reclaim_request[column] for column in reclaim_request
    }
    bare.execute("BEGIN")
    bare.execute(
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",  # noqa: S608
        list(columns.values()),
    )
    before = bare.total_changes
    bare.execute(sql, parameters).fetchall()
    count = bare.total_changes - before
    bare.execute("ROLLBACK")
    return count


@pytest.mark.parametrize("name", FENCES)
def test_a_row_as_it_must_be_is_changed(bare: sqlite3.Connection, name: str) -> None:
    row, _ = FENCES[name]
    assert changed(bare, name, row, row) == 1


@pytest.mark.parametrize(("name", "column", "value"), CASES)
def test_a_row_that_differs_in_one_column_is_left_alone(
    bare: sqlite3.Connection, name: str, column: str, value: Any
) -> None:
    row, _ = FENCES[name]
    assert changed(bare, name, row | {column: value}, row) == 0


BY_THEIR_AGE = {
    "queries_prune",
    "catalog_settled_drop",
    "tasks_release",
    "targets_begin",
    "workers_forget_served",
    "leases_settle_later",
}
"""Of whatever is old, settled, or due, which no key names."""


def test_every_change_with_more_than_a_key_to_go_by_is_here() -> None:
    change, condition = re.compile(r"(?:--.*\n)*(UPDATE|DELETE FROM)\b"), re.compile(r"\bWHERE [^;]*\bAND\b")
    fenced = {name for name, sql in statements().items() if change.match(sql) and condition.search(sql)}
    assert fenced == FENCES.keys() | BY_THEIR_AGE
