"""Whether a new connection leads to the database that acknowledged the last group, or to an older copy of it.

Another server may have taken the place of the former one at any reconnection: a standby that was promoted, or the same
server with what somebody has restored. Its lack of one group is the proof that it lacks something; but what another
gateway had acknowledged last may be missing where this one's is there, so another timeline tells the same.
"""

import logging

from gateway.domain.models import Standby
from gateway.store.postgres import life
from gateway.store.postgres.group_log import GroupLog
from gateway.store.postgres.session import Session
from gateway.store.postgres.transaction import PostgresTransaction

_log = logging.getLogger(__name__)


class WentBackError(Exception):
    """The database is not, or may not be, where it was when it acknowledged the last group."""


class Continuity:
    """Knows the group that this gateway acknowledged last. `standby`: what a promotion means."""

    def __init__(self, groups: GroupLog, standby: Standby) -> None:
        self._groups = groups
        self._standby = standby
        self.acknowledged: str | None = None

    def require(self, session: Session) -> None:
        """Raise WentBackError if the database may lack anything; psycopg.Error.

        A standby without which no commit was acknowledged lacks nothing: then its timeline is written down as the
        database's own, by a gateway that was there before and finds what it had acknowledged.
        """
        if self.acknowledged is None:
            return
        if not self._groups.knows(session, self.acknowledged):
            self._groups.alone(session, lambda within: life.forget(PostgresTransaction(within)))
            raise WentBackError("the database does not know the group that it acknowledged last")
        change = life.recognise(PostgresTransaction(session))
        if change is life.Change.OTHER_TIMELINE and self._standby is Standby.SYNCHRONOUS:
            self._groups.alone(session, lambda within: life.claim(PostgresTransaction(within)))
            _log.warning("a standby of the database was promoted; it lacks nothing, and the gateway goes on")
        elif change is not None:
            raise WentBackError(f"the database has become {change.value}")
