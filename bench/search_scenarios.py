"""What the first page of each condition costs among 1,000 tasks and among 1,000,000: use cases on a database."""

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.result import Result
from bench.scenarios import Size
from bench.target_scenarios import NOW, ROUNDS, timed
from gateway.domain.search import TaskSearch
from gateway.domain.states import TaskStatus
from gateway.orders.search import search_tasks
from gateway.store.sqlite.connection import open_writer
from gateway.store.sqlite.schema import migrate
from gateway.store.sqlite.transaction import SqliteTransaction

FEW: Final = 1_000
WAITING: Final = 100
PAGE: Final = 50

# A tenth has each status, account and label: whoever walked past the others would show. Some wait for a decision, as
# many among few as among many. One id contains a word that no other one does.
_TASKS = """
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :count)
INSERT INTO tasks (task_id, site, account, intent_json, status, labels_json, created_at, updated_at)
SELECT CASE WHEN i = 2 THEN 'a-rare-one' ELSE printf('po-%09d', i) END,
    CASE WHEN i % 10 = 1 THEN 'rakuten' ELSE 'sandbox' END,
    printf('buyer-%d', i % 10), :intent,
    CASE i % 10 WHEN 7 THEN 'failed' WHEN 8 THEN 'needs_human' WHEN 9 THEN 'stale' ELSE 'succeeded' END,
    printf('{"team":"t%d","batch":"%d"}', i % 10, i / 100),
    strftime('%Y-%m-%dT%H:%M:%S.000000Z', 1700000000 + i, 'unixepoch'),
    strftime('%Y-%m-%dT%H:%M:%S.000000Z', 1700000000 + i * 7919 % :count, 'unixepoch')
FROM n
"""
_NUMBERS = """
INSERT INTO order_numbers (site, account, site_order_id, task_id, told_at)
SELECT site, account, 'A-' || row, task_id, updated_at FROM tasks WHERE status IN ('succeeded', 'needs_human')
"""
_ALERTS = """
INSERT INTO alerts (kind, subject, task_id, message, raised_at)
SELECT 'task_stale', task_id, task_id, '', updated_at FROM tasks WHERE status = 'stale' ORDER BY row LIMIT :waiting
"""
_INTENT = json.dumps({"items": [{"item_url": "https://shop.example/i/1", "quantity": 1}], "max_total_yen": 30_000})


def searches(size: Size, folder: Path) -> Iterator[Result]:
    """Compare each condition, by the median of many first pages, in a small database and in a large one."""
    many = int(1_000_000 / size.scale)
    with database(folder / "few.db", FEW) as few, database(folder / "many.db", many) as large:
        for name, wanted in conditions(few).items():
            small, great = pages_ms((few, wanted), (large, conditions(large)[name]))
            yield Result(
                f"first page, {name}, {many:,} tasks", f"{small:.2f} ms", f"{great:.2f} ms", great / small, 1.5, False,
                "times",
            )  # fmt: skip


def conditions(tx: SqliteTransaction) -> Mapping[str, TaskSearch]:
    """Each condition by itself, in the middle of what there is."""
    connection: sqlite3.Connection = tx._connection  # noqa: SLF001 - asked beneath the store
    half = "SELECT max(row) / 2 FROM tasks"
    (middle,) = connection.execute(f"SELECT created_at FROM tasks WHERE row = ({half})").fetchone()  # noqa: S608
    (changed,) = connection.execute(
        f"SELECT updated_at FROM tasks ORDER BY updated_at LIMIT 1 OFFSET ({half})"  # noqa: S608
    ).fetchone()
    wanted: dict[str, dict[str, Any]] = {
        "all": {},
        "status": {"statuses": (TaskStatus.NEEDS_HUMAN,)},
        "three statuses": {"statuses": (TaskStatus.FAILED, TaskStatus.NEEDS_HUMAN, TaskStatus.STALE)},
        "site": {"site": "rakuten"},
        "account": {"account": "buyer-3"},
        "status and account": {"statuses": (TaskStatus.SUCCEEDED,), "account": "buyer-3"},
        "label of a tenth": {"labels": (("team", "t3"),)},
        "label of a hundred": {"labels": (("batch", "5"),)},
        "label and status": {"labels": (("team", "t3"),), "statuses": (TaskStatus.SUCCEEDED,)},
        "order number": {"site_order_id": "A-13"},
        "filed from": {"created_from": middle},
        "filed before": {"created_to": middle},
        "changed from": {"updated_from": changed},
        "changed before, oldest first": {"updated_to": changed, "oldest_first": True},
        "needs a decision": {"needs_decision": True},
        "oldest first": {"oldest_first": True},
        "prefix of all": {"task_id_prefix": "po-"},
        "prefix of one": {"task_id_prefix": "a-rare"},
        "contained in all": {"task_id_contains": "o-0"},
        "contained in one (1,000 rows a page)": {"task_id_contains": "rare"},
    }
    return {name: TaskSearch(**fields) for name, fields in wanted.items()}


@contextmanager
def database(path: Path, count: int) -> Iterator[SqliteTransaction]:
    """A database of so many tasks, all over."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = open_writer(path)
    try:
        connection.execute("PRAGMA synchronous = OFF")
        migrate(connection)
        connection.execute("BEGIN")
        connection.execute(_TASKS, {"count": count, "intent": _INTENT})
        connection.execute(_NUMBERS)
        connection.execute(_ALERTS, {"waiting": WAITING})
        connection.execute("COMMIT")
        yield SqliteTransaction(connection)
    finally:
        connection.close()


def pages_ms(*searches: tuple[SqliteTransaction, TaskSearch]) -> list[float]:
    """Milliseconds (p50) that the first page of each takes; they take turns, so that other work meets all."""
    took: list[list[float]] = [[] for _ in searches]
    for _ in range(ROUNDS):
        for times, (tx, wanted) in zip(took, searches, strict=True):
            times.append(timed(tx, partial(search_tasks, tx, NOW, wanted, None, PAGE), rounds=1))
    return [median(times) for times in took]


SEARCH_SCENARIOS: Final[dict[str, Callable[[Size, Path], list[Result]]]] = {
    "search": lambda size, folder: list(searches(size, folder))
}
