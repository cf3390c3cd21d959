"""Runs one group of operations in the transaction that is open on a session. Knows no event loop."""

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from gateway.domain.instant import Instant
from gateway.store.gathering import Effects, Job
from gateway.store.port import PreCommitHook, Transaction
from gateway.store.postgres.failures import Fate, fate_of
from gateway.store.postgres.session import Session
from gateway.store.postgres.transaction import PostgresTransaction

_log = logging.getLogger(__name__)


def run_plainly(session: Session, group: list[Job], effects: Effects) -> bool:
    """Run the group without savepoints; False if an operation raised. Raises psycopg.Error if none can go on."""
    transaction = PostgresTransaction(session, effects.notified)
    try:
        for job in _still_wanted(group):
            job.result = job.run(transaction, effects.now)
        transaction.check()
    except Exception as error:
        if fate_of(error) is not Fate.OF_THE_OPERATION:
            raise
        return False
    return True


def run_apart(session: Session, group: list[Job], effects: Effects) -> None:
    """Run the group with a savepoint around each operation, so that one that raises does not disturb the rest."""
    for job in _still_wanted(group):
        job.result, job.error = run_in_savepoint(session, job.run, effects)


def _still_wanted(group: Iterable[Job]) -> Iterator[Job]:
    """Yield one after the other, without those who have gone by then: a group may take its time, and run again."""
    return (job for job in group if not job.future.cancelled())


def run_hooks(session: Session, hooks: Iterable[PreCommitHook], effects: Effects) -> None:
    """Run what follows the operations; a hook that raises is undone and logged."""
    for hook in hooks:
        callback, error = run_in_savepoint(session, hook, effects)
        if error is not None:
            _log.error("what follows a change failed", exc_info=error)
        elif callback is not None:
            effects.afterwards.append(callback)


def run_in_savepoint(
    session: Session, run: Callable[[Transaction, Instant], Any], effects: Effects
) -> tuple[Any, Exception | None]:
    """Return the result of an operation, or what it raised when it has been undone."""
    notified: set[str] = set()
    transaction = PostgresTransaction(session, notified)
    session.command("SAVEPOINT operation")
    try:
        result = run(transaction, effects.now)
        transaction.check()
    except Exception as error:
        # What went wrong first may have been a statement that nobody waited for.
        failure = session.forget() or error
        if fate_of(failure) is not Fate.OF_THE_OPERATION:
            raise failure from error
        session.command("ROLLBACK TO operation")
        session.command("RELEASE operation")
        return None, failure
    session.command("RELEASE operation")
    effects.notified |= notified
    return result, None
