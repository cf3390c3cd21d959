"""A desk where workers wait in line, first come first served; what they wait for is a Shelf's.

The desk asks the database once on behalf of all who wait, so thousands may wait at the price of one: within the very
transaction that brings something to take, and every second in case a hint was lost. Whoever has gone away gets nothing:
what was taken for a waiter, but not handed to its transport, is put back.
"""

import asyncio
import itertools
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Hashable
from contextlib import asynccontextmanager
from typing import Any, Generic, Protocol, TypeVar

from gateway.dispatch.notifier import Notifier
from gateway.dispatch.stream import HEARTBEAT, HEARTBEAT_SECONDS, POLL_SECONDS, Heartbeat, shutting_down
from gateway.domain.instant import Instant
from gateway.domain.refusals import RefusedError
from gateway.store.port import Store, StoreUnavailableError, Transaction

_log = logging.getLogger(__name__)


class Request(Protocol):
    """Somebody who waits."""

    @property
    def sites(self) -> tuple[str, ...]:
        """The sites that the waiter serves; those with the same ones stand in one line."""
        ...


R = TypeVar("R", bound=Request)
L = TypeVar("L")
R_contra = TypeVar("R_contra", bound=Request, contravariant=True)


class LeaseSource(Protocol[R_contra, L]):
    """What a desk hands out: three operations of the database."""

    @property
    def topic(self) -> str:
        """The topic of everything that may let a wait go on."""
        ...

    def process_of(self, request: R_contra, /) -> Hashable | None:
        """Name the process that waits if it waits in one place at a time; None if it may wait in several."""
        ...

    def open(self, tx: Transaction, now: Instant, request: R_contra, /) -> L | None:
        """Begin a wait; return what the worker already has, or the next, or None."""
        ...

    def take(self, tx: Transaction, now: Instant, request: R_contra, /) -> L | None:
        """Take the next for a worker that waits, or return None."""
        ...

    def release(self, tx: Transaction, now: Instant, request: R_contra, lease: L, /) -> object:
        """Undo what was taken for a worker that has gone, unless it is not that any more."""
        ...


class _Waiter(Generic[R, L]):
    __slots__ = ("future", "handed_over", "request")

    def __init__(self, request: R) -> None:
        self.request = request
        self.handed_over = False
        self.future: asyncio.Future[L] = asyncio.get_running_loop().create_future()


class Handover(Generic[L]):
    """A lease that waits to be handed to the transport."""

    def __init__(self, waiter: "_Waiter[Any, L]") -> None:
        self.lease = waiter.future.result()
        self._waiter = waiter

    def mark_delivered(self) -> None:
        """Say that the transport has it now; call this with nothing awaited between the two."""
        self._waiter.handed_over = True


