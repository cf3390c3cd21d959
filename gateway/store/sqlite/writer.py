"""Group commit: what is waiting runs in one transaction, which commits once, then all are answered.

Why: docs/adr/0003-group-commit.md.

Operations run in the event loop's own thread (`_execute`), though nothing in them asks for it: they are short, and a
thread of their own would spend more on passing the interpreter lock to and fro than on SQLite. What waits for the disk,
the COMMIT and a BEGIN that finds the file locked, runs in a thread, and the next group gathers meanwhile.

What can go wrong, and what follows:

- An operation raises: the group is taken back and run again with a savepoint around each; only that one fails.
- SQLite refuses a write (disk full, I/O error, out of memory, locked): the whole group is undone and told so.
- COMMIT itself fails: when there is no room SQLite has taken the transaction back, and the group is told so; after any
  other error nobody knows what is on disk, so the writer stops for good and the process must end.
"""

import asyncio
import logging
import sqlite3
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from typing import Any, Final

from gateway.domain.instant import Clock, Instant
from gateway.store.port import PreCommitHook, PrepareHook, StoreUnavailableError, Transaction
from gateway.store.sqlite.failures import DatabaseGoneError, is_undone, primary_code, unavailable
from gateway.store.sqlite.group import Effects, GroupRunner, Job

LARGEST_GROUP: Final = 128

SILENT_TURNS: Final = 4
"""A group begins after so many turns of the event loop that brought no more; an idle loop turns in microseconds."""

GATHER_SECONDS: Final = 0.005
"""A group begins after this at the latest."""

BUSY_SECONDS: Final = 2.0
"""How long a group waits for another program (a backup tool, a person with a shell) that has locked the file."""

_log = logging.getLogger(__name__)


OnCommit = Callable[[int, float], None]
"""Is told of each committed group: its operations, and the seconds that the disk took."""


def ignore_commit(_operations: int, _seconds: float) -> None:
    """For whoever counts nothing."""


