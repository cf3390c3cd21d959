"""What was acknowledged, and whether it is still there: the gateways' database against journal, shop and callers.

The rules are written down here once more; nothing of the programs' own code reads the two databases.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

Database = Path | str
"""A SQLite file, or the URL of a PostgreSQL database."""

Row = Mapping[str, Any]

KINDS_OF_OUTCOME = {"accepted": ("report", "finish", "report_after_end"), "recorded_late": ("report_refused",)}
TOLD = ("payable_yen", "site_order_id", "evidence_ref", "detail", "error_code")


@dataclass
class Promises:
    """What callers got a good answer to.

    submits: task to intent; decisions: (task, kind, reason), the reason being unique; reclaim_requests: number to
    task.
    """

    submits: dict[str, str] = field(default_factory=dict)
    decisions: list[tuple[str, str, str]] = field(default_factory=list)
    reclaim_requests: dict[int, str] = field(default_factory=dict)


@dataclass
class Kept:
    """How much of each kind was acknowledged, and which of it is lost."""

    counted: dict[str, int] = field(default_factory=dict)
    lost: dict[str, list[str]] = field(default_factory=dict)

    def __str__(self) -> str:
        return ", ".join(
            f"acknowledged {kind} {count}: lost {len(self.lost[kind])}" for kind, count in self.counted.items()
        )

    @property
    def violations(self) -> list[str]:
        return [f"LOST of the {kind}: {each}" for kind, found in self.lost.items() for each in found]

    def add(self, kind: str, count: int, lost: Iterator[str]) -> None:
        self.counted[kind], self.lost[kind] = count, list(lost)


def rows(database: Database, sql: str) -> list[Row]:
    """What a SELECT finds in a database that others may be writing to."""
    if isinstance(database, str):
        return rows_of_a_server(database, sql)
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=60)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(sql)]


def rows_of_a_server(url: str, sql: str) -> list[Row]:
    """The same on PostgreSQL."""
    with psycopg.connect(url, row_factory=dict_row) as connection:
        return list(connection.execute(sql.encode()))


def waiting_reports(journal: Path) -> int:
    """How many reports the gateway has not yet answered."""
    return int(rows(journal, "SELECT count(*) AS count FROM outbox WHERE settled_at IS NULL")[0]["count"])


def compare(promises: Promises, ordered: Mapping[str, list[str]], journal: Path, gateway: Database) -> Kept:
    """Look for everything that was acknowledged; `ordered` is the shop's book, task to order numbers.

    The journal is read first: what it has as settled then, the gateway must have had before.
    """
    settled = rows(journal, "SELECT * FROM outbox WHERE outcome IS NOT NULL")
    clicks = rows(journal, "SELECT * FROM clicks")
    reclaim_requests = {row["id"]: row["task_id"] for row in rows(journal, "SELECT id, task_id FROM reclaim_wishes")}
    tasks = {row["task_id"]: row["intent_json"] for row in rows(gateway, "SELECT task_id, intent_json FROM tasks")}
    events = rows(gateway, "SELECT * FROM events WHERE subject <> ''")
    reports = {(row["task_id"], row["state"]): row for row in rows(gateway, "SELECT * FROM reports")}
    permits = {row["token"] for row in rows(gateway, "SELECT token FROM leases WHERE permitted_at IS NOT NULL")}
    numbers = {
        (row["task_id"], row["site_order_id"])
        for row in rows(gateway, "SELECT task_id, site_order_id FROM order_numbers")
    }
    told = {(event["subject"], event["kind"], event["reason"]) for event in events}
    orders = [(task_id, number) for task_id, found in ordered.items() for number in found]

    kept = Kept()
    kept.add("submits", len(promises.submits), _submits(promises.submits, tasks, events))
    kept.add("reports", len(settled), _reports(settled, events, reports))
    kept.add("permits", len(clicks), (row["task_id"] for row in clicks if row["lease_token"] not in permits))
    kept.add("decisions", len(promises.decisions), (" ".join(each) for each in promises.decisions if each not in told))
    kept.add(
        "reclaim requests",
        len(promises.reclaim_requests),
        (f"{n} {t}" for n, t in promises.reclaim_requests.items() if reclaim_requests.get(n) != t),
    )
    kept.add("order numbers", len(orders), (" ".join(each) for each in orders if each not in numbers))
    return kept


def _submits(promised: Mapping[str, str], tasks: Mapping[str, str], events: list[Row]) -> Iterator[str]:
    filed = {event["subject"] for event in events if event["kind"] == "submit"}
    for task_id, intent in promised.items():
        if tasks.get(task_id) != intent or task_id not in filed:
            yield task_id


def _reports(settled: list[Row], events: list[Row], mirror: Mapping[Any, Row]) -> Iterator[str]:
    """A settled report is in the history, word for word, and one that counted is in the mirror too."""
    history: dict[Any, list[dict[str, Any]]] = {}
    for event in events:
        details = json.loads(event["details_json"])
        history.setdefault((event["subject"], event["kind"], details.get("sequence")), []).append(details)
    for row in settled:
        name = f"{row['task_id']} {row['state']} ({row['outcome']}, sequence {row['sequence']})"
        kinds = KINDS_OF_OUTCOME.get(row["outcome"], ())
        said = {"state": row["state"]} | {key: row[key] for key in TOLD if row[key] not in (None, "")}
        found = [each for kind in kinds for each in history.get((row["task_id"], kind, row["sequence"]), [])]
        if not any(said.items() <= each.items() for each in found):
            yield f"{name} is not in the history"
        elif row["outcome"] == "accepted":
            shown = mirror.get((row["task_id"], row["state"]))
            if shown is None or shown["sequence"] < row["sequence"]:
                yield f"{name} is not in the mirror"
