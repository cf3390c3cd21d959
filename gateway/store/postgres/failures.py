"""What an error of PostgreSQL means for the group of operations in which it came."""

from enum import Enum
from typing import Final

import psycopg

from gateway.store.port import StoreDamagedError, StoreUnavailableError

RESTORE: Final = "restore the database from a backup (docs/postgresql.md)"


class ConnectionLostError(psycopg.OperationalError):
    """The connection ended, or the database did not answer in time: what was sent may have been done or not."""


class Fate(Enum):
    """What follows an error."""

    OF_THE_OPERATION = "only the operation that caused it fails"
    AGAIN = "the group runs again on the same connection"
    RECONNECT = "the group runs again on a new connection"
    UNAVAILABLE = "the group is undone and told so"


_RECONNECT_CLASSES: Final = frozenset({"08"})
_RECONNECT: Final = frozenset(
    {
        "57P01",  # an administrator ended the session, or the server shuts down
        "57P02",  # another session of the server crashed
        "57P03",  # the server is starting up
        "57P05",  # the session was idle for too long
        "25P03",  # the transaction was idle for too long: this process stood still
        "25006",  # read only: a standby, or the primary that has become one
        "0A000",  # a prepared statement's result has changed: a migration ran
        "26000",  # a prepared statement is not there: somebody else has reset the session
    }
)
_AGAIN: Final = frozenset({"40001", "40P01"})  # serialization failure, deadlock
_UNAVAILABLE_CLASSES: Final = frozenset({"53", "58"})  # no disk, memory or connection left; I/O errors
_UNAVAILABLE: Final = frozenset({"55P03", "57014"})  # lock or statement timeout
_DAMAGED: Final = frozenset({"XX001", "XX002"})
_ENDS_THE_SESSION: Final = frozenset({"FATAL", "PANIC"})


def fate_of(error: BaseException) -> Fate:
    """Return what follows an error. Whatever is not the database's own trouble belongs to the operation.

    What ends the session is judged by that alone: as the answer to a COMMIT it leaves open what became of it. A server
    that finds no room for its next file of the log may have flushed the commit with the one before.
    """
    if not isinstance(error, psycopg.Error):
        return Fate.OF_THE_OPERATION
    if error.diag.severity_nonlocalized in _ENDS_THE_SESSION:
        return Fate.RECONNECT
    code = error.sqlstate
    if code is None:
        return Fate.RECONNECT if isinstance(error, psycopg.OperationalError) else Fate.OF_THE_OPERATION
    if code in _RECONNECT or code[:2] in _RECONNECT_CLASSES:
        return Fate.RECONNECT
    if code in _AGAIN:
        return Fate.AGAIN
    if code in _UNAVAILABLE | _DAMAGED or code[:2] in _UNAVAILABLE_CLASSES:
        return Fate.UNAVAILABLE
    return Fate.OF_THE_OPERATION


def unavailable(error: BaseException, doing: str) -> StoreUnavailableError:
    """Return what to tell those who wanted `doing` ("be read", "take writes")."""
    words = " ".join(str(error).split())
    if isinstance(error, psycopg.Error) and error.sqlstate in _DAMAGED:
        return StoreDamagedError(f"the database is damaged and cannot {doing}: {words}; {RESTORE}")
    return StoreUnavailableError(f"the database cannot {doing} now: {words}")
