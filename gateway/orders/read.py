"""Reading tasks and the gateway's health."""

from datetime import timedelta
from typing import Final

from gateway.domain.instant import Instant, microseconds, parse_utc
from gateway.domain.models import Health, Policy, QueuedTask, TaskDetail, TaskPage, WorkerSeen
from gateway.domain.paging import fill, in_batches
from gateway.domain.refusals import Refusal
from gateway.domain.states import TaskStatus
from gateway.orders.submit import not_found
from gateway.store.port import ReadTransaction
from gateway.store.rows import all_pauses, find_task, task_from, with_reports

MAX_WAITING_SHOWN: Final = 100
_SIZE_WITHOUT_TEXTS: Final = 4_000
_ABOVE_ALL_ROWS: Final = 2**63 - 1


def get_task(tx: ReadTransaction, _now: Instant, task_id: str) -> TaskDetail | Refusal:
    """Return one task with its reports."""
    task = find_task(tx, task_id)
    return not_found(task_id) if task is None else with_reports(tx, task)


def list_tasks(
    tx: ReadTransaction, _now: Instant, status: TaskStatus | None, site: str | None, below: int | None, count: int
) -> TaskPage:
    """Return up to `count` tasks older than row `below` (None: from the newest), newest first.

    Fewer where they are large, but at least one, so that a page fits the 4 MiB that a client takes by default. Rows are
    numbered by submission and never reused, so paging neither skips nor repeats.
    """
    suffix, filters = _filters(status, site)
    rows = in_batches(
        lambda last, few: tx.all("tasks_newest" + suffix, below=last, count=few, **filters),
        _ABOVE_ALL_ROWS if below is None else below,
        lambda row: row["row"],
    )
    page = fill((with_reports(tx, task_from(row)) for row in rows), count, size_of_task)
    return TaskPage(page.items, page.items[-1].task.row if page.more else None)


def list_tasks_from(
    tx: ReadTransaction, now: Instant, status: TaskStatus | None, site: str | None, offset: int, count: int
) -> tuple[tuple[TaskDetail, ...], int]:
    """Return a page as `list_tasks` does, after leaving out the `offset` newest, and how many tasks there are in all.

    For the documented JSON contract. Both figures come from an index alone.
    """
    suffix, filters = _filters(status, site)
    first = tx.one("tasks_slice" + suffix, offset=min(offset, _ABOVE_ALL_ROWS), count=1, **filters)
    total = tx.one("tasks_count" + suffix, **filters)
    tasks = () if first is None else list_tasks(tx, now, status, site, first["row"] + 1, count).tasks
    return tasks, 0 if total is None else total["count"]


def size_of_task(detail: TaskDetail) -> int:
    """Return about how many bytes a task takes in an answer, rather too many than too few."""
    reports = sum(len(report.detail.encode()) + _SIZE_WITHOUT_TEXTS for report in detail.reports)
    return len(detail.task.intent_json.encode()) + _SIZE_WITHOUT_TEXTS + reports


def _filters(status: TaskStatus | None, site: str | None) -> tuple[str, dict[str, str]]:
    """Return how the names of the statements end that filter so, and their parameters."""
    suffix = ""
    filters: dict[str, str] = {}
    if status is not None:
        suffix += "_by_status"
        filters["status"] = status
    if site is not None:
        suffix += "_and_site" if filters else "_by_site"
        filters["site"] = site
    return suffix, filters


def health(tx: ReadTransaction, now: Instant, policy: Policy) -> Health:
    """Return what a person looks at first (docs/specification.md#health)."""
    return Health(
        queued_count=sum(row["count"] for row in tx.all("tasks_queued_count")),
        queued_query_count=sum(row["count"] for row in tx.all("queries_queued_count")),
        active_tasks=tuple(with_reports(tx, task_from(row)) for row in tx.all("tasks_active")),
        workers=workers_seen(tx, now, policy),
        stale_queued_tasks=waiting_too_long(tx, now, policy),
        pauses=all_pauses(tx),
    )


def workers_seen(tx: ReadTransaction, now: Instant, policy: Policy) -> tuple[WorkerSeen, ...]:
    """Return the workers heard of, by name."""
    workers = []
    for row in tx.all("workers_all"):
        silent_us = max(0, now.elapsed_us - row["last_seen_us"])
        workers.append(
            WorkerSeen(
                row["worker_id"],
                row["last_seen_at"],
                timedelta(microseconds=silent_us),
                offline=silent_us > microseconds(policy.worker_offline_after),
            )
        )
    return tuple(workers)


def waiting_too_long(tx: ReadTransaction, now: Instant, policy: Policy) -> tuple[QueuedTask, ...]:
    """Return which of the oldest tasks in the queue have been there for too long, by the service clock."""
    limit_us = microseconds(policy.task_unclaimed_after)
    return tuple(
        QueuedTask(row["task_id"], row["site"], row["created_at"], parse_utc(now.utc) - parse_utc(row["created_at"]))
        for row in tx.all("tasks_queued_oldest", count=MAX_WAITING_SHOWN)
        if now.elapsed_us - (row["queued_us"] or 0) > limit_us
    )
