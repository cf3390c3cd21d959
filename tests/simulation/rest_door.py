"""The gateway's REST door, behind its HTTP: the lease desk and the use cases, called as the routes call them."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from gateway.dispatch.order_lease_source import OrderDispatcher
from gateway.domain.leases import Holder, Lease, LeaseRequest, Via
from gateway.domain.models import NewReport
from gateway.domain.states import OrderState
from gateway.orders.report import report
from tests.simulation.loop import Process
from tests.simulation.store import SimStore


class RestDoor:
    """Of one incarnation of the gateway. Where that loses its power, no answer ever comes: callers bring patience."""

    def __init__(self, process: Process, store: SimStore, dispatcher: OrderDispatcher) -> None:
        self._process = process
        self._store = store
        self._dispatcher = dispatcher

    async def lease(self, worker_id: str, wait: float) -> Lease | None:
        """GET /api/orders/lease."""
        request = LeaseRequest(worker_id, None, None, ("sandbox",), Via.REST, "api")

        async def serve() -> Lease | None:
            gone: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            async with self._dispatcher.wait_for_lease(request, wait, gone) as handover:
                if handover is None:
                    return None
                handover.mark_delivered()
                return handover.lease

        lease: Lease | None = await self._in_process(serve())
        return lease

    async def report(
        self, task_id: str, worker_id: str, state: OrderState, number: str | None, *, terminal: bool
    ) -> None:
        """POST /api/orders/{task_id}/report."""
        told = NewReport(
            state=state, payable_yen=None, pay_deadline=None, site_order_id=number, evidence_ref=None, detail="",
            error_code=None, sequence=None, terminal=terminal, terminal_status=None,
        )  # fmt: skip
        await self._in_process(self._store.write(report, Holder(task_id, worker_id, None, "api"), told))

    async def _in_process(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Whoever loses patience has gone, which the gateway notices."""
        serving = self._process.spawn(work)
        try:
            return await asyncio.shield(serving)
        except asyncio.CancelledError:
            serving.cancel()
            raise
