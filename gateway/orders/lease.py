"""Taking an order (docs/specification.md#taking-an-order): lease, the repeat after a lost answer, undo, reclaim."""

from datetime import timedelta
from typing import Any, Final

from gateway.domain.binding import may_hold
from gateway.domain.instant import Instant, microseconds
from gateway.domain.leases import Command, Lease, LeaseRecord, LeaseRequest, Via
from gateway.domain.models import Actor, Policy, Task
from gateway.domain.refusals import Reason, Refusal
from gateway.domain.states import Placement, TaskStatus
from gateway.domain.transitions import Event, allowed, check
from gateway.orders import slots
from gateway.orders.approval import lacks_approval
from gateway.orders.cancel import cancel_if_requested
from gateway.orders.conditions import is_judged, is_permit_passed_over
from gateway.orders.due import bring_up_to_date, is_late
from gateway.orders.expire import expire, expire_due, is_lease_due
from gateway.orders.history import record_refusal
from gateway.orders.others import other_orders
from gateway.orders.presence import arrive
from gateway.orders.settle import may_have_clicked
from gateway.orders.submit import not_found
from gateway.orders.transition import transition
from gateway.store import lanes, leases, pauses, tasks
from gateway.store.port import ReadTransaction, Transaction

NO_COMMAND: Final = Command()


def open_lease(
    tx: Transaction, now: Instant, policy: Policy, request: LeaseRequest, token: str
) -> Lease | Refusal | None:
    """Begin a wait: the worker's heartbeat, then its unacknowledged lease again, or the next order, or None.

    Who asks for other targets than that of its unacknowledged lease gets neither: never another target's order, and
    none beside it.
    """
    refusal = arrive(tx, now, request)
    if refusal is not None:
        return refusal
    held = _unacknowledged(tx, now, request)
    if held is None:
        return take_next(tx, now, policy, request, token)
    task, lease = held
    return _give_again(tx, task, lease) if task.target in request.targets else None


def take_next(tx: Transaction, now: Instant, policy: Policy, request: LeaseRequest, token: str) -> Lease | None:
    """Lease the worker's oldest queued task whose slot is free and whose site is not paused; None if there is none."""
    bring_up_to_date(tx, now)
    paused = {pause.site for pause in pauses.standing(tx)}
    if None in paused:
        return None
    served = (target for target in request.targets if target.site not in paused)
    only_plain = is_permit_passed_over(policy, request)
    if only_plain and policy.permit_max_yen is not None:
        return None
    head = tasks.oldest_plain if only_plain else lanes.head
    heads = (head(tx, target) for target in slots.free(tx, policy, served))
    waiting = (tasks.at(tx, row) for row in sorted(row for row in heads if row is not None))
    task = next((task for task in waiting if not (only_plain and is_judged(tx, policy, task))), None)
    if task is None:
        return None
    if (is_late(task, now) and task.placement is Placement.IMPOSSIBLE) or lacks_approval(tx, now, task):
        return None  # one of more than a batch whose time passed at once; the sweep ends them, or holds them again
    return _hand_over(tx, now, policy, task, request, token, Event.LEASE)


def undo_lease(tx: Transaction, now: Instant, task_id: str, token: str, actor: Actor) -> bool:
    """Give back an answer that never reached its transport; the lease is undone if no other answer brought it.

    False if the lease stands: it was handed over in another answer, acknowledged, or is not there any more.
    """
    task = tasks.find(tx, task_id)
    if task is None or task.status is not TaskStatus.LEASED:
        return False
    other_answers = leases.take_back(tx, task_id, token)
    if other_answers is None or other_answers > 0:
        return False
    leases.undo(tx, task_id, token)
    queued = transition(
        tx, now, task, Event.UNDO, TaskStatus.QUEUED, actor,
        reason="the client had gone",
        lease_count=task.lease_count - 1,
        may_have_clicked=any(map(may_have_clicked, leases.of_task(tx, task_id))),
    )  # fmt: skip
    cancel_if_requested(tx, now, queued, actor)
    return True


def reclaim(
    tx: Transaction,
    now: Instant,
    policy: Policy,
    task_id: str,
    request: LeaseRequest,
    token: str,
    command: Command = NO_COMMAND,
) -> Lease | Refusal:
    """Lease a stale task again, on a person's command; allowed while dispatch is paused."""
    refusal = arrive(tx, now, request)
    if refusal is not None:
        return refusal
    expire_due(tx, now)
    task = tasks.find(tx, task_id)
    if task is None:
        return not_found(task_id)
    lease = leases.current(tx, task)
    if task.status is TaskStatus.LEASED and lease is not None and _is_unacknowledged_of(lease, request):
        return _give_again(tx, task, lease)
    actor = Actor(request.identity, request.worker_id)
    refusal = (
        check(Event.RECLAIM, task)
        or _not_served(task, request)
        or _needs_a_permit(tx, policy, task, request)
        or _occupied(tx, policy, task)
    )
    if refusal is not None:
        reclaim_request = {"asked_because": command.reason} if command.reason else {}
        record_refusal(tx, now, task, "reclaim_refused", actor, refusal, **_by(command), **reclaim_request)
        return refusal
    return _hand_over(tx, now, policy, task, request, token, Event.RECLAIM, command)


