"""What one transaction of the writer holds: operations that wait together, and what runs at their end.

Knows no event loop, so it may run in any thread, one at a time.
"""

import logging
import sqlite3
from collections.abc import Callable, Iterable
from typing import Any

from gateway.domain.instant import Instant
from gateway.store.gathering import Effects, Job
from gateway.store.port import PreCommitHook, Transaction
from gateway.store.sqlite.failures import WHOLE_GROUP_FAILS, primary_code
from gateway.store.sqlite.transaction import SqliteTransaction

_log = logging.getLogger(__name__)


class GroupRunner:
    """Runs operations in the transaction that has begun on `connection`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, group: list[Job], effects: Effects) -> sqlite3.Error | None:
        """Run the operations; an error means that nothing of the group can be written."""
        try:
            if not self._run_plainly(group, effects):
                self.roll_back()
                self._connection.execute("BEGIN IMMEDIATE")
                effects.notified.clear()
                self._run_apart(group, effects)
        except sqlite3.Error as error:
            return error
        return None

    def run_hooks(self, hooks: Iterable[PreCommitHook], effects: Effects) -> sqlite3.Error | None:
        """Run what follows the operations; a hook that raises is undone and logged. An error as from `run`."""
        try:
            for hook in hooks:
                callback, error = self._run_in_savepoint(hook, effects)
                if error is not None:
                    _log.error("what follows a change failed", exc_info=error)
                elif callback is not None:
                    effects.afterwards.append(callback)
        except sqlite3.Error as error:
            return error
        return None

    def roll_back(self) -> None:
        """Undo everything, unless SQLite has done so already."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _run_plainly(self, group: list[Job], effects: Effects) -> bool:
        """Run the group without savepoints, which cost as much as a statement each; False if an operation raised."""
        transaction = SqliteTransaction(self._connection, effects.notified)
        try:
            for job in group:
                job.result = job.run(transaction, effects.now)
        except sqlite3.Error as error:
            if primary_code(error) in WHOLE_GROUP_FAILS:
                raise
            return False
        except Exception:  # noqa: BLE001 - the second run hands it to whoever asked
            return False
        return True

    def _run_apart(self, group: list[Job], effects: Effects) -> None:
        """Run the group with a savepoint around each operation, so that one that raises does not disturb the rest."""
        for job in group:
            job.result, job.error = self._run_in_savepoint(job.run, effects)

    def _run_in_savepoint(
        self, run: Callable[[Transaction, Instant], Any], effects: Effects
    ) -> tuple[Any, Exception | None]:
        notified: set[str] = set()
        self._connection.execute("SAVEPOINT operation")
        try:
            result = run(SqliteTransaction(self._connection, notified), effects.now)
        except Exception as error:
            if isinstance(error, sqlite3.Error) and primary_code(error) in WHOLE_GROUP_FAILS:
                raise
            self._connection.execute("ROLLBACK TO operation")
            self._connection.execute("RELEASE operation")
            return None, error
        self._connection.execute("RELEASE operation")
        effects.notified |= notified
        return result, None
