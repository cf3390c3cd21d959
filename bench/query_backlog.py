"""Fills a database of the gateway directly, with account queries as a week would have left them."""

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.query_load import RESULT
from gateway.domain.instant import utc_text
from gateway.store.sqlite.schema import migrate

_ENDED = """
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :count)
INSERT INTO account_queries (query_id, site, kind, params_json, status, attempts, lifetime_ends_us, created_at,
    updated_at, completed_at, completed_us)
SELECT printf('ended-%09d', i), 'sandbox', 'order_list', '{}', 'succeeded', 1, :lifetime_ends_us, :at, :at, :at, 0
FROM n
"""
_ATTEMPTS = """
INSERT INTO query_attempts (query_id, attempt, worker_id, started_at) SELECT query_id, 1, 'worker', :at
FROM account_queries WHERE status = 'succeeded' ORDER BY query_id
"""
_RESULTS = """
INSERT INTO query_results (query_id, result_json) SELECT query_id, :result
FROM account_queries WHERE status = 'succeeded' ORDER BY query_id
"""
_QUEUED = """
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :count)
INSERT INTO account_queries (query_id, site, kind, params_json, status, lifetime_ends_us, created_at, updated_at)
SELECT printf('queued-%09d', i), 'sandbox', 'order_list', '{}', 'queued', :lifetime_ends_us, :at, :at FROM n
"""


def fill_queries(path: Path, *, ended: int, queued: int) -> None:
    """Makes a database with so many ended queries, each with its attempt and result, and so many queued ones."""
    values = {"at": utc_text(datetime.now(UTC) - timedelta(minutes=1)), "lifetime_ends_us": 2**60, "result": RESULT}
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = OFF")
        migrate(connection)
        connection.execute("BEGIN")
        connection.execute(_ENDED, values | {"count": ended})
        connection.execute(_ATTEMPTS, values)
        connection.execute(_RESULTS, values)
        connection.execute(_QUEUED, values | {"count": queued})
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()
