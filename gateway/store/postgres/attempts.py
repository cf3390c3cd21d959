"""Brings one group to its commit, on a new connection where the old one is lost, and finds out what became of a COMMIT.

- Lost before the COMMIT was sent: nothing is stored, and the group runs again, for up to AGAIN_SECONDS.
- Lost after it was sent: nobody knows. It is asked, under the writer's lock and in a transaction that writes: the lock
  can only be had when the session that sent the COMMIT is over, and once a later commit is durable, so are all
  before it. Is the group there, it is answered; is it not, it runs again.
- The database does not know the group that it acknowledged last, or has become another one: it may have gone back in
  time, and this process ends.
- Its schema does not allow this program any more: this process ends, and nothing of the group is stored.

Lives in the writer's thread.
"""

import contextlib
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import psycopg

from gateway.store.gathering import Effects, Job
from gateway.store.port import DatabaseUnusableError, PreCommitHook
from gateway.store.postgres.continuity import Continuity, WentBackError
from gateway.store.postgres.failures import Fate, fate_of, unavailable
from gateway.store.postgres.group import run_apart, run_hooks, run_plainly
from gateway.store.postgres.group_log import GroupLog
from gateway.store.postgres.session import Session

AGAIN_SECONDS: Final = 10.0
"""For how long a group is run again on new connections."""

ASK_SECONDS: Final = 30.0
"""For how long it is asked what became of a COMMIT."""

_DEADLOCKS: Final = 5

_log = logging.getLogger(__name__)


class UnknownOutcomeError(Exception):
    """Nobody could be asked what became of a commit."""


@dataclass(slots=True)
class Outcome:
    """What became of a group: its effects, or why it was not committed. `fatal`: the process must end."""

    group: list[Job]
    effects: Effects | None = None
    error: Exception | None = None
    fatal: Exception | None = None
    commit_seconds: float = 0.0


@dataclass(slots=True)
class _Try:
    """A group on its way. `committing` is its id from the moment at which its COMMIT may have been sent."""

    until: float
    group: list[Job] | None = None
    committing: str | None = None
    effects: Effects | None = None
    conflicts: int = 0
    commit_seconds: float = 0.0


class Attempts:
    """Owns the session that writes."""

    def __init__(
        self,
        connect: Callable[[], Session],
        log: GroupLog,
        continuity: Continuity,
        take: Callable[[], list[Job]],
        prepare: Callable[[set[str]], list[PreCommitHook]],
        on_lost: Callable[[], None],
    ) -> None:
        """`take` gives the group once the lock is there; `prepare`, what follows the topics of its operations.

        `on_lost` is called when the session is lost.
        """
        self._continuity = continuity
        self._connect = connect
        self._groups = log
        self._take = take
        self._prepare = prepare
        self._on_lost = on_lost
        self._session: Session | None = None
        self._away_since: float | None = None
        self._told = ""

    def run(self) -> Outcome:
        """Run the next group to its end."""
        now = time.monotonic()
        current = _Try(until=(self._away_since or now) + AGAIN_SECONDS)
        try:
            while not self._try(current):
                time.sleep(random.uniform(0.02, 0.1))  # noqa: S311 - so that gateways do not come back in step
        except (UnknownOutcomeError, WentBackError, DatabaseUnusableError) as error:
            return Outcome(current.group or self._take(), fatal=error)
        except psycopg.Error as error:
            if self._away_since is None:
                self._away_since = now
            return Outcome(current.group or self._take(), error=unavailable(error, "take writes"))
        except Exception as error:  # noqa: BLE001 - a fault of ours must not leave everybody waiting
            return Outcome(current.group or self._take(), fatal=error)
        self._away_since, self._told = None, ""
        return Outcome(current.group or [], current.effects, commit_seconds=current.commit_seconds)

    def close(self) -> None:
        """Close the session."""
        self._drop()

    def _try(self, current: _Try) -> bool:
        """Try once; False if it is to be tried again. Raises psycopg.Error where nothing of the group is stored."""
        current.committing = None
        try:
            session = self._session or self._open_session()
            self._attempt(session, current)
        except psycopg.Error as error:
            fate = fate_of(error)
            if fate is Fate.RECONNECT:
                self._tell(" ".join(str(error).split()))
                if self._session is not None:
                    self._on_lost()
                self._drop()
                if current.committing is not None and self._was_committed(current.committing):
                    self._continuity.acknowledged = current.committing
                    return True
                if time.monotonic() < current.until:
                    return False
            else:
                self._roll_back()
                current.conflicts += fate is Fate.AGAIN
                if fate is Fate.AGAIN and current.conflicts <= _DEADLOCKS:
                    return False
            raise
        except BaseException:
            # A fault of ours: whatever the session is in the middle of ends with it.
            self._drop()
            raise
        return True

    def _attempt(self, session: Session, current: _Try) -> None:
        moment = self._groups.open(session)
        if current.group is None:
            current.group = self._take()
        if not current.group:
            session.command("ROLLBACK")
            session.settle()
            return
        for job in current.group:
            job.result = job.error = None
        effects = Effects(moment.instant)
        if not run_plainly(session, current.group, effects):
            session.forget()
            session.command("ROLLBACK")
            moment = self._groups.open(session)
            effects = Effects(moment.instant)
            run_apart(session, current.group, effects)
        run_hooks(session, self._prepare(effects.notified), effects)
        group_id = self._groups.new_id()
        self._groups.close(session, group_id, moment, effects.notified)
        current.effects, current.committing = effects, group_id
        begun = time.perf_counter()
        self._groups.commit(session)
        current.commit_seconds = time.perf_counter() - begun
        self._continuity.acknowledged = group_id
        self._groups.clock.committed(moment)

    def _was_committed(self, group_id: str) -> bool:
        """Ask until it is known. Raises UnknownOutcomeError, WentBackError."""
        until = time.monotonic() + ASK_SECONDS
        while True:
            try:
                session = self._session or self._open_session()
                found = self._groups.alone(session, lambda within: self._groups.knows(within, group_id))
            except psycopg.Error as error:
                self._drop()
                if time.monotonic() > until:
                    raise UnknownOutcomeError(f"nobody could be asked what became of a commit: {error}") from error
                time.sleep(0.1)
            else:
                _log.warning("a commit without an answer was %s", "made" if found else "not made, and runs again")
                return found

    def _open_session(self) -> Session:
        session = self._connect()
        try:
            self._continuity.require(session)
        except BaseException:
            # A session that was not judged must not be the one that writes next.
            session.close()
            raise
        self._session = session
        return session

    def _roll_back(self) -> None:
        if self._session is None:
            return
        try:
            self._session.forget()
            self._session.command("ROLLBACK")
            self._session.settle()
        except psycopg.Error:
            self._drop()

    def _tell(self, words: str) -> None:
        """Log why the connection is made anew; not at each try until it succeeds."""
        if words != self._told:
            _log.warning("the database's connection is made anew: %s", words)
        self._told = words

    def _drop(self) -> None:
        if self._session is not None:
            with contextlib.suppress(Exception):
                self._session.close()
            self._session = None
