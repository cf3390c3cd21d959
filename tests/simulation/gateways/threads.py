"""Threads under the virtual clock: what waits in a thread of the program waits here in virtual time.

Each is a greenlet, so one runs at a time and a run can be repeated. It belongs to a process as a task does: one of a
process without power never runs again, one of a frozen process goes on when it is thawed.
"""

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any

from greenlet import getcurrent, greenlet

from tests.simulation.loop import Process, VirtualLoop


class VirtualThread(greenlet):
    """Runs one piece of work. `process`: whose."""

    process: Process


class Wait:
    """A thread's wait for something that is brought about elsewhere."""

    def __init__(self) -> None:
        thread = getcurrent()
        if not isinstance(thread, VirtualThread):
            raise TypeError("only a virtual thread may wait")
        self._thread = thread
        self._value: Any = None
        self.is_over = False

    def end(self, value: Any = None) -> None:
        """Lets the thread go on with a value, as soon as its process runs."""
        if not self.is_over:
            self.is_over, self._value = True, value
            process = self._thread.process
            process.loop.call_soon(self._thread.switch, context=process.context())

    def value(self) -> Any:
        """Waits."""
        hub = self._thread.parent
        assert hub is not None
        hub.switch()
        return self._value


class Threads:
    """An executor of one process: every piece of work gets a thread of its own."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._running: set[VirtualThread] = set()
        process.loop.at_the_end.append(self._end)

    def submit(self, work: Callable[[], None]) -> None:
        """Starts the work; nobody waits for it."""

        def run() -> None:
            work()
            self._running.discard(thread)

        thread = VirtualThread(run)
        thread.process, thread.gr_context = self._process, self._process.context()
        self._running.add(thread)
        self._process.loop.call_soon(thread.switch, context=self._process.context())

    def run(self, work: Callable[..., Any], *args: Any) -> "asyncio.Future[Any]":
        """Starts the work and returns the future of its result."""
        future: asyncio.Future[Any] = self._process.loop.create_future()

        def do() -> None:
            try:
                result = work(*args)
            except Exception as error:  # noqa: BLE001 -- as an executor does
                if not future.done():
                    future.set_exception(error)
            else:
                if not future.done():
                    future.set_result(result)

        self.submit(do)
        return future

    def _end(self) -> None:
        """After the run: frees what the threads of a process hold that never ended."""
        for thread in [*self._running]:
            thread.throw()


class VirtualTime:
    """In the place of the module `time`: seconds of the virtual clock."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def monotonic(self) -> float:
        return self._loop.time()

    perf_counter = monotonic

    def sleep(self, seconds: float) -> None:
        """Of a virtual thread."""
        wait = Wait()
        self._loop.call_later(seconds, wait.end, context=Context())
        wait.value()
