"""Counts of what there is, for health and metrics."""

import json
from collections import Counter

from gateway.domain.approvals import HELD_FOR_APPROVAL
from gateway.store.port import ReadTransaction, Row


def tasks_by_status(tx: ReadTransaction) -> dict[str, int]:
    """Return how many tasks there are of each status."""
    return {row["status"]: row["count"] for row in tx.all("metrics_tasks")}


def queries_by_status(tx: ReadTransaction) -> dict[str, int]:
    """Return how many account queries there are of each status."""
    return {row["status"]: row["count"] for row in tx.all("metrics_queries")}


def callbacks_by_status(tx: ReadTransaction) -> dict[str, int]:
    """Return how many callbacks there are of each status."""
    return {row["status"]: row["count"] for row in tx.all("metrics_callbacks")}


def standing_alerts_by_kind(tx: ReadTransaction) -> dict[str, int]:
    """Return how many alerts stand of each kind."""
    return {row["kind"]: row["count"] for row in tx.all("metrics_alerts")}


def events_by_kind(tx: ReadTransaction, after: int, last: int) -> dict[str, int]:
    """Return how many events there are of each kind, of those after one number up to another."""
    return {row["kind"]: row["count"] for row in tx.all("metrics_events", after=after, last=last)}


def refusals(tx: ReadTransaction, after: int, last: int) -> Counter[tuple[str, str]]:
    """Return how many refusals the history has of each kind and reason, after one number up to another."""
    found = tx.all("metrics_refusals", after=after, last=last)
    return Counter((row["kind"], json.loads(row["details_json"]).get("refusal", "")) for row in found)


def queued_tasks(tx: ReadTransaction) -> int:
    """Return how many tasks are in the queue."""
    return _count(tx.one("tasks_queued_count"))


def held_for_approval(tx: ReadTransaction) -> int:
    """Return how many tasks in the queue wait for an approval."""
    return _count(tx.one("tasks_held_count", held_until=HELD_FOR_APPROVAL))


def active_tasks(tx: ReadTransaction) -> int:
    """Return how many tasks are in execution."""
    return _count(tx.one("tasks_active_count"))


def queued_queries(tx: ReadTransaction) -> int:
    """Return how many account queries are in the queue."""
    return sum(row["count"] for row in tx.all("queries_queued_count"))


def failing_callbacks(tx: ReadTransaction, attempts: int, count: int) -> int:
    """Return how many callbacks were tried so often and not taken, counted up to `count`."""
    return _count(tx.one("callbacks_failing_count", attempts=attempts, count=count))


def waiting_proposals(tx: ReadTransaction, count: int) -> int:
    """Return how many proposals wait for a second person, counted up to `count`."""
    return _count(tx.one("proposals_waiting_count", count=count))


def _count(row: Row | None) -> int:
    return 0 if row is None else int(row["count"])