class Dispatcher(Generic[R, L]):
    """Gives each waiting worker at most one lease. `run` must be running while anybody waits."""

    def __init__(
        self, store: Store, notifier: Notifier, source: LeaseSource[R, L], heartbeat_seconds: float = HEARTBEAT_SECONDS
    ) -> None:
        self._store = store
        self._notifier = notifier
        self._source = source
        self._heartbeat_seconds = heartbeat_seconds
        self._notifications = notifier.subscribe(source.topic)
        self._wake = notifier.subscribe(f"desk: {source.topic}")
        self._look_topic = f"look: {source.topic}"
        self._lines: dict[frozenset[str], dict[_Waiter[R, L], None]] = {}
        self._latest: dict[tuple[Hashable, frozenset[str]], _Waiter[R, L]] = {}
        self._superseded: set[_Waiter[R, L]] = set()
        self._background_tasks: set[asyncio.Task[None]] = set()
        store.add_pre_commit_hook(source.topic, self._serve)
        store.add_pre_commit_hook(self._look_topic, self._serve)

    async def run(self) -> None:
        """Look every second whether something can be taken, in case a hint was lost; until the hub closes."""
        with self._notifications, self._wake:
            while not self._notifier.closing:
                if self._lines:
                    await self._look()
                await self._wake.wait(POLL_SECONDS if self._lines else None)
            for waiter in (*itertools.chain(*self._lines.values()), *self._superseded):
                if not waiter.future.done():
                    waiter.future.set_exception(shutting_down())

    def waiting(self) -> list[R]:
        """Return the requests of those who stand in line."""
        return [waiter.request for line in self._lines.values() for waiter in line]

    async def drain(self) -> None:
        """Wait until every lease that nobody took has been given back."""
        # Not gather: from Python 3.12 on it returns at once if all are done, before they could be taken off the list.
        while self._background_tasks:
            await asyncio.wait(self._background_tasks)

    async def stream(self, request: R, wait: float) -> AsyncGenerator[Heartbeat | L]:
        """Yield heartbeats for up to `wait` seconds, and the lease last if there is one.

        Close the iterator when its consumer has gone (`contextlib.aclosing`). Raises RefusedError SHUTTING_DOWN when
        the gateway stops, StoreUnavailableError when the database cannot write.
        """
        clock = asyncio.get_running_loop().time
        deadline = clock() + wait
        yield HEARTBEAT
        async with self._line(request) as waiter:
            while not waiter.future.done() and (left := deadline - clock()) > 0:
                done, _ = await asyncio.wait({waiter.future}, timeout=min(self._heartbeat_seconds, left))
                if not done and deadline - clock() > 0:
                    yield HEARTBEAT
            if waiter.future.done():
                lease = waiter.future.result()
                self._refuse_while_closing()
                waiter.handed_over = True
                yield lease

    @asynccontextmanager
    async def wait_for_lease(
        self, request: R, wait: float, gone: "asyncio.Future[Any]"
    ) -> AsyncGenerator[Handover[L] | None]:
        """Give a lease if one comes within `wait` seconds, else None. The wait ends at once when `gone` is done.

        The lease is given back on leaving, unless it was handed over. Raises as `stream` does.
        """
        deadline = asyncio.get_running_loop().time() + wait
        async with self._line(request) as waiter:
            left = max(0.0, deadline - asyncio.get_running_loop().time())
            await asyncio.wait({waiter.future, gone}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if waiter.future.done() and not gone.done():
                handover = Handover(waiter)
                self._refuse_while_closing()
                yield handover
            else:
                yield None

    @asynccontextmanager
    async def _line(self, request: R) -> AsyncGenerator["_Waiter[R, L]"]:
        """Stand in line, with the lease already there if one can be had at once."""
        self._refuse_while_closing()
        waiter: _Waiter[R, L] = _Waiter(request)
        self._supersede_former(waiter)
        try:
            notified = self._notifications.count
            lease = await self._open(request)
            if lease is not None:
                waiter.future.set_result(lease)
            self._refuse_while_closing()
            if lease is None and waiter not in self._superseded:
                nobody_waited = not self._lines
                self._lines.setdefault(frozenset(request.sites), {})[waiter] = None
                if nobody_waited or self._notifications.count != notified:
                    self._wake.wake()
            yield waiter
        finally:
            self._leave(waiter)

    def _refuse_while_closing(self) -> None:
        """Let nothing be leased on the way out: what was taken already is put back."""
        if self._notifier.closing:
            raise shutting_down()

    def _supersede_former(self, waiter: "_Waiter[R, L]") -> None:
        """Let a process that waits anew get its lease here: its former stream may be a dead one not yet noticed.

        This comes before the opening, which finds whatever the former stream was given until now. The former stream
        goes on to its end without a lease, so that nobody who opens two of them spins.
        """
        process = self._source.process_of(waiter.request)
        if process is None:
            return
        place = (process, frozenset(waiter.request.sites))
        former = self._latest.get(place)
        if former is not None:
            self._drop(former)
            self._superseded.add(former)
        self._latest[place] = waiter

    def _leave(self, waiter: "_Waiter[R, L]") -> None:
        self._drop(waiter)
        self._superseded.discard(waiter)
        place = (self._source.process_of(waiter.request), frozenset(waiter.request.sites))
        if self._latest.get(place) is waiter:
            del self._latest[place]
        if not waiter.future.done():
            waiter.future.cancel()
        elif not waiter.handed_over and not waiter.future.cancelled() and waiter.future.exception() is None:
            self._send(self._release(waiter.request, waiter.future.result()))

    def _drop(self, waiter: "_Waiter[R, L]") -> None:
        sites = frozenset(waiter.request.sites)
        line = self._lines.get(sites)
        if line is not None:
            line.pop(waiter, None)
            if not line:
                del self._lines[sites]

    async def _open(self, request: R) -> L | None:
        """Begin the wait. If the caller is cancelled meanwhile, what was leased for it is given back."""
        opening = asyncio.ensure_future(self._store.write(self._source.open, request))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            self._send(self._release_when_known(request, opening))
            raise

    async def _look(self) -> None:
        try:
            await self._store.write(lambda tx, _now: tx.notify(self._look_topic))
        except StoreUnavailableError as error:
            _log.warning("nothing can be leased now: %s", error)

    def _serve(self, tx: Transaction, now: Instant) -> Callable[[], None] | None:
        """Take for those first in line, within a transaction; return what hands it over after the commit."""
        taken: list[tuple[_Waiter[R, L], L]] = []
        if not self._notifier.closing:
            for line in self._lines.values():
                for waiter in line:
                    lease = self._source.take(tx, now, waiter.request)
                    if lease is None:
                        break
                    taken.append((waiter, lease))
        return (lambda: self._deliver(taken)) if taken else None

    def _deliver(self, taken: "list[tuple[_Waiter[R, L], L]]") -> None:
        for waiter, lease in taken:
            if waiter.future.done():
                self._send(self._release(waiter.request, lease))
            else:
                waiter.future.set_result(lease)
            self._drop(waiter)

    async def _release_when_known(self, request: R, opening: "asyncio.Future[L | None]") -> None:
        lease = await opening
        if lease is not None:
            await self._release(request, lease)

    async def _release(self, request: R, lease: L) -> None:
        await self._store.write(self._source.release, request, lease)

    def _send(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(self._run_in_background(work))
        self._background_tasks.add(task)
        task.add_done_callback(self._background_tasks.discard)

    async def _run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except (StoreUnavailableError, RefusedError) as error:
            _log.warning("a lease that nobody took could not be given back, it will expire: %s", error)
