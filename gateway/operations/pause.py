"""Pausing dispatch, and the workers heard of (docs/specification.md#pauses)."""

from gateway.domain.instant import Instant
from gateway.domain.models import Actor, AlertKind, Pause
from gateway.domain.refusals import Reason, Refusal
from gateway.orders.expire import expire_due
from gateway.orders.history import QUEUE, clear_alert, record_general
from gateway.store.port import Transaction
from gateway.store.rows import all_pauses, get_task


def pause(tx: Transaction, now: Instant, site: str, reason: str, actor: Actor) -> tuple[Pause, ...]:
    """Stop dispatch for a site ("": all); no lease and no permit is granted. A pause that stands is left as it is."""
    if tx.change("pause_set", site=site, at=now.utc, by=actor.identity, reason=reason):
        record_general(tx, now, "pause", actor, reason=reason, site=site)
    return all_pauses(tx)


def resume(tx: Transaction, now: Instant, site: str, reason: str, actor: Actor) -> tuple[Pause, ...]:
    """Lift the pause of a site, or the one of all sites (""); pauses of single sites stay then."""
    if tx.change("pause_lift", site=site):
        record_general(tx, now, "resume", actor, reason=reason, site=site)
        tx.notify(QUEUE)
    return all_pauses(tx)


def forget_worker(tx: Transaction, now: Instant, worker_id: str, reason: str, actor: Actor) -> Refusal | None:
    """Forget a worker that was retired on purpose; not while it holds a lease. It is known again once it calls."""
    expire_due(tx, now)
    held = tx.one("task_of_worker", worker_id=worker_id)
    if held is not None:
        return Refusal(
            Reason.STATUS_CONFLICT,
            f"worker {worker_id} holds task {held['task_id']}; wait for its end, or expire it if the worker is dead",
            current_status=get_task(tx, held["task_id"]).status,
            allowed=("expire_now",),
        )
    if tx.change("worker_forget", worker_id=worker_id) == 0:
        return Refusal(Reason.WORKER_NOT_FOUND, f"there is no worker {worker_id}")
    record_general(tx, now, "forget_worker", Actor(actor.identity, worker_id), reason=reason)
    clear_alert(tx, now, AlertKind.WORKER_OFFLINE, worker_id)
    return None
