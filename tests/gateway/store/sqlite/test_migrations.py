"""What a migration makes of a database of the version before it."""

import json
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway.catalog.read import list_catalog
from gateway.domain.catalog import CatalogFilter
from gateway.domain.leases import Verdict
from gateway.domain.models import AlertKind
from gateway.domain.search import TaskSearch
from gateway.domain.states import OrderState
from gateway.operations.decisions import list_decisions
from gateway.orders.others import other_orders
from gateway.orders.search import search_tasks
from gateway.store import alerts, backups, history, late_reports, leases, targets, tasks, workers
from gateway.store.sqlite.schema import migrate, migrations
from tests.gateway.orders.test_budgets import permitted, stands, with_budget
from tests.gateway.support.book import Book
from tests.gateway.support.manual_time import ManualTime

AT = "2026-11-29T15:58:22.000000Z"
LATER = "2026-11-29T16:58:22.000000Z"
Write = Callable[[sqlite3.Connection], None]


def of_version(path: Path, version: int, write: Write) -> None:
    """Make a database of an older version and let `write` fill it."""
    connection = sqlite3.connect(path, isolation_level=None)
    migrate(connection, migrations()[:version])
    write(connection)
    connection.close()


def event(connection: sqlite3.Connection, kind: str, subject: str = "po-1", at: str = AT, **details: Any) -> None:
    connection.execute(
        "INSERT INTO events (occurred_at, subject, kind, actor, worker_id, reason, details_json)"
        " VALUES (?, ?, ?, 'worker', 'w1', 'why', ?)",
        (at, subject, kind, json.dumps(details, separators=(",", ":"))),
    )


def a_life_in_the_history(connection: sqlite3.Connection) -> None:
    """Two tasks that share an order number; all that version 6 kept in the history alone."""
    connection.executemany(
        "INSERT INTO tasks (task_id, site, intent_json, status, lease_count, may_have_clicked, created_at, updated_at)"
        " VALUES (?, 'rakuten', '{}', 'stale', 2, 1, ?, ?)",
        [("po-1", AT, AT), ("po-2", AT, AT)],
    )
    connection.executemany(
        "INSERT INTO leases (task_id, lease_number, token, worker_id, session_id, journal_id, via, started_at,"
        " started_us, acknowledged_at, ended_at, ended_us)"
        " VALUES ('po-1', ?, ?, 'w1', 's', 'j', 'grpc', ?, 0, ?, ?, 0)",
        [(1, "t1", AT, AT, AT), (2, "t2", LATER, LATER, LATER)],
    )
    connection.executemany(
        "INSERT INTO order_numbers (site, site_order_id, task_id, told_at) VALUES ('rakuten', '77/8', ?, ?)",
        [("po-1", AT), ("po-2", AT)],
    )
    late = {"refusal": "lease_invalid", "by": "w1", "state": "ordered", "site_order_id": "77/8", "sequence": 4}
    event(connection, "report_refused", **late)
    event(connection, "report_refused", **late, payable_yen=0, terminal=True, terminal_status="succeeded")
    look = {"verdict": "unknown", "window_fully_covered": False, "evidence_ref": None, "begun_at_us": 5}
    event(connection, "permit_refused", refusal="permit_not_verified", verification=look)
    event(connection, "permit_refused", at=LATER, verification=look | {"verdict": "not_ordered", "evidence_ref": "e"})
    event(connection, "permit_refused", at=LATER, refusal="lease_invalid")
    event(connection, "restore", subject="", at=LATER)
    event(connection, "backup", subject="", at=AT, file="a.db", bytes=5, sha256="s")
    event(connection, "backup", subject="", at=LATER, file="b.db", bytes=5, sha256="s")
    connection.executemany(
        "INSERT INTO alerts (kind, subject, message, raised_at) VALUES (?, ?, 'm', ?)",
        [
            (AlertKind.WORKER_OFFLINE, "po-1", AT),
            (AlertKind.SITE_ORDER_ID_CONFLICT, "rakuten/77/8", AT),
            (AlertKind.TASK_STALE, "po-1", AT),
        ],
    )


