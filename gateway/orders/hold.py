"""Holding a lease (docs/specification.md#holding-a-lease): who holds it, and its renewal."""

import hmac
from dataclasses import dataclass
from datetime import timedelta

from gateway.domain.binding import may_hold
from gateway.domain.instant import Instant, microseconds
from gateway.domain.leases import Holder, LeaseRecord, Renewed, Via
from gateway.domain.models import Actor, Policy, Task
from gateway.domain.refusals import Reason, Refusal
from gateway.domain.states import ACTIVE
from gateway.domain.transitions import Event, allowed
from gateway.orders.expire import expire, is_lease_due
from gateway.orders.history import record_refusal
from gateway.orders.others import other_orders
from gateway.orders.submit import not_found
from gateway.orders.transition import transition
from gateway.store import leases, tasks, workers
from gateway.store.port import Transaction


@dataclass(frozen=True, slots=True)
class Held:
    """A task and the live lease on it."""

    task: Task
    lease: LeaseRecord


def is_holder(lease: LeaseRecord | None, holder: Holder) -> bool:
    """Tell whether `holder` has this lease: the worker's name, the named token that took it, and the lease's own token
    unless it came over REST.
    """
    if lease is None or lease.worker_id != holder.worker_id or not may_hold(lease.bound_to, holder.identity):
        return False
    if holder.token is None:
        return lease.via is Via.REST
    return hmac.compare_digest(lease.token.encode(), holder.token.encode())


def lease_invalid(task: Task, why: str) -> Refusal:
    """Make the refusal LEASE_INVALID."""
    return Refusal(
        Reason.LEASE_INVALID,
        f"no valid lease on task {task.task_id}: {why}",
        current_status=task.status,
        allowed=allowed(task),
    )


def expire_if_due(tx: Transaction, now: Instant, task: Task) -> Task:
    """Return the task as it is now: stale if its lease has run out, though no sweep has come by."""
    return expire(tx, now, task) if is_lease_due(task, now) else task


def live_lease(tx: Transaction, now: Instant, holder: Holder, refused_as: str) -> Held | Refusal:
    """Return the task and its lease if `holder` holds it and it has not run out.

    Otherwise the refusal goes into the history as an event of the kind `refused_as`.
    """
    task = tasks.find(tx, holder.task_id)
    if task is None:
        return not_found(holder.task_id)
    was_due = is_lease_due(task, now)
    task = expire_if_due(tx, now, task)
    lease = leases.current(tx, task)
    if lease is not None and is_holder(lease, holder) and task.status in ACTIVE:
        return Held(task, lease)
    if lease is None:
        why = "it was never leased"
    elif not is_holder(lease, holder):
        why = f"{holder.worker_id} with this token does not hold it"
    else:
        why = "it has run out" if was_due else f"the task is {task.status}"
    refusal = lease_invalid(task, why)
    record_refusal(tx, now, task, refused_as, Actor(holder.identity, holder.worker_id), refusal)
    return refusal


def renew(
    tx: Transaction, now: Instant, policy: Policy, holder: Holder, with_others: bool = False
) -> Renewed | Refusal:
    """Extend a lease to a full TTL from now. The first renewal acknowledges it.

    `with_others`: the answer brings what is known now of the orders of the site's other tasks.
    """
    held = live_lease(tx, now, holder, "renew_refused")
    if isinstance(held, Refusal):
        return held
    task, lease = held.task, held.lease
    workers.seen(tx, now, holder.worker_id)
    event = Event.RENEW
    if lease.acknowledged_at is None:
        leases.acknowledge(tx, now, lease)
        event = Event.ACKNOWLEDGE
    expires_at = now.later(policy.lease_ttl)
    transition(
        tx, now, task, event, task.status, Actor(holder.identity, holder.worker_id),
        details={"expires_at": expires_at},
        lease_expires_at=expires_at, lease_deadline_us=now.elapsed_us + microseconds(policy.lease_ttl),
    )  # fmt: skip
    age = timedelta(microseconds=now.elapsed_us - lease.started_us)
    others = other_orders(tx, task) if with_others else None
    return Renewed(task.task_id, expires_at, task.lease_count, age, others)
