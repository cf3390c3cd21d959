"""Gives leases to the workers that wait, first come first served; where the leases come from is a LeaseSource's.

The dispatcher asks the database once on behalf of all who wait, so thousands may wait at the price of one: within the
very transaction that brings something to take, for those whose targets it names, and every second in case a hint was
lost. Whoever has gone away gets nothing: what was taken for a waiter, but not handed to its transport, is released.

One class, and so longer than other modules: a waiter's life has one owner.
"""

import asyncio
import logging
from collections.abc import (
    AsyncGenerator,
    Callable,
    Collection,
    Coroutine,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

from common.target import Target
from gateway.dispatch.lease_source import LeaseSource, Request
from gateway.dispatch.lines import Lines
from gateway.dispatch.notifier import Notifier
from gateway.dispatch.stream import HEARTBEAT, HEARTBEAT_SECONDS, POLL_SECONDS, Heartbeat, shutting_down
from gateway.dispatch.streams import Elsewhere, PlaceOfWaiters, Streams
from gateway.dispatch.waiter import Handover, Waiter
from gateway.domain.hints import hint, hinted
from gateway.domain.instant import Instant
from gateway.domain.refusals import Refusal, RefusedError
from gateway.store.port import LOCAL_TOPIC, PreCommitHook, Store, StoreUnavailableError, Transaction

_log = logging.getLogger(__name__)


R = TypeVar("R", bound=Request)
L = TypeVar("L")


def wake_topic(topic: str) -> str:
    """Return the topic by which a dispatcher looks at once: something was brought at another gateway."""
    return f"dispatcher: {topic}"


class Dispatcher(Generic[R, L]):
    """Gives each waiting worker at most one lease. `run` must be running while anybody waits."""

    def __init__(
        self,
        store: Store,
        notifier: Notifier,
        source: LeaseSource[R, L],
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
        streams: Streams | None = None,
    ) -> None:
        """`streams` None: a process comes to no other gateway."""
        self._places = PlaceOfWaiters(streams)
        self._store = store
        self._notifier = notifier
        self._source = source
        self._heartbeat_seconds = heartbeat_seconds
        self._notifications = notifier.subscribe(source.topic)
        self._wake = notifier.subscribe(wake_topic(source.topic))
        self._look_topic = f"{LOCAL_TOPIC}{source.topic}"
        self._waiters: Lines[R, L] = Lines()
        self._due: set[Target] = set()
        self._latest: dict[tuple[Hashable, frozenset[Target]], Waiter[R, L]] = {}
        self._superseded: set[Waiter[R, L]] = set()
        self._background_tasks: set[asyncio.Task[None]] = set()
        store.add_pre_commit_hook(source.topic, self._snapshot)
        store.add_pre_commit_hook(self._look_topic, self._snapshot)

    async def run(self) -> None:
        """Look every second whether something can be taken, until the notifier closes: a notification may be lost."""
        clock = asyncio.get_running_loop().time
        next_poll = clock()
        with self._notifications, self._wake:
            while not self._notifier.closing:
                due, self._due = self._due, set()
                # Who wakes this without a word of why, as another gateway does, may mean any target.
                targets = due if due and clock() < next_poll else None
                if self._waiters:
                    await self._look(targets)
                    next_poll = clock() + POLL_SECONDS if targets is None else next_poll
                await self._wake.wait(max(0.0, next_poll - clock()) if self._waiters else None)
            for waiter in (*self._waiters, *self._superseded):
                if not waiter.future.done():
                    waiter.future.set_exception(shutting_down())

    def waiting(self) -> list[R]:
        """Return the requests of those who wait."""
        return [waiter.request for waiter in self._waiters]

    async def drain(self) -> None:
        """Wait until every lease that nobody took has been released."""
        # Not gather: from Python 3.12 on it returns at once if all are done, before they could be taken off the list.
        while self._background_tasks:
            await asyncio.wait(self._background_tasks)

    async def stream(self, request: R, wait: float) -> AsyncGenerator[Heartbeat | L]:
        """Yield heartbeats for up to `wait` seconds, and the lease last if there is one.

        Close the iterator when its consumer has gone (`contextlib.aclosing`). Raises RefusedError SHUTTING_DOWN when
        the gateway stops, or why the worker may not wait, StoreUnavailableError when the database cannot write.
        """
        clock = asyncio.get_running_loop().time
        deadline = clock() + wait
        yield HEARTBEAT
        async with self._enter(request) as waiter:
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

        The lease is released on leaving, unless it was handed over. Raises as `stream` does.
        """
        deadline = asyncio.get_running_loop().time() + wait
        async with self._enter(request) as waiter:
            left = max(0.0, deadline - asyncio.get_running_loop().time())
            await asyncio.wait({waiter.future, gone}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if waiter.future.done() and not gone.done():
                handover = Handover(waiter)
                self._refuse_while_closing()
                yield handover
            else:
                yield None

    @asynccontextmanager
    async def _enter(self, request: R) -> AsyncGenerator[Waiter[R, L]]:
        """Wait among the others, with the lease already there if one can be had at once."""
        self._refuse_while_closing()
        waiter: Waiter[R, L] = Waiter(request)
        self._supersede_former(waiter)
        try:
            notified = self._notifications.count
            lease = None if waiter in self._superseded else await self._open(waiter)
            if lease is not None:
                waiter.future.set_result(lease)
            self._refuse_while_closing()
            if lease is None and waiter not in self._superseded:
                nobody_waited = not self._waiters
                self._waiters.join(waiter)
                if nobody_waited or self._notifications.count != notified:
                    self._look_soon(request.targets)
            yield waiter
        finally:
            self._leave(waiter)

    def _refuse_while_closing(self) -> None:
        """Let nothing be leased on the way out: what was taken already is released."""
        if self._notifier.closing:
            raise shutting_down()

    def _supersede_former(self, waiter: Waiter[R, L]) -> None:
        """Let a worker that waits anew get its lease here: its former stream may be a dead one not yet noticed.

        This comes before the opening, which finds whatever the former stream was given until now. The former stream
        goes on to its end without a lease, so that nobody who opens two of them spins. So does one that was opened
        before that former one, and is only read now.
        """
        name = self._source.waiter_of(waiter.request)
        if name is None:
            return
        place = (name, frozenset(waiter.request.targets))
        former = self._latest.get(place)
        if former is not None and self._source.turn_of(waiter.request).is_before(self._source.turn_of(former.request)):
            self._superseded.add(waiter)
            return
        if former is not None:
            self._drop(former)
            self._superseded.add(former)
        self._latest[place] = waiter

    def _leave(self, waiter: Waiter[R, L]) -> None:
        self._drop(waiter)
        self._superseded.discard(waiter)
        place = (self._source.waiter_of(waiter.request), frozenset(waiter.request.targets))
        if self._latest.get(place) is waiter:
            del self._latest[place]
        if not waiter.future.done():
            waiter.future.cancel()
        elif not waiter.handed_over and not waiter.future.cancelled() and waiter.future.exception() is None:
            self._send(self._release(waiter.request, waiter.future.result()))

    def _drop(self, waiter: Waiter[R, L]) -> None:
        self._waiters.leave(waiter)

    async def _open(self, waiter: Waiter[R, L]) -> L | None:
        """Begin the wait, or raise why not. If the caller is cancelled meanwhile, what was leased is released."""
        request, name = waiter.request, self._source.waiter_of(waiter.request)
        turn = self._source.turn_of(request)
        waiter.stream_id = self._places.new_id()

        def open_stream(tx: Transaction, now: Instant) -> L | Refusal | Elsewhere | None:
            if not self._places.opened(tx, now, name, waiter, turn):
                return Elsewhere()
            return self._source.open(tx, now, request)

        opening = asyncio.ensure_future(self._store.write(open_stream))
        try:
            opened = await asyncio.shield(opening)
        except asyncio.CancelledError:
            self._send(self._release_when_known(request, opening))
            raise
        if isinstance(opened, Refusal):
            raise RefusedError(opened)
        if isinstance(opened, Elsewhere):
            self._superseded.add(waiter)
            return None
        return opened

    def _look_soon(self, targets: Iterable[Target]) -> None:
        """Look at what these targets have, as nobody did for those who have joined meanwhile."""
        self._due.update(targets)
        self._wake.wake()

    async def _look(self, targets: Collection[Target] | None) -> None:
        """Look whether anybody who waits for one of the targets (None: for any) can be given something."""
        topics = [hint(self._look_topic, None)] if targets is None else [hint(self._look_topic, one) for one in targets]

        def notify(tx: Transaction, _now: Instant) -> None:
            for topic in (self._look_topic, *topics):
                tx.notify(topic)

        try:
            await self._store.write(notify)
        except StoreUnavailableError as error:
            _log.warning("nothing can be leased now: %s", error)

    def _snapshot(self, notified: Collection[str]) -> PreCommitHook | None:
        """Return a hook that takes for those who wait now and are concerned; it may run in any thread."""
        if self._notifier.closing or not self._waiters:
            return None
        lines, joined = self._waiters.snapshot(self._concerned(notified)), self._waiters.joined

        def serve(tx: Transaction, now: Instant) -> Callable[[], None]:
            taken = [*self._take_for(lines, tx, now)] if lines else []
            return lambda: self._served(taken, joined)

        return serve

    def _concerned(self, notified: Collection[str]) -> frozenset[Target] | None:
        """Return the targets that may have something to take; None: any may."""
        told, looked_at = hinted(self._source.topic, notified), hinted(self._look_topic, notified)
        return None if told is None or looked_at is None else told | looked_at

    def _take_for(
        self, lines: Mapping[Target, Sequence[Waiter[R, L]]], tx: Transaction, now: Instant
    ) -> Iterator[tuple[Waiter[R, L], L]]:
        """Take for one after the other in each line until there is nothing to take for it."""
        served: set[Waiter[R, L]] = set()
        for target in self._source.ready(tx, now, lines.keys()):
            in_vain: set[Hashable] = set()
            for waiter in lines[target]:
                kind = self._source.kind_of(waiter.request)
                if (
                    waiter in served
                    or kind in in_vain
                    or self._places.is_elsewhere(tx, self._source.waiter_of(waiter.request), waiter)
                ):
                    continue
                lease = self._source.take(tx, now, waiter.request)
                if lease is None and kind is None:
                    break
                if lease is None:
                    in_vain.add(kind)
                    continue
                served.add(waiter)
                yield waiter, lease

    def _served(self, taken: list[tuple[Waiter[R, L], L]], joined: int) -> None:
        """Deliver what was taken; look once more for those who have joined since the snapshot."""
        if taken:
            self._deliver(taken)
        if self._waiters.joined != joined:
            self._look_soon(self._waiters.joined_since(joined))

    def _deliver(self, taken: list[tuple[Waiter[R, L], L]]) -> None:
        for waiter, lease in taken:
            if waiter.future.done():
                self._send(self._release(waiter.request, lease))
            else:
                waiter.future.set_result(lease)
            self._drop(waiter)

    async def _release_when_known(self, request: R, opening: "asyncio.Future[L | Refusal | Elsewhere | None]") -> None:
        lease = await opening
        if lease is not None and not isinstance(lease, Refusal | Elsewhere):
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
