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
