"""Fills a database of the gateway directly, with tasks as a long life would have left them."""

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.load import INTENT
from gateway.domain.instant import utc_text
from gateway.store.sqlite.schema import migrate

_ENDED = """
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :count)
INSERT INTO tasks (task_id, site, intent_json, status, lease_count, latest_state, latest_lease, latest_sequence,
    end_state, end_status, order_known, may_have_clicked, submit_permitted_at, created_at, updated_at)
SELECT printf('ended-%09d', i), 'sandbox', :intent, 'succeeded', 1, 'paid', 1, 2,
    'paid', 'succeeded', 1, 1, :at, :at, :at
FROM n
"""
_LEASES = """
INSERT INTO leases (task_id, lease_number, token, worker_id, session_id, journal_id, via, started_at, started_us,
    acknowledged_at, ended_at, ended_us, permitted_at, permit_expires_us)
SELECT task_id, 1, 'token-' || task_id, 'worker', 'session-of-the-past', 'journal-of-the-past', 'grpc', :at, row,
    :at, :at, row + 1, :at, row
FROM tasks WHERE status = 'succeeded' ORDER BY task_id
"""
_REPORTS = """
INSERT INTO reports (task_id, state, payable_yen, site_order_id, evidence_ref, detail, lease_number, sequence,
    reported_at)
SELECT task_id, 'paid', 12800, 'old-' || row, task_id || '/05-payment', '', 1, 2, :at
FROM tasks WHERE status = 'succeeded'
"""
_QUEUED = """
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :count)
INSERT INTO tasks (task_id, site, intent_json, status, created_at, updated_at)
SELECT printf('queued-%09d', i), 'sandbox', :intent, 'queued', :at, :at FROM n
"""
_EVENTS = """
INSERT INTO events (occurred_at, subject, kind, actor, status_before, status_after)
SELECT created_at, task_id, 'submit', 'bench', NULL, 'queued' FROM tasks
"""


def fill(path: Path, *, ended: int, queued: int) -> None:
    """Makes a database with so many ended tasks, each with a lease, a permit and a report, and so many queued ones."""
    values = {"intent": INTENT, "at": utc_text(datetime.now(UTC) - timedelta(hours=1))}
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA cache_size = -200000")
        migrate(connection)
        connection.execute("BEGIN")
        if ended:
            connection.execute(_ENDED, values | {"count": ended})
            connection.execute(_LEASES, {"at": values["at"]})
            connection.execute(_REPORTS, {"at": values["at"]})
        connection.execute(_QUEUED, values | {"count": queued})
        connection.execute(_EVENTS)
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()
