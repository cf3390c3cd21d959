"""Pausing dispatch, and the workers heard of (docs/specification.md#pauses)."""

from gateway.domain.health import Pause
from gateway.domain.instant import Instant
from gateway.domain.models import Actor, AlertKind, Policy
from gateway.domain.operations import Resumption
from gateway.domain.refusals import Reason, Refusal
from gateway.operations.second_person import propose, resuming_needs_another
from gateway.orders.expire import expire_due
from gateway.orders.history import record_general
from gateway.orders.topics import notify_queue
from gateway.store import alerts, pauses, tasks, workers
from gateway.store.port import ReadTransaction, Transaction


def pause(tx: Transaction, now: Instant, site: str, reason: str, actor: Actor) -> tuple[Pause, ...]:
    """Stop dispatch for a site ("": all); no lease and no permit is granted. A pause that stands is left as it is."""
    if pauses.add(tx, now, site, reason, actor):
        record_general(tx, now, "pause", actor, reason=reason, site=site)
    return pauses.standing(tx)


def resume(
    tx: Transaction, now: Instant, policy: Policy, site: str, reason: str, actor: Actor
) -> tuple[Pause, ...] | Refusal:
    """Lift the pause of a site, or the one of all sites (""); pauses of single sites stay then."""
    of_all = None if site else pauses.of_all_sites(tx)
    if of_all is not None and resuming_needs_another(tx, policy, of_all, actor):
        return propose(tx, now, policy, Resumption(reason), actor)
    if pauses.lift(tx, site):
        record_general(tx, now, "resume", actor, reason=reason, site=site)
        notify_queue(tx, None)
    return pauses.standing(tx)


def paused_sites(tx: ReadTransaction, _now: Instant) -> frozenset[str]:
    """Return the sites that a pause of their own stands for, configured or not."""
    return frozenset(pause.site for pause in pauses.standing(tx) if pause.site)


def forget_worker(tx: Transaction, now: Instant, worker_id: str, reason: str, actor: Actor) -> Refusal | None:
    """Forget a worker that was retired on purpose; not while it holds a lease. It is known again once it calls."""
    expire_due(tx, now)
    held = tasks.held_by(tx, worker_id)
    if held is not None:
        return Refusal(
            Reason.STATUS_CONFLICT,
            f"worker {worker_id} holds task {held}; wait for its end, or expire it if the worker is dead",
            current_status=tasks.get(tx, held).status,
            allowed=("expire_now",),
        )
    if not workers.forget(tx, worker_id):
        return Refusal(Reason.WORKER_NOT_FOUND, f"there is no worker {worker_id}")
    record_general(tx, now, "forget_worker", Actor(actor.identity, worker_id), reason=reason)
    alerts.clear(tx, now, AlertKind.WORKER_OFFLINE, worker_id)
    return None
