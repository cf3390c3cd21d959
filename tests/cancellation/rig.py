"""The whole gateway on a virtual loop, reached through its gRPC guard, whose calls can be broken off at any moment."""

import asyncio
import gc
import random
import re
import shutil
import sqlite3
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from google.protobuf.descriptor_pool import Default
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp

from gateway.api.grpc.handlers import GrpcHandlers
from gateway.clock import ServiceClock
from gateway.composition import Gateway
from gateway.dispatch.notifier import Notifier
from gateway.store.sqlite.engine import SqliteStore
from tests.simulation.gateway_machine import SETTINGS, GatewayMachine
from tests.simulation.loop import VirtualLoop
from tests.simulation.store import SimStore
from tests.simulation.template import MEMORY, migrated
from tests.simulation.trace import Trace
from tests.simulation.wire import ServerContext

METADATA = (("authorization", "Bearer secret"),)
THREAD_SECONDS = 0.0005
MOST_SECONDS = 60
_TIME = re.compile(r"20\d\d-\d\d-\d\dT[0-9:.]+Z")
_MOST_COUNTED = 10_000
"""A larger number in a row is a time of the service clock."""


class _Callbacks(deque[asyncio.Handle]):
    """What the loop runs next; acts once before the n-th from now."""

    left = -1
    act: Callable[[], object]

    def popleft(self) -> asyncio.Handle:
        if self.left == 0:
            self.act()
        self.left -= 1
        return super().popleft()


class Loop(VirtualLoop):
    """The simulation's loop for a gateway that lives: what a thread does takes time, and a generator that nobody
    holds any more is closed, as asyncio does.
    """

    _asyncgen_firstiter_hook = asyncio.BaseEventLoop._asyncgen_firstiter_hook  # type: ignore[assignment]
    _asyncgen_finalizer_hook = asyncio.BaseEventLoop._asyncgen_finalizer_hook  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self._callbacks = self._ready = _Callbacks()
        self.before(-1, _nothing)

    def before(self, callbacks: int, act: Callable[[], object]) -> None:
        """Calls `act` before that many callbacks from now, be it in the middle of a turn."""
        self._callbacks.act, self._callbacks.left = act, callbacks

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> "asyncio.Future[Any]":  # type: ignore[override]
        future = self.create_future()

        def work() -> None:  # a thread goes on to its end though nobody waits for it any more
            try:
                result = func(*args)
            except Exception as error:  # noqa: BLE001 -- as an executor does
                future.done() or future.set_exception(error)
            else:
                future.done() or future.set_result(result)

        self.call_later(THREAD_SECONDS, work)
        return future


class SlowContext(ServerContext):
    """Lets a call be broken off before its request has come."""

    async def read(self) -> Any:
        await asyncio.sleep(0)
        return await super().read()


class Unwatched:
    """Nobody judges what the store does here."""

    def committed(self, database: sqlite3.Connection, ran_at: float) -> None: ...
    def served_nobody(self, operation: str) -> None: ...
    def went_on(self) -> None: ...
    def restored(self, path: Path) -> None: ...


class VirtualChannel:
    """A channel of notifications that takes its time."""

    name = "virtual"

    async def send(self, _message: Any) -> str | None:
        await asyncio.sleep(THREAD_SECONDS)
        return None


class WholeGateway(GatewayMachine):
    """The gateway's machine with every service of the contract, on the store's own engine."""

    gateway: Gateway
    handlers: GrpcHandlers
    store: SqliteStore

    def _build(self, store: SimStore, clock: ServiceClock, notifier: Notifier) -> Gateway:
        self.store = SqliteStore(store._database, clock, notifier.publish, lambda _error: None)
        self.store._writer = store._writer  # the real one, but for its thread
        with patch(
            "gateway.people.open_channels", lambda _urls, setting, *_: [VirtualChannel()][: setting == "NOTIFY_URLS"]
        ):
            self.gateway = super()._build(self.store, clock, notifier)
        assert self.process is not None
        self.process.spawn(self.gateway.query_dispatcher.run())
        return self.gateway

    def _handle(self, gateway: Gateway) -> GrpcHandlers:
        self.handlers = super()._handle(gateway)
        return self.handlers


