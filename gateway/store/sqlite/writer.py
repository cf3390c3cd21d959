"""Group commit: one thread runs what is waiting in one transaction, commits once, then answers all (docs/adr/0003).

What can go wrong, and what follows:

- An operation raises: its savepoint is rolled back, the others of the group go on.
- SQLite refuses a write (disk full, I/O error, out of memory, locked): the whole group is undone and told so.
- COMMIT itself fails: when the disk is full SQLite has taken the transaction back, and the group is told so; after any
  other error nobody knows what is on disk, so the writer stops for good and the process must end.
"""

import asyncio
import contextlib
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from gateway.domain.moment import Clock, Moment
from gateway.store.port import StoreUnavailableError, Transaction
from gateway.store.sqlite.transaction import SqliteTransaction

LARGEST_GROUP: Final = 128

_log = logging.getLogger(__name__)

_WHOLE_GROUP_FAILS: Final = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_INTERRUPT,
    }
)
_PRIMARY_CODE: Final = 0xFF


@dataclass(slots=True)
class _Job:
    run: Callable[[Transaction, Moment], Any]
    future: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None


class GroupWriter:
    """Owns the writing connection and its thread.

    `publish` is called in the event loop with the hints of each committed group; `on_fatal` once, in the event loop,
    when the writer has stopped for good.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        clock: Clock,
        publish: Callable[[set[str]], None],
        on_fatal: Callable[[BaseException], None],
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._publish = publish
        self._on_fatal = on_fatal
        self._loop = asyncio.get_running_loop()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._stopped = False
        self._thread = threading.Thread(target=self._work, name="store-writer", daemon=True)
        self._thread.start()

    def submit(self, run: Callable[[Transaction, Moment], Any]) -> asyncio.Future[Any]:
        """Queue an operation. Its future is done after the commit."""
        if self._stopped:
            raise StoreUnavailableError("the database is closed")
        future: asyncio.Future[Any] = self._loop.create_future()
        self._jobs.put(_Job(run, future))
        return future

    async def close(self) -> None:
        """Run what is queued, then stop the thread and close the connection."""
        self._stopped = True
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)
        self._connection.close()

    def _work(self) -> None:
        while (first := self._jobs.get()) is not None:
            group = [first]
            last = False
            with contextlib.suppress(queue.Empty):
                while len(group) < LARGEST_GROUP:
                    job = self._jobs.get_nowait()
                    if job is None:
                        last = True
                        break
                    group.append(job)
            # Whoever has gone before the operation began gets nothing done, least of all a lease.
            group = [job for job in group if not job.future.cancelled()]
            if group and not self._run_group(group):
                self._refuse_the_rest()
                return
            if last:
                return

    def _refuse_the_rest(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                job = self._jobs.get_nowait()
                if job is not None:
                    self._answer_all([job], StoreUnavailableError("the database is closed"))

    def _run_group(self, group: list[_Job]) -> bool:
        """Run and answer one group. Return False if the writer must stop."""
        hints: set[str] = set()
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for job in group:
                self._run_one(job, hints)
        except sqlite3.Error as error:
            self._roll_back()
            self._answer_all(group, _unavailable(error))
            return True
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if _code(error) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY):
                self._roll_back()
                self._answer_all(group, _unavailable(error))
                return True
            self._stopped = True
            self._answer_all(group, StoreUnavailableError(f"the commit failed with an unknown outcome: {error}"))
            self._loop.call_soon_threadsafe(self._on_fatal, error)
            return False
        self._loop.call_soon_threadsafe(self._answer, group, hints)
        return True

    def _run_one(self, job: _Job, hints: set[str]) -> None:
        transaction = SqliteTransaction(self._connection)
        self._connection.execute("SAVEPOINT operation")
        try:
            job.result = job.run(transaction, self._clock.now())
        except sqlite3.Error as error:
            if _code(error) in _WHOLE_GROUP_FAILS:
                raise
            self._undo_one(job, error)
        except Exception as error:  # noqa: BLE001 - it is handed to whoever asked
            self._undo_one(job, error)
        else:
            self._connection.execute("RELEASE operation")
            hints |= transaction.hints

    def _undo_one(self, job: _Job, error: Exception) -> None:
        self._connection.execute("ROLLBACK TO operation")
        self._connection.execute("RELEASE operation")
        job.error = error

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _answer_all(self, group: list[_Job], error: StoreUnavailableError) -> None:
        _log.error("store cannot write: %s", error)
        for job in group:
            job.error = error
        self._loop.call_soon_threadsafe(self._answer, group, set())

    def _answer(self, group: list[_Job], hints: set[str]) -> None:
        for job in group:
            if job.future.cancelled():
                continue
            if job.error is not None:
                job.future.set_exception(job.error)
            else:
                job.future.set_result(job.result)
        if hints:
            self._publish(hints)


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE


def _unavailable(error: sqlite3.Error) -> StoreUnavailableError:
    failure = StoreUnavailableError(f"the database cannot take writes now: {error}")
    failure.__cause__ = error
    return failure
