"""A SQLite file with rows in every table, among them texts and numbers that a copy could spoil."""

import sqlite3
from pathlib import Path
from typing import Any

from gateway.domain.labels import labels_text
from gateway.store.sqlite.schema import migrate

ODD = "𠮷野家🍣 é é \u200b\x01\x7f tab\tline\nreturn\r \\N \\. \\x41 \"'; -- {}%s"
LARGE = 2**63 - 1
AT = "2026-11-29T15:58:22.000000Z"


def fill_file(path: Path) -> None:
    """Make the file; nothing in it is a lie to a CHECK or a trigger."""
    connection = sqlite3.connect(path, isolation_level=None)
    migrate(connection)

    def add(table: str, **columns: Any) -> None:
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(columns.values()))  # noqa: S608

    times = {"created_at": AT, "updated_at": AT}
    for number in range(40):
        add("tasks", task_id=f"po-{number}", site="rakuten", account=f"a{number % 3}", intent_json=f'{{"n":"{ODD}"}}',
            status="queued", queued_us=number, labels_json=labels_text({"a": ODD, "n": str(number)}),
            **times)  # fmt: skip
    connection.execute(
        "UPDATE tasks SET status = 'leased', slot = 'account:rakuten:a0', lease_owner = 'w1', lease_expires_at = ?, "
        "lease_deadline_us = ?, lease_count = 1 WHERE task_id = 'po-0'", (AT, LARGE)
    )  # fmt: skip
    add("leases", task_id="po-0", lease_number=1, token=ODD, worker_id="w1", session_id="s", journal_id="j", via="grpc",
        started_at=AT, started_us=77_000_000, given_count=2)  # fmt: skip
    add(
        "budgets",
        budget_id="house",
        scope="all",
        period="month",
        zone="Asia/Tokyo",
        limit_yen=LARGE,
        set_at=AT,
        set_by=ODD,
    )
    add("budget_periods", budget_id="house", starts_at=AT)
    add("budget_entries", budget_id="house", starts_at=AT, task_id="po-0", lease_number=1, granted_at=AT,
        reserved_yen=LARGE, state="reserved", counted_yen=LARGE, changed_at=AT)  # fmt: skip
    add("reports", task_id="po-1", state="paid", payable_yen=LARGE, detail=ODD, lease_number=1, sequence=LARGE,
        error_code=-LARGE - 1, reported_at=AT)  # fmt: skip
    add("order_numbers", site="rakuten", site_order_id=ODD, task_id="po-1", told_at=AT, account="a1")
    add("approvals", task_id="po-1", approval_number=1, verdict="approved", decided_by="mika", decided_at=AT,
        reason=ODD, intent_hash="h", max_total_yen=LARGE, valid_until="9999")  # fmt: skip
    add("proposals", kind="approve", task_id="po-1", decision_json="{}", reason=ODD, basis="1", proposed_by="mika",
        proposed_at=AT, valid_until="9999")  # fmt: skip
    for number in range(7):
        add("events", occurred_at=AT, subject=f"po-{number}", kind="submit", actor="upstream", reason=ODD * number)
    add("workers", worker_id=ODD, last_seen_at=AT, last_seen_us=0)
    add("pauses", site="sandbox", paused_at=AT, paused_by="operator", reason=ODD)
    add("alerts", kind="task_stale", subject="po-1", message=ODD, raised_at=AT, task_id="po-1")
    add("notifications", channel="slack", urgency="now", alert_id=1, edge="raised", since_us=1, due_us=LARGE)
    add("notification_channels", channel="slack", failures=LARGE, told=ODD, tried_at=AT)
    add("alert_deliveries", alert_id=1, edge="raised", created_us=1, due_us=LARGE)
    for number in range(3):
        add("account_queries", query_id=f"q-{number}", site="rakuten", kind="order_list", params_json=ODD,
            status="queued", lifetime_ends_us=LARGE, **times)  # fmt: skip
    connection.execute("UPDATE account_queries SET status = 'succeeded', completed_at = ?, completed_us = 1 "
                       "WHERE query_id IN ('q-1', 'q-2')", (AT,))  # fmt: skip
    add("query_attempts", query_id="q-1", attempt=1, worker_id="w1", started_at=AT)
    add("query_results", query_id="q-1", result_json=ODD)
    # The highest number of a query is one that is gone: it must not be given again.
    connection.execute("DELETE FROM account_queries WHERE query_id = 'q-2'")
    add("catalog_orders", site="rakuten", account="a1", order_number=ODD, shop_name=ODD, discovered_at=AT,
        last_seen_at=AT, seen=LARGE)  # fmt: skip
    add("catalog_queries", query_id="q-0", site="rakuten", order_number="", account="a1")
    add("catalog_discrepancies", kind="unknown_to_tasks", site="rakuten", account="a1", order_number=ODD, task_id="",
        found_at=AT)  # fmt: skip
    add("callbacks", callback_id="c1", task_id="po-1", url="https://a.example/", endpoint="https://a.example",
        type="order.stale", data_json=ODD, created_at=AT, since_us=0, due_us=5, next_attempt_at=AT)  # fmt: skip
    add("late_reports", task_id="po-1", worker_id="w1", state="paid", detail=ODD, terminal=1, refusal_reason="r",
        refusal=ODD, received_at=AT, digest="d")  # fmt: skip
    add("restores", restored_at=AT, reason=ODD)
    add("backups", made_at=AT, file_name=ODD, size_bytes=LARGE, sha256="s")
    add("clock_anchor", one=1, boot_id="boot-1", boot_us=1_000_000_000, elapsed_us=77_000_000, utc=AT)
    connection.close()
