"""What the dispatcher of orders hands out (docs/specification.md#taking-an-order)."""

from collections.abc import Callable, Collection, Hashable, Iterable
from typing import TypeAlias

from common.target import Target
from gateway.dispatch.dispatcher import Dispatcher
from gateway.dispatch.lease_source import Turn
from gateway.domain.instant import Instant
from gateway.domain.leases import Lease, LeaseRequest
from gateway.domain.models import Actor, Policy
from gateway.domain.refusals import Refusal
from gateway.orders.conditions import is_permit_passed_over
from gateway.orders.lease import open_lease, take_next, undo_lease
from gateway.orders.ready import ready_targets
from gateway.orders.topics import QUEUE
from gateway.store.port import Transaction

OrderDispatcher: TypeAlias = Dispatcher[LeaseRequest, Lease]


class OrderLeaseSource:
    """Orders, each with a fresh token."""

    topic = QUEUE

    def __init__(self, policy: Policy, new_token: Callable[[], str]) -> None:
        self._policy = policy
        self._new_token = new_token

    def waiter_of(self, request: LeaseRequest) -> Hashable | None:
        """Name a worker and its journal, which one process has at a time. Over REST nobody can tell."""
        return request.journal_id and (request.worker_id, request.journal_id)

    def turn_of(self, request: LeaseRequest) -> Turn:
        """Tell which of the process's streams this is, as the process counts."""
        return Turn(request.session_id or "", request.stream_number)

    def kind_of(self, request: LeaseRequest) -> Hashable | None:
        """Name those who ask for no permit: an order may be there that only others get."""
        return request.via if is_permit_passed_over(self._policy, request) else None

    def open(self, tx: Transaction, now: Instant, request: LeaseRequest) -> Lease | Refusal | None:
        """Begin a wait: heartbeat, the session's unacknowledged lease again, or the next order."""
        return open_lease(tx, now, self._policy, request, self._new_token())

    def ready(self, tx: Transaction, now: Instant, wanted: Collection[Target]) -> Iterable[Target]:
        """Return the targets whose oldest order can be leased now, the oldest order first."""
        return ready_targets(tx, now, self._policy, wanted)

    def take(self, tx: Transaction, now: Instant, request: LeaseRequest) -> Lease | None:
        """Lease the next order."""
        return take_next(tx, now, self._policy, request, self._new_token())

    def release(self, tx: Transaction, now: Instant, request: LeaseRequest, lease: Lease) -> bool:
        """Undo a lease that was never handed over, neither here nor in another stream of the same process."""
        return undo_lease(tx, now, lease.task_id, lease.token, Actor("gateway", request.worker_id))
