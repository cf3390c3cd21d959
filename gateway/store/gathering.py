"""What every engine's writer shares: operations wait together, run in one transaction, and are answered together.

Why: docs/adr/0003-group-commit.md. How the transaction begins, runs and commits is the engine's.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.domain.instant import Instant
from gateway.store.port import PreCommitHook, PrepareHook, StoreUnavailableError, Transaction

LARGEST_GROUP: Final = 128

SILENT_TURNS: Final = 4
"""A group begins after so many turns of the event loop that brought no more; an idle loop turns in microseconds."""

GATHER_SECONDS: Final = 0.005
"""A group begins after this at the latest."""

_log = logging.getLogger(__name__)

OnCommit = Callable[[int, float], None]
"""Is told of each committed group: its operations, and the seconds that the disk took."""


def ignore_commit(_operations: int, _seconds: float) -> None:
    """For whoever counts nothing."""


@dataclass(slots=True)
class Job:
    """One operation, and the future of whoever waits for it. `error` is what the operation raised.

    `long`: it takes more time than the event loop can spare in one go.
    """

    run: Callable[[Transaction, Instant], Any]
    future: asyncio.Future[Any]
    long: bool = False
    result: Any = None
    error: BaseException | None = None

    def answer(self) -> None:
        """Tell whoever waits, unless it has gone."""
        if self.future.cancelled():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


@dataclass(slots=True)
class Effects:
    """What a group does beside its changes. `afterwards` is called once it is committed."""

    now: Instant
    notified: set[str] = field(default_factory=set)
    afterwards: list[Callable[[], None]] = field(default_factory=list)


class GatheringWriter(ABC):
    """Gathers operations in the event loop's thread and tells their callers; the engine runs and commits them.

    `publish` is called with the topics of each committed group.
    """

    def __init__(self, publish: Callable[[set[str]], None]) -> None:
        self._publish = publish
        self._loop = asyncio.get_running_loop()
        self._pending: deque[Job] = deque()
        self._pre_commit_hooks: dict[str, PrepareHook] = {}
        self._patience = SILENT_TURNS
        self._busy = False
        self._stopped = False
        self._told = ""
        self._drained = asyncio.Event()
        self._drained.set()

    def submit(self, run: Callable[[Transaction, Instant], Any], *, long: bool = False) -> asyncio.Future[Any]:
        """Queue an operation. Its future is done after the commit."""
        if self._stopped:
            raise StoreUnavailableError("the database is closed")
        job = Job(run, self._loop.create_future(), long)
        self._pending.append(job)
        self._drained.clear()
        if not self._busy:
            self._busy = True
            # Outside of the call that happens to be the first of the group: the others have nothing to do with it.
            Context().run(self._gather_next)
        return job.future

    def add_pre_commit_hook(self, topic: str, prepare: PrepareHook) -> None:
        """Run what `prepare` returns at the end of every group that notifies `topic`."""
        self._pre_commit_hooks[topic] = prepare

    @abstractmethod
    async def close(self) -> None:
        """Run what is queued, then give back what it writes with."""

    @abstractmethod
    def _begin(self) -> None:
        """Begin a transaction for the next group; `_next` is called when it has been answered."""

    def _gather_next(self) -> None:
        self._loop.call_soon(self._gather, 0, 0, self._loop.time() + GATHER_SECONDS)

    def _gather(self, seen: int, silent_turns: int, until: float) -> None:
        """Begin when the turns of the loop bring no more: under load a larger group shares one flush to disk."""
        waiting = len(self._pending)
        silent_turns = 0 if waiting > seen else silent_turns + 1
        if silent_turns < self._patience and waiting < LARGEST_GROUP and self._loop.time() < until:
            self._loop.call_soon(self._gather, waiting, silent_turns, until)
        else:
            self._begin()

    def _take_group(self) -> list[Job]:
        """Take the next group. Whoever has gone before it began gets nothing done, least of all a lease."""
        group: list[Job] = []
        while self._pending and len(group) < LARGEST_GROUP:
            job = self._pending.popleft()
            if not job.future.cancelled():
                group.append(job)
        return group

    def _prepared(self, notified: set[str]) -> list[PreCommitHook]:
        """Prepare what follows these topics, in the loop's thread."""
        due = {prepare: None for topic, prepare in self._pre_commit_hooks.items() if topic in notified}
        try:
            return [hook for prepare in due if (hook := prepare(frozenset(notified))) is not None]
        except Exception:  # noqa: BLE001 - a fault of those who wait must not stop the writer
            _log.exception("what follows a change could not be prepared")
            return []

    def _tell(self, effects: Effects) -> None:
        """Tell those who wait. A fault of theirs must not stop the writer; a poll stands behind them."""
        self._told = ""
        try:
            for callback in effects.afterwards:
                callback()
            if effects.notified:
                self._publish(effects.notified)
        except Exception:  # noqa: BLE001 - whatever it was, it is logged
            _log.exception("those who wait for a change could not be told")

    def _fail(self, group: Iterable[Job], error: StoreUnavailableError) -> None:
        """Answer a group with what went wrong, which is logged once until a group is committed again."""
        if str(error) != self._told:
            _log.error("store cannot write: %s", error)
        self._told = str(error)
        group = list(group)
        for job in group:
            job.error = error
        self._answer(group)

    def _answer(self, group: list[Job]) -> None:
        for job in group:
            job.answer()

    def _next(self) -> None:
        if self._pending:
            self._gather_next()
        else:
            self._busy = False
            self._drained.set()
