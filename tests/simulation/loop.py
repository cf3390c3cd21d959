"""An event loop whose time jumps to the next timer, and processes in it that can lose power or be frozen.

Everything that runs belongs to the process in whose context it was started. A process without power never runs again:
not its tasks, not its timers, not a single `finally`. A frozen one runs on, late, when it is thawed.
"""

import asyncio
import heapq
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any, Protocol, runtime_checkable

PROCESS: ContextVar["Process | None"] = ContextVar("process", default=None)
MOST_AWAITS_OF_AN_END = 50
THE_END = "the end of the run"
"""The last point of a process that lives until then."""


class PowerOff(BaseException):
    """Raised where a process without power would act synchronously."""


class DeadlockError(Exception):
    """Nothing will ever happen again."""


@runtime_checkable
class VirtualExecutor(Protocol):
    """Runs work that waits, in virtual time."""

    def run(self, work: Callable[..., Any], *args: Any) -> "asyncio.Future[Any]": ...


class SimFuture(asyncio.Future[Any]):
    """A future whose hash is its number, so that sets of futures have the same order in every run."""

    def __init__(self, *, loop: "VirtualLoop") -> None:
        self.number = loop.next_number()
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self.number


class SimTask(asyncio.Task[Any]):
    """A task that knows its process."""

    def __init__(self, coro: Coroutine[Any, Any, Any], *, loop: "VirtualLoop", **options: Any) -> None:
        self.number = loop.next_number()
        context = options.pop("context", None)
        self.context: Context = copy_context() if context is None else context
        self.process = self.context.get(PROCESS)
        super().__init__(coro, loop=loop, context=self.context, **options)
        loop.tasks[self.number] = self

    def __hash__(self) -> int:
        return self.number


START = 100_000.0
"""What the virtual clock shows when a run begins, in seconds."""


class VirtualLoop(asyncio.BaseEventLoop):
    """One run's loop. `time()` is virtual; nothing waits in real time and there is no thread."""

    def __init__(self, start: float = START) -> None:
        super().__init__()
        self._now = start
        self._count = 0
        self.tasks: dict[int, SimTask] = {}
        self.faults: list[str] = []
        self.at_the_end: list[Callable[[], object]] = []
        """Closes what dead processes had open; at once it would only cost time."""
        self._forgotten = 0
        self._suspects: set[int] = set()
        self.set_task_factory(_make_task)
        self.set_exception_handler(_note_fault)

    def time(self) -> float:
        return self._now

    def next_number(self) -> int:
        self._count += 1
        return self._count

    def create_future(self) -> SimFuture:
        return SimFuture(loop=self)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> "asyncio.Future[Any]":  # type: ignore[override]
        if isinstance(executor, VirtualExecutor):
            return executor.run(func, *args)
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 -- as an executor does
            future.set_exception(error)
        return future

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Any = None) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def _process_events(self, event_list: Any) -> None: ...

    def _write_to_self(self) -> None: ...

    def _asyncgen_firstiter_hook(self, agen: Any) -> None: ...

    def _asyncgen_finalizer_hook(self, agen: Any) -> None: ...

    def _run_once(self) -> None:
        scheduled, ready = self._scheduled, self._ready  # type: ignore[attr-defined]
        while scheduled and scheduled[0]._cancelled:
            heapq.heappop(scheduled)._scheduled = False
        if not ready:
            if self._stopping:  # type: ignore[attr-defined]
                return
            if not scheduled:
                raise DeadlockError("nothing will ever happen again")
            self._now = max(self._now, scheduled[0]._when)
        while scheduled and scheduled[0]._when <= self._now:
            handle = heapq.heappop(scheduled)
            handle._scheduled = False
            ready.append(handle)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            process = handle._context.get(PROCESS)
            if process is not None and not process.runs:
                process.parked.append(handle)
            else:
                handle._run()
        if len(self.tasks) > self._forgotten + 500:
            self.forget_done()

    def forget_done(self) -> None:
        """Lets go of tasks that are done; an error that nobody has asked for by the next time is a fault."""
        for task in list(self.tasks.values()):
            if not task.done():
                continue
            runs = task.process is None or task.process.runs
            unheard = runs and task._log_traceback and not task.cancelled()
            if unheard and task.number not in self._suspects:
                self._suspects.add(task.number)
                continue
            if unheard:
                self.faults.append(f"{task.get_coro()}: {task.exception()!r}")
            elif not task.cancelled():
                task.exception()
            del self.tasks[task.number]
        self._forgotten = len(self.tasks)

    def abandon(self) -> None:
        """After the run: ends every task that is left, dead or alive, without a word. Ports must be dead by now."""
        self.set_exception_handler(lambda _loop, _context: None)
        asyncio._set_running_loop(self)
        try:
            while self.tasks:
                _number, task = self.tasks.popitem()
                if not task.done():
                    self._unwind(task)
                elif not task.cancelled():
                    task.exception()
        finally:
            asyncio._set_running_loop(None)
        self._ready.clear()  # type: ignore[attr-defined]
        self._scheduled.clear()  # type: ignore[attr-defined]
        for close in self.at_the_end:
            close()
        self.close()

    def _unwind(self, task: SimTask) -> None:
        """Frees what the task holds. Python runs every `finally` on the way, so it gets what it may ask for, a running
        loop and a current task, and power fails again at each await: what can be caught would let it live on.
        """
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        asyncio.tasks._enter_task(self, task)
        try:
            for _ in range(MOST_AWAITS_OF_AN_END):
                task.context.run(task.get_coro().throw, PowerOff(THE_END))  # type: ignore[union-attr]
        except BaseException:  # noqa: BLE001, S110 -- whatever it ends with, it has ended
            pass
        finally:
            asyncio.tasks._leave_task(self, task)