def test_what_only_the_history_knew_has_a_place_of_its_own(tmp_path: Path) -> None:
    of_version(tmp_path / "gateway.db", 6, a_life_in_the_history)
    with Book(tmp_path / "gateway.db", ManualTime()) as book:
        plain, final = book.run(lambda tx, _: late_reports.newest_of_task(tx, "po-1", 10))
        assert (plain.worker_id, plain.refusal, plain.report.reported_at) == ("w1", "why", AT)
        assert (plain.report.state, plain.report.site_order_id) == (OrderState.ORDERED, "77/8")
        assert (plain.report.payable_yen, final.report.payable_yen) == (None, 0)
        kept = book.rows("SELECT sequence, terminal, terminal_status FROM late_reports ORDER BY row")
        assert [tuple(row.values()) for row in kept] == [(4, 0, None), (4, 1, "succeeded")]

        first, second = book.run(lambda tx, _: leases.of_task(tx, "po-1"))
        assert first.verification is None
        assert second.verification is not None
        assert (second.verification.verdict, second.verification.evidence_ref) == (Verdict.NOT_ORDERED, "e")
        assert second.verification.begun_at == timedelta(microseconds=5)

        assert book.run(lambda tx, _: other_orders(tx, tasks.get(tx, "po-1"))).incomplete
        assert book.run(lambda tx, _: backups.last_made_at(tx)) == LATER

        standing = book.run(lambda tx, _: {task: alerts.standing_of_task(tx, task) for task in ("po-1", "po-2")})
        assert [alert.kind for alert in standing["po-1"]] == [AlertKind.SITE_ORDER_ID_CONFLICT, AlertKind.TASK_STALE]
        assert [alert.kind for alert in standing["po-2"]] == [AlertKind.SITE_ORDER_ID_CONFLICT]
        waiting = book.run(list_decisions, book.policy, None, 10).items
        assert [decision.task.task.task_id for decision in waiting] == ["po-1", "po-2"]


def test_names_of_workers_that_were_there_count_for_the_token_that_uses_them(tmp_path: Path) -> None:
    def heard_of(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO workers VALUES ('w1', ?, 0), ('w2', ?, 0)", (AT, AT))

    of_version(tmp_path / "gateway.db", 7, heard_of)
    with Book(tmp_path / "gateway.db", ManualTime()) as book:
        book.open(book.request("w1"))
        assert book.run(lambda tx, _: workers.introduced_by(tx, "worker")) == 1


def test_tasks_queries_and_the_catalogue_of_before_accounts_are_of_the_site_s_only_account(tmp_path: Path) -> None:
    def a_life(connection: sqlite3.Connection) -> None:
        connection.executemany(
            "INSERT INTO tasks (task_id, site, intent_json, status, slot, lease_owner, lease_expires_at,"
            " lease_deadline_us, lease_count, created_at, updated_at)"
            " VALUES (?, 'rakuten', '{}', ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                ("ended", "failed", None, None, None, None, 0, AT, AT),
                ("active", "leased", "site:rakuten:active", "w1", LATER, 10**15, 1, AT, AT),
                ("first", "queued", None, None, None, None, 0, AT, AT),
                ("second", "queued", None, None, None, None, 0, AT, AT),
            ],
        )
        connection.execute("INSERT INTO order_numbers VALUES ('rakuten', '77/8', 'ended', ?, 0)", (AT,))
        connection.execute("INSERT INTO workers (worker_id, last_seen_at, last_seen_us) VALUES ('w1', ?, 0)", (AT,))
        connection.executemany(
            "INSERT INTO account_queries (query_id, site, kind, params_json, status, lifetime_ends_us, created_at,"
            " updated_at) VALUES (?, 'rakuten', 'order_list', '{}', 'queued', 5, ?, ?)",
            [("aq-1", AT, AT), ("aq-2", AT, AT)],
        )
        connection.execute("INSERT INTO catalog_sites VALUES ('rakuten', 7)")
        connection.execute("INSERT INTO catalog_queries VALUES ('aq-1', 'rakuten', NULL, ?)", (AT,))
        connection.execute(
            "INSERT INTO catalog_orders (row, site, order_number, discovered_at, last_seen_at, seen)"
            " VALUES (3, 'rakuten', 'A-1', ?, ?, 9)",
            (AT, AT),
        )
        connection.execute(
            "INSERT INTO catalog_discrepancies VALUES (4, 'unknown_to_tasks', 'rakuten', 'A-1', '', NULL, NULL, ?)",
            (AT,),
        )

    of_version(tmp_path / "gateway.db", 10, a_life)
    with Book(tmp_path / "gateway.db", ManualTime()) as book:
        rows = {row["task_id"]: row["row"] for row in book.rows("SELECT row, task_id FROM tasks WHERE account = ''")}
        assert book.rows("SELECT * FROM lanes") == [
            {"site": "rakuten", "account": "", "head_row": rows["first"], "active_row": rows["active"]}
        ]
        assert book.rows("SELECT * FROM query_lanes") == [{"site": "rakuten", "account": "", "queued": 2}]
        assert book.rows("SELECT site, account, filed_us FROM catalog_targets") == [
            {"site": "rakuten", "account": "", "filed_us": 7}
        ]
        assert book.rows("SELECT account FROM order_numbers") == [{"account": ""}]
        (order,) = book.run(list_catalog, CatalogFilter("rakuten"), None, 10).items
        assert (order.account, order.order_number, order.seen) == ("", "A-1", 9)
        assert book.rows("SELECT row, account FROM catalog_discrepancies") == [{"row": 4, "account": ""}]
        (worker,) = book.run(lambda tx, _: workers.everyone(tx))
        assert (worker.sites, worker.accounts, worker.gateway) == ((), (), "")
        with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
            book.connection.execute(
                "INSERT INTO catalog_orders (site, account, order_number, discovered_at, last_seen_at, seen)"
                " VALUES ('rakuten', '', 'A-1', '', '', 10)"
            )