class GroupWriter:
    """Owns the writing connection.

    `publish` is called with the topics of each committed group and `on_commit` with its size and time; `on_fatal` once,
    when the writer has stopped for good. `still_there` tells after each commit whether the file still is the one that
    its path leads to: what went into another one is not acknowledged.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        clock: Clock,
        publish: Callable[[set[str]], None],
        on_fatal: Callable[[BaseException], None],
        on_commit: OnCommit = ignore_commit,
        still_there: Callable[[], bool] = lambda: True,
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._publish = publish
        self._on_fatal = on_fatal
        self._on_commit = on_commit
        self._still_there = still_there
        self._commit_seconds = 0.0
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store-writer")
        self._pending: deque[Job] = deque()
        self._runner = GroupRunner(connection)
        self._pre_commit_hooks: dict[str, PrepareHook] = {}
        self._busy = False
        self._stopped = False
        self._drained = asyncio.Event()
        self._drained.set()

    def submit(self, run: Callable[[Transaction, Instant], Any]) -> asyncio.Future[Any]:
        """Queue an operation. Its future is done after the commit."""
        if self._stopped:
            raise StoreUnavailableError("the database is closed")
        job = Job(run, self._loop.create_future())
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

    async def close(self) -> None:
        """Run what is queued, then close the connection."""
        self._stopped = True
        await self._drained.wait()
        self._thread.shutdown()
        self._connection.close()

    def _gather_next(self) -> None:
        self._loop.call_soon(self._gather, 0, 0, self._loop.time() + GATHER_SECONDS)

    def _gather(self, seen: int, silent_turns: int, until: float) -> None:
        """Begin when the turns of the loop bring no more: under load a larger group shares one flush to disk."""
        waiting = len(self._pending)
        silent_turns = 0 if waiting > seen else silent_turns + 1
        if silent_turns < SILENT_TURNS and waiting < LARGEST_GROUP and self._loop.time() < until:
            self._loop.call_soon(self._gather, waiting, silent_turns, until)
        else:
            self._begin()

    def _begin(self) -> None:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            if primary_code(error) == sqlite3.SQLITE_BUSY:
                self._in_thread(self._wait_for_lock, self._begun)
            else:
                self._begun(error)
        else:
            self._begun(None)

    def _begun(self, error: sqlite3.Error | None) -> None:
        """Run the next group in the transaction that has begun."""
        # Whoever has gone before the operation began gets nothing done, least of all a lease.
        group: list[Job] = []
        while self._pending and len(group) < LARGEST_GROUP:
            job = self._pending.popleft()
            if not job.future.cancelled():
                group.append(job)
        if error is not None:
            self._refuse(group, error)
            return
        # One reading for the group: its operations become true together, with the commit.
        effects = Effects(self._clock.now())
        self._execute(
            lambda: self._runner.run(group, effects),
            lambda failure: self._refuse(group, failure) if failure else self._ran(group, effects),
        )

    def _ran(self, group: list[Job], effects: Effects) -> None:
        """Prepare the hooks here, in the loop's thread, and run them in the transaction."""
        hooks = self._prepared(effects)
        self._execute(
            lambda: self._runner.run_hooks(hooks, effects),
            lambda failure: self._refuse(group, failure) if failure else self._commit_in_thread(group, effects),
        )

    def _prepared(self, effects: Effects) -> list[PreCommitHook]:
        due = {prepare: None for topic, prepare in self._pre_commit_hooks.items() if topic in effects.notified}
        try:
            return [hook for prepare in due if (hook := prepare()) is not None]
        except Exception:  # noqa: BLE001 - a fault of those who wait must not stop the writer
            _log.exception("what follows a change could not be prepared")
            return []

    def _commit_in_thread(self, group: list[Job], effects: Effects) -> None:
        self._in_thread(self._commit, lambda failure: self._committed(group, effects, failure))

    def _refuse(self, group: list[Job], error: sqlite3.Error) -> None:
        self._runner.roll_back()
        self._fail(group, unavailable(error, "take writes"))
        self._next()

    def _committed(self, group: list[Job], effects: Effects, error: sqlite3.Error | None) -> None:
        if error is None:
            self._answer(group)
            self._tell(effects)
            self._on_commit(len(group), self._commit_seconds)
            self._next()
        elif is_undone(error):
            self._refuse(group, error)
        else:
            self._stopped = True
            unknown = StoreUnavailableError(f"a commit failed with an unknown outcome: {error}")
            self._fail([*group, *self._pending], unknown)
            self._pending.clear()
            self._on_fatal(error)
            self._next()

    def _tell(self, effects: Effects) -> None:
        """Tell those who wait. A fault of theirs must not stop the writer; a poll stands behind them."""
        try:
            for callback in effects.afterwards:
                callback()
            if effects.notified:
                self._publish(effects.notified)
        except Exception:  # noqa: BLE001 - whatever it was, it is logged
            _log.exception("those who wait for a change could not be told")

    def _next(self) -> None:
        if self._pending:
            self._gather_next()
        else:
            self._busy = False
            self._drained.set()

    def _execute(self, work: Callable[[], sqlite3.Error | None], then: Callable[[sqlite3.Error | None], None]) -> None:
        """Run operations or hooks, and go on with `then` in the loop's thread."""
        then(work())

    def _in_thread(
        self, work: Callable[[], sqlite3.Error | None], then: Callable[[sqlite3.Error | None], None]
    ) -> None:
        self._thread.submit(lambda: self._loop.call_soon_threadsafe(then, work()))

    def _wait_for_lock(self) -> sqlite3.Error | None:
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            except sqlite3.Error as error:
                if primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    return error
                time.sleep(0.02)
            else:
                return None

    def _commit(self) -> sqlite3.Error | None:
        begun = time.perf_counter()
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            return error
        self._commit_seconds = time.perf_counter() - begun
        if not self._still_there():
            return DatabaseGoneError("the database file was deleted or replaced while the gateway ran")
        return None

    def _fail(self, group: list[Job], error: StoreUnavailableError) -> None:
        _log.error("store cannot write: %s", error)
        for job in group:
            job.error = error
        self._answer(group)

    def _answer(self, group: list[Job]) -> None:
        for job in group:
            job.answer()
