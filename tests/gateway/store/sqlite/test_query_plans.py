"""No query that runs with a call or a sweep reads the whole of a table that grows for ever."""

import re
import sqlite3
from collections.abc import Iterator

import pytest

from bench.backlog import fill
from gateway.store.named_sql import statements

GROWING = re.compile(
    r"SCAN (tasks|events|reports|leases|order_numbers)\b|SEARCH tasks USING INDEX tasks_by_site \(site=\?\)$"
)
WHOLE_BY_NATURE = {
    "event_last": "the last row, from the end",
    "task_count": "a number of all tasks, for a person",
    "metrics_tasks": "a count by status for a scrape, read beside the loop",
    "tasks_count": "the total of a list",
    "tasks_slice": "a page of a list, from the newest row on",
}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = tmp_path_factory.mktemp("plans") / "gateway.db"
    fill(path, ended=200, queued=20)
    connection = sqlite3.connect(path)
    yield connection
    connection.close()


@pytest.mark.parametrize("name", statements())
def test_a_query_searches(database: sqlite3.Connection, name: str) -> None:
    sql = statements()[name]
    parameters = dict.fromkeys(re.findall(r":(\w+)", sql))
    plan = [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)]
    assert [step for step in plan if GROWING.match(step)] == [] or name in WHOLE_BY_NATURE, plan


BY_INDEX = {
    "task_oldest_queued_plain": (
        "SEARCH tasks USING INDEX tasks_ready_of_target (status=? AND site=? AND account=? AND <expr>=?)"
    ),
    "tasks_late": "SEARCH tasks USING INDEX tasks_to_end_in_time (status=? AND not_after>? AND not_after<?)",
    "task_next_held": "SEARCH tasks USING COVERING INDEX tasks_held (status=? AND held_until>?)",
    "tasks_lapsed": "SEARCH tasks USING INDEX tasks_by_lease_deadline (lease_deadline_us>? AND lease_deadline_us<?)",
    "task_any_active_on_site": "SEARCH tasks USING INDEX tasks_active_of_target (site=?)",
    "task_any_active_of_target": "SEARCH tasks USING INDEX tasks_active_of_target (site=? AND account=?)",
    "lanes_ready": "SEARCH lanes USING INDEX lanes_ready (site=? AND head_row>?)",
    "query_lanes_ready": "SEARCH query_lanes USING COVERING INDEX query_lanes_ready (queued>?)",
    "query_oldest_queued": "SEARCH account_queries USING INDEX account_queries_queued_of_target (site=? AND account=?)",
    **{
        f"rows_{order}_by_{name}": f"SEARCH {index} ({columns} AND row>? AND row<?)"
        for order in ("newest", "oldest")
        for name, index, columns in (
            ("status", "tasks USING COVERING INDEX tasks_by_status", "status=?"),
            ("site", "tasks USING COVERING INDEX tasks_by_site", "site=?"),
            ("account", "tasks USING COVERING INDEX tasks_by_account", "account=?"),
            ("status_and_site", "tasks USING COVERING INDEX tasks_by_status_and_site", "status=? AND site=?"),
            ("status_and_account", "tasks USING COVERING INDEX tasks_by_status_and_account", "status=? AND account=?"),
            ("label", "task_labels USING PRIMARY KEY", "key=? AND value=?"),
        )
    },
    **{
        name: f"SEARCH tasks USING COVERING INDEX tasks_held (status=? AND held_until=?{rows})"
        for name, rows in (
            ("rows_newest_held", " AND row>? AND row<?"),
            ("rows_oldest_held", " AND row>? AND row<?"),
            ("tasks_held_count", ""),
        )
    },
    "approvals_run_out": "SEARCH approvals USING INDEX approvals_running_out (valid_until<?)",
    "rows_newest": "SEARCH tasks USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
    "rows_oldest": "SEARCH tasks USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
    "rows_newest_by_update": "SEARCH tasks USING COVERING INDEX tasks_by_update (updated_at>? AND updated_at<?)",
    "rows_oldest_by_update": "SEARCH tasks USING COVERING INDEX tasks_by_update (updated_at>? AND updated_at<?)",
    "rows_by_prefix": "SEARCH tasks USING COVERING INDEX sqlite_autoindex_tasks_1 (task_id>? AND task_id<?)",
    "task_filed_next": "SEARCH tasks USING INTEGER PRIMARY KEY (rowid>?)",
    "catalog_latest_by_account": "SEARCH catalog_orders USING INDEX catalog_orders_by_account (account=? AND seen<?)",
    "catalog_targets_due": "SEARCH catalog_targets USING COVERING INDEX catalog_targets_by_round"
    " (site=? AND filed_us<?)",
}
"""What each lease asks, and the lists and sweeps of targets: one step, by the index made for it."""


@pytest.mark.parametrize("analyzed", [False, True])
def test_what_a_lease_asks_is_found_by_its_index_with_statistics_and_without(
    database: sqlite3.Connection, analyzed: bool
) -> None:
    if analyzed:
        database.execute("ANALYZE")
    plans = {}
    for name in BY_INDEX:
        sql = statements()[name]
        parameters = dict.fromkeys(re.findall(r":(\w+)", sql))
        plans[name] = [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)]
    assert {name: plan for name, plan in plans.items() if plan != [BY_INDEX[name]]} == {}


def test_the_history_of_a_subject_is_found_by_its_task_and_by_its_name(database: sqlite3.Connection) -> None:
    sql = statements()["events_newest_of_subject"]
    parameters = dict.fromkeys(re.findall(r":(\w+)", sql))
    plan = [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)]
    found = [step for step in plan if " events " in step]
    assert found == [
        "SEARCH events USING INDEX events_of_task (task_row=? AND sequence>? AND sequence<?)",
        "SEARCH events USING INDEX events_by_subject (subject=? AND sequence>? AND sequence<?)",
    ]
    assert "MERGE (UNION ALL)" in plan, "both are in order: nothing has to be sorted"


LISTS_IN_RARE_TABLES = {"catalog_orders", "catalog_discrepancies", "budgets", "notifications", "proposals"}


def test_no_check_of_what_each_order_writes_has_a_list(database: sqlite3.Connection) -> None:
    """For one of more than two values SQLite fills a table whenever a row is checked: migration 28."""
    schema = dict(database.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'"))
    with_lists = {name for name, sql in schema.items() if re.search(r"\bIN\s*\([^(),]*,[^(),]*,", sql)}
    assert with_lists == LISTS_IN_RARE_TABLES
