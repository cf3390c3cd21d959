"""Reading tasks and the gateway's health."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from common.target import Target, targets
from gateway.domain.budgets import BudgetState
from gateway.domain.health import Health, QueuedTask, WorkerSeen
from gateway.domain.instant import Instant, microseconds, parse_utc
from gateway.domain.models import Policy, TaskDetail
from gateway.domain.refusals import Refusal
from gateway.domain.terms import TermsItem
from gateway.orders.submit import not_found
from gateway.store import budgets, counts, lanes, pauses, tasks, workers
from gateway.store.port import ReadTransaction
from gateway.store.reports import with_reports

MAX_WAITING_SHOWN: Final = 100
MAX_ACTIVE_SHOWN: Final = 100
MAX_BUDGETS_SHOWN: Final = 50
_SIZE_WITHOUT_TEXTS: Final = 4_000
_SIZE_OF_A_LINE: Final = 120


def get_task(tx: ReadTransaction, _now: Instant, task_id: str) -> TaskDetail | Refusal:
    """Return one task with its reports."""
    task = tasks.find(tx, task_id)
    return not_found(task_id) if task is None else with_reports(tx, task)


def size_of_task(detail: TaskDetail) -> int:
    """Return about how many bytes a task takes in an answer, rather too many than too few."""
    reports = sum(len(report.detail.encode()) + _SIZE_WITHOUT_TEXTS for report in detail.reports)
    terms = 0 if detail.task.terms is None else sum(map(_size_of_item, detail.task.terms.items))
    return len(detail.task.intent_json.encode()) + _SIZE_WITHOUT_TEXTS + reports + terms


def _size_of_item(item: TermsItem) -> int:
    return len(item.item_url.encode()) + len(item.variant_id.encode()) + _SIZE_OF_A_LINE


def health(tx: ReadTransaction, now: Instant, policy: Policy) -> Health:
    """Return what a person looks at first (docs/specification.md#health)."""
    return Health(
        queued_count=counts.queued_tasks(tx),
        queued_query_count=counts.queued_queries(tx),
        active_count=counts.active_tasks(tx),
        held_for_approval_count=counts.held_for_approval(tx),
        active_tasks=tuple(with_reports(tx, task) for task in tasks.active(tx, MAX_ACTIVE_SHOWN)),
        workers=workers_seen(tx, now, policy),
        stale_queued_tasks=waiting_too_long(tx, now, policy),
        pauses=pauses.standing(tx),
        budgets=least_left(tx, now),
    )


def least_left(tx: ReadTransaction, now: Instant) -> tuple[BudgetState, ...]:
    """Return the budgets that stand, the ones with the least part left first, at most 50."""
    states = budgets.standing(tx, now)
    return tuple(sorted(states, key=_part_left)[:MAX_BUDGETS_SHOWN])


def _part_left(state: BudgetState) -> float:
    return state.left_yen / state.budget.limit_yen if state.budget.limit_yen else 0.0


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
                sites=worker.sites,
                accounts=worker.accounts,
                gateway=worker.gateway,
            )
        )
    return tuple(seen)


def waiting_too_long(tx: ReadTransaction, now: Instant, policy: Policy) -> tuple[QueuedTask, ...]:
    """Return the tasks that are handed out next, one a target, and have waited for too long, by the service clock."""
    limit_us = microseconds(policy.task_unclaimed_after)
    late = [task for task in lanes.longest_waiting(tx, MAX_WAITING_SHOWN) if now.elapsed_us - task.queued_us > limit_us]
    if not late:
        return ()
    served = served_targets(workers_seen(tx, now, policy))
    return tuple(
        QueuedTask(
            task.task_id,
            task.target.site,
            task.created_at,
            parse_utc(now.utc) - parse_utc(task.created_at),
            task.target.account,
            unserved=task.target not in served,
        )
        for task in late
    )


def served_targets(seen: Iterable[WorkerSeen]) -> frozenset[Target]:
    """Return the targets that any of these workers serves that was heard of lately."""
    return frozenset(
        target for worker in seen if not worker.offline for target in targets(worker.sites, worker.accounts)
    )