def test_tasks_of_before_labels_have_none_and_are_found(tmp_path: Path) -> None:
    def a_task(connection: sqlite3.Connection) -> None:
        connection.execute(
            "INSERT INTO tasks (task_id, site, intent_json, status, created_at, updated_at)"
            " VALUES ('po-1', 'rakuten', '{}', 'queued', ?, ?)",
            (AT, LATER),
        )

    of_version(tmp_path / "gateway.db", 15, a_task)
    with Book(tmp_path / "gateway.db", ManualTime()) as book:
        assert book.task().labels_json == "{}"
        for wanted in (TaskSearch(created_from=AT), TaskSearch(updated_from=LATER), TaskSearch(task_id_prefix="po")):
            (found,) = book.run(search_tasks, wanted, None, 10).items
            assert found.task.task_id == "po-1"
        assert not book.run(search_tasks, TaskSearch(labels=(("a", "1"),)), None, 10).items


def test_a_queue_of_before_conditions_is_handed_out_as_it_was(tmp_path: Path) -> None:
    def queued(connection: sqlite3.Connection) -> None:
        connection.executemany(
            "INSERT INTO tasks (task_id, site, intent_json, status, created_at, updated_at)"
            " VALUES (?, 'rakuten', '{}', 'queued', ?, ?)",
            [("po-1", AT, AT), ("po-2", AT, AT)],
        )

    of_version(tmp_path / "gateway.db", 15, queued)
    with Book(tmp_path / "gateway.db", ManualTime()) as book:
        task = book.task("po-1")
        assert (task.max_total_yen, task.terms, task.not_before, task.not_after) == (None, None, None, None)
        assert (task.held_until, task.stop_before_submit, task.cancel_requested_at) == (None, False, None)
        assert task.is_plain
        lease = book.open(book.rest_request())
        assert lease is not None
        assert lease.task_id == "po-1"
        book.report(lease, terminal=True)
        book.permit(book.take("po-2"))
        assert book.task("po-2").submit_permitted_at is not None


def test_orders_of_before_budgets_count_for_all_but_not_for_an_identity(tmp_path: Path) -> None:
    def queued(connection: sqlite3.Connection) -> None:
        connection.executemany(
            "INSERT INTO tasks (task_id, site, intent_json, status, created_at, updated_at)"
            " VALUES (?, 'rakuten', '{}', 'queued', ?, ?)",
            [("po-1", AT, AT)],
        )

    of_version(tmp_path / "gateway.db", 24, queued)
    with Book(tmp_path / "gateway.db", ManualTime()) as book:
        assert book.task().submitted_by is None
        with_budget(book, 1_000, "alice", identity="alice")
        with_budget(book, 1_000, "all")
        permitted(book, 900)
        assert stands(book, "alice") == (0, 0, 1_000)
        assert stands(book, "all") == (900, 0, 100)


def test_accounts_of_before_they_were_counted_are_nobody_s_and_go_on(tmp_path: Path) -> None:
    def named(connection: sqlite3.Connection) -> None:
        connection.executemany(
            "INSERT INTO tasks (task_id, site, account, intent_json, status, created_at, updated_at)"
            " VALUES (?, 'rakuten', ?, '{}', 'queued', ?, ?)",
            [("po-1", "a", AT, AT), ("po-2", "b", AT, AT), ("po-3", "", AT, AT)],
        )

    of_version(tmp_path / "gateway.db", 25, named)
    with Book(tmp_path / "gateway.db", ManualTime()) as book:
        assert book.rows("SELECT * FROM target_counts") == [{"introduced_by": "", "count": 2}]
        assert {row["used_us"] for row in book.rows("SELECT used_us FROM catalog_targets")} == {None}
        assert book.submit("po-4", account="a").created
        assert book.submit("po-5", account="c").created
        assert book.run(lambda tx, _: targets.introduced(tx, "upstream")) == (1, 3)


def test_the_history_of_before_it_knew_rows_is_a_task_s_still(tmp_path: Path) -> None:
    def a_life(connection: sqlite3.Connection) -> None:
        connection.execute(
            "INSERT INTO tasks (task_id, site, intent_json, status, created_at, updated_at)"
            " VALUES ('po-1', 'rakuten', '{}', 'queued', ?, ?)",
            (AT, AT),
        )
        event(connection, "submit")
        event(connection, "lease")

    of_version(tmp_path / "gateway.db", 27, a_life)
    with Book(tmp_path / "gateway.db", ManualTime()) as book:
        book.cancel()
        newest = book.run(lambda tx, _: history.newest(tx, "po-1", (), first=0, below=100, count=10))
        assert [each.kind for each in newest] == ["cancel", "lease", "submit"]
        assert book.rows("SELECT sequence FROM events WHERE task_row IS NOT NULL") == [{"sequence": 3}]
