"""Alerts: conditions watched by the service clock, looking at alerts, and answering one by hand.

The rule: docs/specification.md#alerts.

A condition (worker offline, task unclaimed, stale, needs a human, failed in doubt, a budget near its end) clears itself
when it has ended. The others tell of something that has happened: they stand until a person has answered them.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from common.target import Target
from gateway.domain.health import QueuedTask
from gateway.domain.instant import Instant, microseconds
from gateway.domain.models import Actor, AlertKind, Policy
from gateway.domain.operations import Alert
from gateway.domain.paging import Page
from gateway.domain.refusals import Reason, Refusal, Violation
from gateway.domain.states import TaskStatus
from gateway.orders.history import record_general
from gateway.orders.read import waiting_too_long
from gateway.store import alerts, tasks, workers
from gateway.store.port import ABOVE_ALL_ROWS, ReadTransaction, Transaction
from gateway.store.workers import WorkerRecord

_ENDS_BY_ITSELF: Final[Mapping[AlertKind, str]] = {
    AlertKind.WORKER_OFFLINE: "it clears itself when the worker is back or forgotten",
    AlertKind.TASK_UNCLAIMED: "it clears itself when the task leaves the queue",
    AlertKind.TASK_STALE: "it clears itself when the task is reclaimed, requeued or resolved",
    AlertKind.TASK_NEEDS_HUMAN: "it clears itself when the task is resolved or requeued",
    AlertKind.FAILED_IN_DOUBT: "it clears itself when the task is resolved",
    AlertKind.BUDGET_NEARLY_USED: "it clears itself when the budget renews, or is raised or removed",
    AlertKind.BUDGET_USED_UP: "it clears itself when the budget renews, or is raised or removed",
    AlertKind.APPROVAL_REQUIRED: "it clears itself when the task is approved or denied, or has left the queue",
    AlertKind.PROPOSAL_WAITING: "it clears itself when the proposal is confirmed or withdrawn, or has lapsed",
    AlertKind.RESUME_PROPOSED: "it clears itself when the proposal is confirmed or withdrawn, or has lapsed",
}


def watch_queue(tx: Transaction, now: Instant, policy: Policy) -> int:
    """Raise an alert for each task that has waited too long, clear those of tasks that do not; return the changes.

    Of a target only the task that is next alerts, or one stuck worker would raise thousands of alerts.
    """
    late = {task.task_id: task for task in waiting_too_long(tx, now, policy)}
    standing = alerts.standing_subjects(tx, AlertKind.TASK_UNCLAIMED)
    fresh = late.keys() - standing
    for task_id in sorted(fresh):
        alerts.raise_once(
            tx, now, AlertKind.TASK_UNCLAIMED, task_id,
            _unclaimed(late[task_id], policy),
        )  # fmt: skip
    gone = {task_id for task_id in standing - late.keys() if not _still_waits(tx, now, policy, task_id)}
    for task_id in gone:
        alerts.clear(tx, now, AlertKind.TASK_UNCLAIMED, task_id)
    return len(fresh) + len(gone)


def _unclaimed(task: QueuedTask, policy: Policy) -> str:
    target = Target(task.site, task.account)
    waited = (
        f"task {task.task_id} of {target} has waited for more than {policy.task_unclaimed_after.total_seconds():.0f} s"
    )
    return f"{waited} and no worker serves {target}" if task.unserved else f"{waited} and no worker has taken it"


class WorkerWatch:
    """Raises an alert for each worker that is offline, and clears it when the worker is back for good.

    Silence counts from the start of this process at the earliest: while the gateway was away nobody could call. A
    worker is back when it has not been silent for too long since; one call every now and then does not clear the
    alert, so an alert never flaps.
    """

    def __init__(self) -> None:
        self._started_us: int | None = None
        self._back_since_us: dict[str, int] = {}

    def look(self, tx: Transaction, now: Instant, policy: Policy) -> int:
        """Judge every worker; return the number of alerts raised or cleared."""
        if self._started_us is None:
            self._started_us = now.elapsed_us
        limit_us = microseconds(policy.worker_offline_after)
        standing = alerts.standing_subjects(tx, AlertKind.WORKER_OFFLINE)
        changes = 0
        known: set[str] = set()
        for worker in workers.everyone(tx):
            worker_id = worker.worker_id
            known.add(worker_id)
            offline = now.elapsed_us - max(worker.last_seen_us, self._started_us) > limit_us
            if worker_id not in standing:
                if offline:
                    self._raise(tx, now, policy, worker)
                    changes += 1
                continue
            if offline or now.elapsed_us - worker.last_seen_us > limit_us:
                self._back_since_us.pop(worker_id, None)
            elif now.elapsed_us - self._back_since_us.setdefault(worker_id, now.elapsed_us) >= limit_us:
                alerts.clear(tx, now, AlertKind.WORKER_OFFLINE, worker_id)
                self._back_since_us.pop(worker_id)
                changes += 1
        for worker_id in standing - known:
            alerts.clear(tx, now, AlertKind.WORKER_OFFLINE, worker_id)
            changes += 1
        return changes

    def _raise(self, tx: Transaction, now: Instant, policy: Policy, worker: WorkerRecord) -> None:
        alerts.raise_once(
            tx, now, AlertKind.WORKER_OFFLINE, worker.worker_id,
            f"worker {worker.worker_id} has not been heard of for {policy.worker_offline_after.total_seconds():.0f} s, "
            f"last at {worker.last_seen_at}",
        )  # fmt: skip


def list_alerts(
    tx: ReadTransaction, _now: Instant, kind: AlertKind | None, cleared_too: bool, below: int | None, count: int
) -> Page[Alert, int]:
    """Return up to `count` alerts with numbers smaller than `below` (None: from the newest), newest first."""
    end = ABOVE_ALL_ROWS if below is None else below
    found = alerts.newest(tx, kind, cleared_too=cleared_too, below=end, count=count + 1)
    shown = tuple(found[:count])
    return Page(shown, shown[-1].alert_id if len(found) > count else None)


def answer_alert(tx: Transaction, now: Instant, alert_id: int, reason: str, actor: Actor) -> Alert | Refusal:
    """Clear an alert of something that has happened, because a person has dealt with it. A repeat changes nothing."""
    alert = alerts.find(tx, alert_id)
    if alert is None:
        why = f"there is no alert {alert_id}"
        return Refusal(Reason.INVALID_FIELD, f"alert_id: {why}", violations=(Violation("alert_id", why),))
    if alert.cleared_at is not None:
        return alert
    if alert.kind in _ENDS_BY_ITSELF:
        return Refusal(
            Reason.STATUS_CONFLICT,
            f"alert {alert_id} ({alert.kind} of {alert.subject}) stands for a condition: {_ENDS_BY_ITSELF[alert.kind]}",
        )
    record_general(
        tx, now, "clear_alert", actor,
        subject=alert.subject, reason=reason, alert_id=alert_id, alert_kind=alert.kind.value,
    )  # fmt: skip
    alerts.clear(tx, now, alert.kind, alert.subject)
    return replace(alert, cleared_at=now.utc)


def _still_waits(tx: ReadTransaction, now: Instant, policy: Policy, task_id: str) -> bool:
    """Tell whether a task that is no longer among the oldest waits as before (older ones may have been requeued)."""
    task = tasks.find(tx, task_id)
    if task is None or task.status is not TaskStatus.QUEUED or task.held_until is not None:
        return False
    return now.elapsed_us - (task.queued_us or 0) > microseconds(policy.task_unclaimed_after)