def _make_task(loop: Any, coro: Any, **options: Any) -> SimTask:
    return SimTask(coro, loop=loop, **options)


def _note_fault(loop: Any, context: dict[str, Any]) -> None:
    loop.faults.append(f"{context.get('message')}: {context.get('exception')!r}")


class Process:
    """One incarnation of a program. `fuse`: how many more points it passes before its power fails; None: for ever."""

    def __init__(self, loop: VirtualLoop, name: str, fuse: int | None = None) -> None:
        self.loop = loop
        self.name = name
        self.fuse = fuse
        self.alive = True
        self.frozen = False
        self.thawed_at = -1.0
        self.parked: list[asyncio.Handle] = []
        self.last_point = "start"
        self._context = Context()
        self._context.run(PROCESS.set, self)
        self.on_death: list[Callable[[], None]] = []

    @property
    def runs(self) -> bool:
        return self.alive and not self.frozen

    def spawn(self, coro: Coroutine[Any, Any, Any]) -> SimTask:
        """Starts a task of this process."""
        return SimTask(coro, loop=self.loop, context=self._context.copy())

    def call(self, function: Callable[[], None]) -> None:
        """Calls something on this process's account."""
        self._context.copy().run(function)

    def context(self) -> Context:
        """What runs in it belongs to this process."""
        return self._context.copy()

    def power_off(self) -> None:
        """From now on nothing of it runs or has any effect."""
        if self.alive:
            self.alive = False
            for tell in self.on_death:
                tell()

    def freeze(self) -> None:
        self.frozen = True

    def thaw(self) -> None:
        """What was due meanwhile runs now, in the order in which it came due."""
        self.frozen = False
        self.thawed_at = self.loop.time()
        parked, self.parked = self.parked, []
        self.loop._ready.extend(parked)  # type: ignore[attr-defined]

    def burns(self, name: str) -> bool:
        """True if the power fails at this point."""
        self.last_point = name
        if self.fuse is not None:
            self.fuse -= 1
            if self.fuse <= 0:
                self.power_off()
        return not self.alive

    async def point(self, name: str) -> None:
        """A place where the power may fail; then it never returns."""
        if self.burns(name):
            await self.loop.create_future()

    def sync_point(self, name: str) -> None:
        """As `point`, where nothing can be awaited: raises PowerOff."""
        if self.burns(name):
            raise PowerOff(f"{self.name} at {name}")