def _by(command: Command) -> dict[str, Any]:
    """Return who gave a command, for the history, if that was said."""
    return {"requested_by": command.requested_by} if command.requested_by else {}


def _unacknowledged(tx: Transaction, now: Instant, request: LeaseRequest) -> tuple[Task, LeaseRecord] | None:
    if request.session_id is None:
        return None
    lease = leases.unacknowledged_of_session(tx, request.session_id)
    if lease is None or not _is_unacknowledged_of(lease, request):
        return None
    task = tasks.get(tx, lease.task_id)
    if is_lease_due(task, now):
        expire(tx, now, task)
        return None
    return task, lease


def _give_again(tx: Transaction, task: Task, lease: LeaseRecord) -> Lease:
    leases.give_again(tx, lease)
    return _lease(tx, task, lease.token)


def _is_unacknowledged_of(lease: LeaseRecord, request: LeaseRequest) -> bool:
    """Tell whether this very process was given the lease and may not have got the answer; anyone else gets nothing."""
    return (
        lease.acknowledged_at is None
        and may_hold(lease.bound_to, request.identity)
        and lease.session_id is not None
        and (lease.session_id, lease.worker_id, lease.journal_id)
        == (request.session_id, request.worker_id, request.journal_id)
    )


def _not_served(task: Task, request: LeaseRequest) -> Refusal | None:
    """Refuse a task of another target than the worker serves: it would be ordered with the wrong account."""
    if task.target in request.targets:
        return None
    of = f"account {task.account}" if task.account else "the site's only account"
    return Refusal(
        Reason.STATUS_CONFLICT,
        f"task {task.task_id} is to be ordered with {of} of {task.site}, which this worker does not serve; "
        "have it reclaimed by a worker that does",
        current_status=task.status,
        allowed=allowed(task),
    )


def _needs_a_permit(tx: ReadTransaction, policy: Policy, task: Task, request: LeaseRequest) -> Refusal | None:
    """Refuse a task with conditions to a worker over REST, where nobody would judge them."""
    if not is_permit_passed_over(policy, request) or not is_judged(tx, policy, task):
        return None
    return Refusal(
        Reason.STATUS_CONFLICT,
        f"task {task.task_id} has conditions that the submit permit judges, which a lease over REST does not know "
        "(RAKUTEN_REST_LEASES); have it reclaimed by a worker over gRPC",
        current_status=task.status,
        allowed=allowed(task),
    )


def _occupied(tx: ReadTransaction, policy: Policy, task: Task) -> Refusal | None:
    holder = slots.occupant(tx, policy, task.target)
    if holder is None:
        return None
    return Refusal(
        Reason.ANOTHER_TASK_ACTIVE,
        f"task {holder} is in execution; reclaim {task.task_id} again when it has ended",
        current_status=task.status,
        retry_after=timedelta(seconds=5),
    )


def _hand_over(
    tx: Transaction,
    now: Instant,
    policy: Policy,
    task: Task,
    request: LeaseRequest,
    token: str,
    event: Event,
    command: Command = NO_COMMAND,
) -> Lease:
    lives = policy.acknowledge_within if request.via is Via.GRPC else policy.lease_ttl
    number = task.lease_count + 1
    leased = transition(
        tx, now, task, event, TaskStatus.LEASED, Actor(request.identity, request.worker_id),
        reason=command.reason,
        details={"lease_count": number, "via": request.via.value, **_by(command)},
        slot=policy.slot(task.target),
        lease_owner=request.worker_id,
        lease_expires_at=now.later(lives),
        lease_deadline_us=now.elapsed_us + microseconds(lives),
        lease_count=number,
        may_have_clicked=task.may_have_clicked or request.via is Via.REST,
    )  # fmt: skip
    leases.add(tx, now, leased, request, token)
    return _lease(tx, leased, token)


def _lease(tx: ReadTransaction, task: Task, token: str) -> Lease:
    return Lease(
        task_id=task.task_id,
        site=task.site,
        intent_json=task.intent_json,
        lease_expires_at=task.lease_expires_at or "",
        lease_count=task.lease_count,
        known_state=task.latest_state,
        token=token,
        task_created_at=task.created_at,
        traceparent=task.traceparent,
        others=other_orders(tx, task),
        account=task.account,
        labels_json=task.labels_json,
        stop_before_submit=task.stop_before_submit,
    )
