"""Reading tasks and the gateway's health."""

from datetime import timedelta
from typing import Final

from gateway.domain.health import Health, QueuedTask, WorkerSeen
from gateway.domain.instant import Instant, microseconds, parse_utc
from gateway.domain.models import Policy, TaskDetail
from gateway.domain.paging import Page, Slice, fill, in_batches
from gateway.domain.refusals import Refusal
from gateway.domain.states import TaskStatus
from gateway.orders.submit import not_found
from gateway.store import counts, pauses, tasks, workers
from gateway.store.port import ABOVE_ALL_ROWS, ReadTransaction
from gateway.store.reports import with_reports

MAX_WAITING_SHOWN: Final = 100
_SIZE_WITHOUT_TEXTS: Final = 4_000


def get_task(tx: ReadTransaction, _now: Instant, task_id: str) -> TaskDetail | Refusal:
    """Return one task with its reports."""
    task = tasks.find(tx, task_id)
    return not_found(task_id) if task is None else with_reports(tx, task)


def list_tasks(
    tx: ReadTransaction, _now: Instant, status: TaskStatus | None, site: str | None, below: int | None, count: int
) -> Page[TaskDetail, int]:
    """Return up to `count` tasks older than row `below` (None: from the newest), newest first.

    Fewer where they are large, but at least one, so that a page fits the 4 MiB that a client takes by default. Rows are
    numbered by submission and never reused, so paging neither skips nor repeats.
    """
    found = in_batches(
        lambda last, few: tasks.newest(tx, status, site, last, few),
        ABOVE_ALL_ROWS if below is None else below,
        lambda task: task.row,
    )
    page = fill((with_reports(tx, task) for task in found), count, size_of_task)
    return Page(page.items, page.items[-1].task.row if page.more else None)


def list_tasks_from(
    tx: ReadTransaction, now: Instant, status: TaskStatus | None, site: str | None, offset: int, count: int
) -> Slice[TaskDetail]:
    """Return a page as `list_tasks` does, after leaving out the `offset` newest, and how many tasks there are in all.

    For the documented JSON contract. Both figures come from an index alone.
    """
    first = tasks.row_at(tx, status, site, min(offset, ABOVE_ALL_ROWS))
    found = () if first is None else list_tasks(tx, now, status, site, first + 1, count).items
    return Slice(found, tasks.number_of(tx, status, site))


def size_of_task(detail: TaskDetail) -> int:
    """Return about how many bytes a task takes in an answer, rather too many than too few."""
    reports = sum(len(report.detail.encode()) + _SIZE_WITHOUT_TEXTS for report in detail.reports)
    return len(detail.task.intent_json.encode()) + _SIZE_WITHOUT_TEXTS + reports


def health(tx: ReadTransaction, now: Instant, policy: Policy) -> Health:
    """Return what a person looks at first (docs/specification.md#health)."""
    return Health(
        queued_count=counts.queued_tasks(tx),
        queued_query_count=counts.queued_queries(tx),
        active_tasks=tuple(with_reports(tx, task) for task in tasks.active(tx)),
        workers=workers_seen(tx, now, policy),
        stale_queued_tasks=waiting_too_long(tx, now, policy),
        pauses=pauses.standing(tx),
    )


def workers_seen(tx: ReadTransaction, now: Instant, policy: Policy) -> tuple[WorkerSeen, ...]:
    """Return the workers heard of, by name."""
    seen = []
    for worker in workers.everyone(tx):
        silent_us = max(0, now.elapsed_us - worker.last_seen_us)
        seen.append(
            WorkerSeen(
                worker.worker_id,
                worker.last_seen_at,
                timedelta(microseconds=silent_us),
                offline=silent_us > microseconds(policy.worker_offline_after),
            )
        )
    return tuple(seen)


def waiting_too_long(tx: ReadTransaction, now: Instant, policy: Policy) -> tuple[QueuedTask, ...]:
    """Return which of the oldest tasks in the queue have been there for too long, by the service clock."""
    limit_us = microseconds(policy.task_unclaimed_after)
    return tuple(
        QueuedTask(task.task_id, task.site, task.created_at, parse_utc(now.utc) - parse_utc(task.created_at))
        for task in tasks.oldest_in_queue(tx, MAX_WAITING_SHOWN)
        if now.elapsed_us - task.queued_us > limit_us
    )
