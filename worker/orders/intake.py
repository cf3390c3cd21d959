"""From a lease to a run: journal, acknowledge, look at what is known of the task, execute."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from ordergateway.v1 import order_leases_pb2 as pb

from worker.account_lock import AccountLocks, AccountTurn
from worker.clock import Entropy
from worker.failpoints import FailpointName
from worker.gateway.lease_guard import LeaseGuard, LeaseLostError
from worker.gateway.wire import leased_task, state_from_wire
from worker.journal.records import JournalEntry, OrderStatus, Taken
from worker.orders.executor import NOT_IMPLEMENTED_CODE, execute, may_begin_again, report_end_again
from worker.orders.intent import other_than_known
from worker.orders.parts import Parts
from worker.orders.run import REPORT_PATIENCE, OrderRun
from worker.orders.state import later
from worker.sites.port import Site, by_target

_log = logging.getLogger(__name__)

InTrace = Callable[[pb.Lease], AbstractContextManager[object]]
"""What is around everything that is done for a lease: a span of its trace."""


def not_traced(_lease: pb.Lease) -> AbstractContextManager[object]:
    """Trace nothing."""
    return nullcontext()


class Intake:
    """Executes leases on the sites that can be ordered on, one at a time."""

    def __init__(
        self,
        parts: Parts,
        sites: Sequence[Site],
        accounts: AccountLocks,
        entropy: Entropy,
        *,
        stopping: asyncio.Event,
        in_trace: InTrace = not_traced,
    ) -> None:
        self._parts = parts
        self._sites = by_target(site for site in sites if site.can_order)
        self._accounts = accounts
        self._entropy = entropy
        self._stopping = stopping
        self._in_trace = in_trace

    async def execute(self, lease: pb.Lease, *, from_queue: bool = False) -> OrderStatus | None:
        """Take a lease from the journal's first line to the order's end; None if it was dropped or lost.

        `from_queue`: it came from the queue, not by a reclaim, so that an end without an order may be begun again.
        """
        with self._in_trace(lease):
            return await self._execute(lease, from_queue=from_queue)

    async def _execute(self, lease: pb.Lease, *, from_queue: bool) -> OrderStatus | None:
        fields = {
            "task_id": lease.task_id,
            "site": lease.site,
            "account": lease.account,
            "lease_count": lease.lease_count,
        }
        received_at = self._parts.clock.elapsed()
        taken = await self._parts.journal.orders.take_lease(leased_task(lease))
        if taken is None:
            _log.warning("a lease that was taken before is dropped", extra=fields)
            return None
        _log.info("lease taken", extra=fields)
        await self._parts.failpoint(FailpointName.LEASED)
        guard = LeaseGuard(
            lease,
            self._parts.gateway,
            self._parts.clock,
            self._entropy,
            received_at=received_at,
            stopping=self._stopping,
        )
        try:
            await guard.renew()
        except LeaseLostError as error:
            _log.warning("the lease could not be acknowledged: %s", error, extra=fields)
            return None
        async with guard:
            if differs := other_than_known(taken.order, leased_task(lease)):
                return await self._end_unbegun(lease, taken, f"nothing was done by this run: {differs}")
            site = self._sites.get(taken.order.target)
            if site is None:
                why = f"this worker cannot look at or order on {taken.order.target}"
                return await self._end_unbegun(lease, taken, why, NOT_IMPLEMENTED_CODE)
            clicked = await self._parts.journal.claims.has_click(lease.task_id)
            if from_queue and lease.lease_count > 1 and may_begin_again(taken.order, clicked=clicked):
                taken = Taken(await self._parts.journal.orders.begin_again(lease.task_id), known=True)
            return await self._act(lease, taken, guard, site, clicked=clicked)

    async def _act(
        self, lease: pb.Lease, taken: Taken, guard: LeaseGuard, site: Site, *, clicked: bool
    ) -> OrderStatus | None:
        order, known_state = taken.order, state_from_wire(lease.known_state)
        recovered = taken.known or lease.lease_count > 1 or known_state is not None
        if lease.lease_count == 1 and known_state is not None:
            _log.warning(
                "a first lease comes with a state, which cannot be: the task is verified before anything is done",
                extra={"task_id": lease.task_id, "known_state": known_state.value},
            )
        try:
            folder = self._parts.evidence.choose_run_folder(
                lease.task_id, recovered=recovered, lease_count=lease.lease_count
            )
        except OSError as error:
            why = f"nothing was done by this run: no evidence can be kept in {error.filename}: {error.strerror}"
            return await self._end_unbegun(lease, taken, why)
        await self._parts.journal.orders.use_run_folder(lease.task_id, folder)
        run = OrderRun(
            parts=self._parts,
            site=site,
            account=AccountTurn(self._accounts.of(order.target)),
            lease=lease,
            guard=guard,
            folder=folder,
            recovered=recovered,
            state=later(order.state, known_state),
            site_order_id=order.site_order_id,
            clicked=clicked,
        )
        await run.passed(FailpointName.ACKNOWLEDGED)
        if order.status is not OrderStatus.OPEN:
            return await report_end_again(run, order)
        return await execute(run)

    async def _end_unbegun(
        self, lease: pb.Lease, taken: Taken, detail: str, error_code: int | None = None
    ) -> OrderStatus:
        """End a task that this run cannot begin: only a person can say what became of it."""
        entry = JournalEntry(
            event="ended",
            state=later(taken.order.state, state_from_wire(lease.known_state)),
            status=OrderStatus.NEEDS_HUMAN,
            site_order_id=taken.order.site_order_id,
            detail=detail,
            error_code=error_code,
        )
        await self._parts.journal.orders.record(lease.task_id, entry)
        await self._parts.outbox.deliver(lease.task_id, patience=REPORT_PATIENCE)
        return OrderStatus.NEEDS_HUMAN
