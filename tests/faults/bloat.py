"""What updates leave behind on PostgreSQL: with the server's own vacuum settings and with tighter ones, and beside a
transaction that somebody has left open.

    python -m tests.faults.bloat --ended 40000 --cycles 5000

A procedure of the server moves orders through their statuses, a commit a step, beside so many that have ended.
Autovacuum looks every second, so that a short run stands for a long one. docs/scaling.md has the figures.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Final

import psycopg

from gateway.store.postgres.connection import parse_url
from gateway.store.postgres.schema import migrate
from tests.gateway.support import postgres

TIGHTER: Final = {"sweep_leader": (20, 100), "workers": (50, 500), "lanes": (50, 500), "tasks": (90, 2_000)}
"""How full pages are made, in percent, and after how many dead rows vacuum comes, whatever the size of the table."""

_PREPARE: Final = """
INSERT INTO tasks (task_id, site, account, intent_json, status, queued_us, created_at, updated_at)
    SELECT 'ended-' || i, 'sandbox', 'a' || mod(i, 20), repeat('x', 300), 'succeeded', 0, '2026', '2026'
    FROM generate_series(1, {ended}) AS i;
INSERT INTO workers (worker_id, last_seen_at, last_seen_us) SELECT 'w' || i, '2026', 0 FROM generate_series(0, 19) AS i;
INSERT INTO sweep_leader VALUES (1, 'gateway', 0);
"""
_CYCLES: Final = """
CREATE PROCEDURE cycles(first bigint, last bigint) LANGUAGE plpgsql AS $$
DECLARE
    target text;
    head bigint;
BEGIN
    FOR i IN first..last LOOP
        target := 'a' || mod(i, 20);
        INSERT INTO tasks (task_id, site, account, intent_json, status, queued_us, created_at, updated_at)
        VALUES ('task-' || i, 'sandbox', target, repeat('x', 300), 'queued', 0, '2026', '2026');
        COMMIT;
        SELECT row INTO head FROM tasks
        WHERE status = 'queued' AND site = 'sandbox' AND account = target ORDER BY row LIMIT 1;
        UPDATE tasks SET status = 'leased', slot = 'account:sandbox:' || target, lease_owner = 'w',
            lease_expires_at = '2026', lease_deadline_us = 1, lease_count = 1 WHERE row = head;
        COMMIT;
        UPDATE tasks SET lease_deadline_us = 2 WHERE row = head;
        UPDATE workers SET last_seen_us = i WHERE worker_id = 'w' || mod(i, 20);
        COMMIT;
        UPDATE tasks SET status = 'running' WHERE row = head;
        UPDATE sweep_leader SET term_ends_us = i;
        COMMIT;
        UPDATE tasks SET status = 'succeeded', slot = NULL, lease_owner = NULL, lease_expires_at = NULL,
            lease_deadline_us = NULL WHERE row = head;
        COMMIT;
    END LOOP;
END $$
"""
_TAKE: Final = """
EXPLAIN (ANALYZE, TIMING OFF) SELECT row FROM tasks
WHERE status = 'queued' AND site = 'sandbox' AND account = 'a1' ORDER BY row LIMIT 1
"""
_FIGURES: Final = """
SELECT relname, pg_total_relation_size(relid) / 1024, n_dead_tup, n_tup_upd, 100 * n_tup_hot_upd / n_tup_upd,
    autovacuum_count
FROM pg_stat_user_tables WHERE n_tup_upd > 0 ORDER BY relname
"""


def measure(server: postgres.Server, ended: int, cycles: int, *, tighter: bool, reader: bool) -> None:
    """Run the cycles on a new database, and print a line of each table that was updated."""
    name = f"bloat_{int(tighter)}_{int(reader)}"
    server.execute(f"CREATE DATABASE {name}")
    with parse_url(server.url(name)).connect("bloat", statement_timeout="0") as connection:
        migrate(connection)
    for table, (full, dead) in TIGHTER.items() if tighter else ():
        server.execute(
            f"ALTER TABLE {table} SET (fillfactor = {full}, autovacuum_vacuum_scale_factor = 0, "
            f"autovacuum_vacuum_threshold = {dead})",
            name,
        )
    for statement in (_PREPARE.format(ended=ended), "VACUUM ANALYZE", _CYCLES):
        server.execute(statement, name)
    label = ("tighter" if tighter else "the server's own") + ", open reader" * reader
    with psycopg.connect(server.url(name)) as other:
        if reader:
            other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            other.execute("SELECT count(*) FROM workers")
        server.execute(f"CALL cycles(1, {cycles})", name)
        took = server.execute(_TAKE, name)[-1][0]
        time.sleep(2)  # so that the last vacuum and the counts of it are there
        for table, kib, dead, updates, in_place, vacuums in server.execute(_FIGURES, name):
            print(f"| {label} | {table} | {kib} | {dead} | {updates} | {in_place} % | {vacuums} |", flush=True)
    print(f"{label}: the oldest order of a target, {took.strip()}", flush=True)


def main() -> None:
    """Measure all four."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ended", type=int, default=40_000, help="orders that have ended before")
    parser.add_argument("--cycles", type=int, default=5_000, help="orders that are moved")
    arguments = parser.parse_args()
    print("| settings | table | KiB | dead rows | updates | in place | vacuums |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="postgresql-", dir=postgres.FAST_FOLDER) as folder:
        server = postgres.Server(Path(folder), autovacuum="on", autovacuum_naptime="1s", max_wal_size="1GB")
        try:
            for reader in (False, True):
                for tighter in (False, True):
                    measure(server, arguments.ended, arguments.cycles, tighter=tighter, reader=reader)
        finally:
            server.stop(at_once=True)


if __name__ == "__main__":
    main()