class Rig:
    """A gateway that is up, and its callers."""

    def __init__(self, folder: Path) -> None:
        shutil.copy(migrated(), folder / "gateway.db")
        self.loop = Loop()
        chance = random.Random(1)  # noqa: S311 -- reproducible on purpose
        settings = SETTINGS.model_copy(update={"second_person": True})
        self.machine = WholeGateway(self.loop, folder, chance, Trace(self.loop.time, folder), settings)
        self.machine.watch = Unwatched()
        self.machine.start()
        self.run(asyncio.sleep(1))
        self.token = ""
        self.seen_at = Timestamp()
        self.metadata = METADATA

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Raises TimeoutError if nothing comes of it in MOST_SECONDS of virtual time."""
        return self.loop.run_until_complete(_bounded(work))

    async def call(self, path: str, request: Message, taken: list[Any] | None = None) -> list[Any]:
        """Calls as grpc's server does; `taken` gets what has reached the transport, be the call broken off or not."""
        handler = self.machine.server.handlers[path]
        context = SlowContext(self.metadata, request.SerializeToString())
        taken = [] if taken is None else taken
        read = GetMessageClass(Default().FindMethodByName(path[1:].replace("/", ".")).output_type).FromString
        encoded = handler.response_serializer
        try:
            if handler.stream_unary is not None:
                taken.append(read(encoded(await handler.stream_unary(None, context))))
            else:
                await _send_all(handler.stream_stream(None, context), lambda boxed: taken.append(read(encoded(boxed))))
        finally:
            context.done()
        return taken

    async def break_off(
        self, path: str, request: Message, callbacks: int, *, again: bool = False
    ) -> tuple[bool, list[Any]]:
        """Begins a call and cancels it before that many callbacks of the loop, and where `again` before each one that
        follows; tells whether it had ended before, and what had reached the transport.
        """
        taken: list[Any] = []
        assert self.machine.process is not None
        task = self.machine.process.spawn(self.call(path, request, taken))

        def cancel() -> None:
            if task.cancel() and again:
                self.loop.before(1, cancel)

        self.loop.before(callbacks, cancel)
        await asyncio.wait([task])
        ended = not task.cancelled()
        self.loop.before(-1, _nothing)  # or it would hold the task
        if ended:
            task.result()
        return ended, taken

    def settle(self) -> None:
        """Lets everything happen that is to come of what was done."""
        self.loop.forget_done()
        gc.collect()
        self.run(asyncio.sleep(1))

    def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        """All that is stored, without times, which differ from call to call."""
        with sqlite3.connect(f"file:{self.machine.path}?mode=ro", uri=True) as reading:
            names = [name for (name,) in reading.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            rows = {name: [_timeless(row) for row in reading.execute(f"SELECT * FROM {name}")] for name in names}  # noqa: S608
        reading.close()
        del rows["clock_anchor"]
        rows["backups"] = [("backup",) for _ in self.machine.path.parent.glob("backups/*")]
        return rows

    def held(self) -> dict[str, Any]:
        """Everything of the process that a call may hold while it runs."""
        writer = self.machine.store._writer
        return {
            "tasks": sum(not task.done() for task in self.loop.tasks.values()),
            "timers": sum(not timer._cancelled for timer in self.loop._scheduled),  # type: ignore[attr-defined]
            "generators": len(self.loop._asyncgens),  # type: ignore[attr-defined]
            "calls": self.machine.handlers._running.calls,
            "untaken": self.machine.handlers._outgoing._bytes,
            "unread": [places._taken for places in self.machine.handlers._unread.values() if places._taken],
            "waiters": self.machine.gateway.admission.waiters,
            "subscriptions": sorted(self.machine.gateway.notifier.topics()),
            "places": [
                [
                    len(places)
                    for places in (
                        dispatcher._waiters,
                        dispatcher._latest,
                        dispatcher._superseded,
                        dispatcher._background_tasks,
                    )
                ]
                for dispatcher in (self.machine.gateway.dispatcher, self.machine.gateway.query_dispatcher)
            ],
            "operations": len(writer._pending),
            "transactions": sum(
                connection.in_transaction for connection in (writer._connection, *self.machine.store._reading)
            ),
            "faults": list(self.loop.faults),
        }

    def close(self) -> None:
        self.machine.power_off()
        for connection in self.machine.store._reading:
            connection.close()
        self.machine.store._reader_threads.shutdown()
        self.loop.abandon()


@contextmanager
def gateway() -> Iterator[Rig]:
    """A fresh one, in memory where that is possible."""
    folder = Path(tempfile.mkdtemp(prefix="cancellation-", dir=MEMORY if MEMORY.is_dir() else None))
    rig = Rig(folder)
    try:
        yield rig
    finally:
        rig.close()
        shutil.rmtree(folder)


async def _bounded(work: Coroutine[Any, Any, Any]) -> Any:
    async with asyncio.timeout(MOST_SECONDS):
        return await work


def _nothing() -> None: ...


async def _send_all(messages: AsyncIterator[Any], take: Callable[[Any], None]) -> None:
    """As grpc does: a message is in its hands at once, and sending may wait; nobody closes the iterator."""
    async for message in messages:
        take(message)
        await asyncio.sleep(0)
        await asyncio.sleep(0)


def _timeless(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        _TIME.sub("", value) if isinstance(value, str) else value
        for value in row
        if not (isinstance(value, int) and value > _MOST_COUNTED)
    )
