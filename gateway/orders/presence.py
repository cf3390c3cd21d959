"""Workers that are there: who asks for an order and who waits for one (docs/specification.md#taking-an-order)."""

from collections.abc import Collection
from datetime import timedelta
from typing import Final

from gateway import targets
from gateway.domain.instant import Instant
from gateway.domain.leases import LeaseRequest
from gateway.domain.refusals import Reason, Refusal
from gateway.store import workers
from gateway.store.port import Transaction

MAX_NAMES: Final = 100
"""Names of workers that one token's identity may bring; each is shown, counted and alerted on by itself."""

_ASK_AGAIN: Final = timedelta(seconds=60)


def arrive(tx: Transaction, now: Instant, request: LeaseRequest) -> Refusal | None:
    """Note that a worker asks for an order, and what it serves.

    A name that is new is refused where its token has brought too many, and so is what it serves. That is a target from
    then on, though nothing was ever filed for it.
    """
    known, identity = workers.find(tx, request.worker_id), request.identity
    if known is None and workers.introduced_by(tx, identity) >= MAX_NAMES:
        return Refusal(
            Reason.TOO_MANY,
            f"{identity} has brought {MAX_NAMES} names of workers, which is the limit for one token: call with a name "
            "that is known, or forget names that are not in use with `order-gateway workers forget WORKER`",
            retry_after=_ASK_AGAIN,
        )
    if known is None or (known.sites, known.accounts) != (request.sites, request.accounts):
        refusal = targets.use(tx, now, request.targets, identity)
        if refusal is not None:
            return refusal
    workers.arrived(tx, now, request)
    return None


def still_there(tx: Transaction, now: Instant, worker_ids: Collection[str], gateway: str) -> int:
    """Note that these workers, whose streams are open at this gateway, have been heard of now; return how many."""
    for worker_id in worker_ids:
        workers.waits(tx, now, worker_id, gateway)
    return len(worker_ids)
