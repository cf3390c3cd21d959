"""The desk where workers wait for orders, first come first served (specification, section 4, taking).

One dispatcher asks the database on behalf of all who wait, so thousands may wait at the price of one. Whoever has gone
away gets nothing: a lease that was taken for a waiter, but not handed to its transport, is undone.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

from gateway.domain.models import Actor, Lease, LeaseRequest, Policy
from gateway.domain.refusals import RefusedError
from gateway.orders.history import QUEUE
from gateway.orders.lease import open_lease, take_next, undo_lease
from gateway.store.port import Store, StoreUnavailableError
from gateway.waiting.hub import Hub
from gateway.waiting.stream import HEARTBEAT, HEARTBEAT_SECONDS, POLL_SECONDS, Heartbeat, shutting_down

_log = logging.getLogger(__name__)


class _Waiter:
    __slots__ = ("future", "request")

    def __init__(self, request: LeaseRequest) -> None:
        self.request = request
        self.future: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()


class LeaseDesk:
    """Gives each waiting worker at most one lease. `run` must be running while anybody waits."""

    def __init__(self, store: Store, hub: Hub, policy: Policy, new_token: Callable[[], str]) -> None:
        self._store = store
        self._hub = hub
        self._policy = policy
        self._new_token = new_token
        self._wake = hub.subscribe(QUEUE)
        self._lines: dict[frozenset[str], deque[_Waiter]] = {}
        self._errands: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Dispatch until the hub closes."""
        with self._wake:
            while not self._hub.closing:
                await self._dispatch()
                await self._wake.wait(POLL_SECONDS if self._lines else None)
            for line in self._lines.values():
                for waiter in line:
                    if not waiter.future.done():
                        waiter.future.set_exception(shutting_down())

    async def settle(self) -> None:
        """Wait until every lease that nobody took has been given back."""
        while self._errands:
            await asyncio.gather(*self._errands, return_exceptions=True)

    async def stream(self, request: LeaseRequest, wait: float) -> AsyncGenerator[Heartbeat | Lease]:
        """Yield heartbeats for up to `wait` seconds, and the lease last if there is one.

        Close the iterator when its consumer has gone (`contextlib.aclosing`). Raises RefusedError SHUTTING_DOWN when
        the gateway stops, StoreUnavailableError when the database cannot write.
        """
        clock = asyncio.get_running_loop().time
        deadline = clock() + wait
        yield HEARTBEAT
        if self._hub.closing:
            raise shutting_down()
        hints = self._wake.count
        lease = await self._open(request)
        waiter = _Waiter(request)
        if lease is not None:
            waiter.future.set_result(lease)
        else:
            dispatcher_sleeps = not self._lines
            self._lines.setdefault(frozenset(request.sites), deque()).append(waiter)
            if dispatcher_sleeps or self._wake.count != hints:
                self._wake.wake()
        handed_over = False
        try:
            while not waiter.future.done() and (left := deadline - clock()) > 0:
                done, _ = await asyncio.wait({waiter.future}, timeout=min(HEARTBEAT_SECONDS, left))
                if not done and deadline - clock() > 0:
                    yield HEARTBEAT
            if waiter.future.done():
                lease = waiter.future.result()
                handed_over = True
                yield lease
        finally:
            self._leave(waiter, handed_over=handed_over)

    def _leave(self, waiter: _Waiter, *, handed_over: bool) -> None:
        line = self._lines.get(frozenset(waiter.request.sites))
        if line is not None and waiter in line:
            line.remove(waiter)
        if line is not None and not line:
            del self._lines[frozenset(waiter.request.sites)]
        if not waiter.future.done():
            waiter.future.cancel()
        elif not handed_over and not waiter.future.cancelled() and waiter.future.exception() is None:
            self._send(self._give_back(waiter.request, waiter.future.result()))

    async def _open(self, request: LeaseRequest) -> Lease | None:
        """Begin the wait. If the caller is cancelled meanwhile, what was leased for it is given back."""
        opening = asyncio.ensure_future(self._store.write(open_lease, self._policy, request, self._new_token()))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            self._send(self._give_back_when_known(request, opening))
            raise

    async def _dispatch(self) -> None:
        for sites in list(self._lines):
            try:
                while await self._serve_first(sites):
                    pass
            except StoreUnavailableError as error:
                _log.warning("no order can be leased now: %s", error)
                return

    async def _serve_first(self, sites: frozenset[str]) -> bool:
        """Try to lease for the first in line; True if it may be worth trying for the next."""
        line = self._lines.get(sites)
        if not line or self._hub.closing:
            return False
        waiter = line[0]
        lease = await self._store.write(take_next, self._policy, waiter.request, self._new_token())
        if lease is None:
            return False
        if waiter.future.done():
            await self._give_back(waiter.request, lease)
            return True
        line.remove(waiter)
        if not line:
            self._lines.pop(sites, None)
        waiter.future.set_result(lease)
        return True

    async def _give_back_when_known(self, request: LeaseRequest, opening: "asyncio.Future[Lease | None]") -> None:
        lease = await opening
        if lease is not None:
            await self._give_back(request, lease)

    async def _give_back(self, request: LeaseRequest, lease: Lease) -> None:
        actor = Actor("gateway", request.worker_id)
        await self._store.write(undo_lease, lease.task_id, lease.token, actor)

    def _send(self, errand: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(self._run_errand(errand))
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)

    async def _run_errand(self, errand: Coroutine[Any, Any, None]) -> None:
        try:
            await errand
        except (StoreUnavailableError, RefusedError) as error:
            _log.warning("a lease that nobody took could not be given back, it will expire: %s", error)
