"""Group commit: what is waiting runs in one transaction, which commits once, then all are answered.

Why: docs/adr/0003-group-commit.md.

Operations run in the event loop's own thread (`_execute`), though nothing in them asks for it: they are short, and a
thread of their own would spend more on passing the interpreter lock to and fro than on SQLite. A group with a long one
(`write_many`) runs in a thread all the same, so that the loop gets its turns. What waits for the disk,
the COMMIT and a BEGIN that finds the file locked, runs in a thread, and the next group gathers meanwhile. Where callers
come one at a time nothing gathers: then a COMMIT on a disk that has proved quick runs in the loop's thread as well.

What can go wrong, and what follows:

- An operation raises: the group is taken back and run again with a savepoint around each; only that one fails.
- SQLite refuses a write (disk full, I/O error, out of memory, locked): the whole group is undone and told so.
- COMMIT itself fails: when there is no room SQLite has taken the transaction back, and the group is told so; after any
  other error nobody knows what is on disk, so the writer stops for good and the process must end.
"""

import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from gateway.domain.instant import Clock
from gateway.store.gathering import SILENT_TURNS, Effects, GatheringWriter, Job, OnCommit, ignore_commit
from gateway.store.port import StoreUnavailableError
from gateway.store.sqlite.failures import DatabaseGoneError, is_undone, primary_code, unavailable
from gateway.store.sqlite.group import GroupRunner

BUSY_SECONDS: Final = 2.0
"""How long a group waits for another program (a backup tool, a person with a shell) that has locked the file."""

QUICK_SECONDS: Final = 0.002
"""A commit up to this is quick: about what the way to a thread and back costs on a busy machine."""

QUICK_COMMITS: Final = 100
"""How many quick commits in a row prove a disk; one slow one, and the proof begins anew."""


class GroupWriter(GatheringWriter):
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
        super().__init__(publish)
        self._connection = connection
        self._clock = clock
        self._on_fatal = on_fatal
        self._on_commit = on_commit
        self._still_there = still_there
        self._commit_seconds = 0.0
        self._quick_in_a_row = 0
        self._was_alone = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store-writer")
        self._runner = GroupRunner(connection)

    async def close(self) -> None:
        """Run what is queued, then close the connection."""
        self._stopped = True
        await self._drained.wait()
        self._thread.shutdown()
        self._connection.close()

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
        group = self._take_group()
        if error is not None:
            self._refuse(group, error)
            return
        # One reading for the group: its operations become true together, with the commit.
        effects = Effects(self._clock.now())
        execute = self._in_thread if any(job.long for job in group) else self._execute
        execute(
            lambda: self._runner.run(group, effects),
            lambda failure: self._refuse(group, failure) if failure else self._ran(group, effects),
        )

    def _ran(self, group: list[Job], effects: Effects) -> None:
        """Prepare the hooks here, in the loop's thread, and run them in the transaction."""
        hooks = self._prepared(effects.notified)
        self._execute(
            lambda: self._runner.run_hooks(hooks, effects),
            lambda failure: self._refuse(group, failure) if failure else self._end(group, effects),
        )

    def _end(self, group: list[Job], effects: Effects) -> None:
        if self._needs_no_thread(group):
            self._committed(group, effects, self._commit())
        else:
            self._in_thread(self._commit, lambda failure: self._committed(group, effects, failure))

    def _needs_no_thread(self, group: list[Job]) -> bool:
        alone = len(group) == 1 and not group[0].long and not self._pending
        # Twice: among many callers now and then one is left over, and the others gather behind it.
        lone_caller, self._was_alone = alone and self._was_alone, alone
        needs_no_thread = lone_caller and self._quick_in_a_row >= QUICK_COMMITS
        # Nor need a lone caller wait for others: those who come after it meet in the next group.
        self._patience = 1 if needs_no_thread else SILENT_TURNS
        return needs_no_thread

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
        self._quick_in_a_row = self._quick_in_a_row + 1 if self._commit_seconds <= QUICK_SECONDS else 0
        if not self._still_there():
            return DatabaseGoneError("the database file was deleted or replaced while the gateway ran")
        return None
