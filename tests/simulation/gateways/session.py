"""A session with the double of the server: what gateway/store/postgres/session.py offers, on SQLite.

What is sent is done at the next wait, which is a round trip, in order; the first error is raised there and at every
wait after it, until `forget`. At a round trip the connection may turn out to be lost, the process may lose its power,
and a statement of the writer's lock waits in virtual time.
"""

import sqlite3
from collections import deque
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import errors

from gateway.store.port import Value
from gateway.store.postgres.failures import ConnectionLostError
from tests.simulation.gateways.sql import LOCK, NOTIFY, OPEN, statements
from tests.simulation.loop import Process

if TYPE_CHECKING:
    from tests.simulation.gateways.server import SimServer

READ_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
READ_ONLY = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class Deed:
    """An operation of a caller, and how often the database has made it durable."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.made = 0
        self.result: Any = None


class SimReply:
    """What was sent, until its result is there."""

    def __init__(self, name: str, parameters: Mapping[str, Value] | None) -> None:
        self.name = name
        self.parameters = parameters
        self.is_done = False
        self.found: Sequence[Any] = ()
        self.moved = 0
        self.result: Any = None
        """Only its `command_status` is looked at."""


class SimSession:
    """One connection of one process. `process`: whose."""

    def __init__(self, server: "SimServer", process: Process, connection: sqlite3.Connection) -> None:
        self.server = server
        self.process = process
        self.connection = connection
        self.warnings: list[str] = []
        self.trips = 0
        self.ended: psycopg.Error | None = None
        """Why the server has ended it, or that the way to the server is broken."""
        self.in_transaction = False
        self.committing = False
        """Its COMMIT has been sent, and is done or not, whatever becomes of who sent it."""
        self.opened_at = 0.0
        self.deeds: list[Deed] = []
        self.notes: list[str] = []
        self._sent: deque[SimReply] = deque()
        self._failure: psycopg.Error | None = None

    @property
    def is_idle(self) -> bool:
        return not self.in_transaction

    def send(self, name: str, parameters: Mapping[str, Value]) -> SimReply:
        return self._queue(SimReply(name, parameters))

    def command(self, sql: str) -> SimReply:
        return self._queue(SimReply(sql, None))

    def rows(self, reply: SimReply, limit: int | None = None) -> Sequence[Any]:
        self._wait(reply)
        return reply.found if limit is None else reply.found[:limit]

    def count(self, reply: SimReply) -> int:
        self._wait(reply)
        return reply.moved

    def settle(self) -> None:
        self._trip()
        if self._failure is not None:
            raise self._failure

    def forget(self) -> psycopg.Error | None:
        self._trip()
        failure, self._failure = self._failure, None
        return failure

    def close(self) -> None:
        """The connection's end: the server takes back what was not committed."""
        self._sent.clear()
        self.server.closed(self)

    def _queue(self, reply: SimReply) -> SimReply:
        if self.ended is not None:
            raise ConnectionLostError(str(self.ended))
        self._sent.append(reply)
        return reply

    def _wait(self, reply: SimReply) -> None:
        if not reply.is_done and self._failure is None:
            self._trip()
        if self._failure is not None:
            raise self._failure
        if not reply.is_done:
            raise ConnectionLostError("the database gave no result")

    def _trip(self) -> None:
        if not self._sent:
            return
        self.trips += 1
        self.server.on_the_way(self)
        while self._sent and self.ended is None:
            reply = self._sent.popleft()
            if self._failure is None:
                self._do(reply)
        if self.ended is not None:
            self._sent.clear()
            self._failure = self._failure or self.ended
            raise self._failure

    def _do(self, reply: SimReply) -> None:
        try:
            if reply.parameters is None:
                self._command(reply)
            else:
                self._statement(reply, reply.parameters)
            reply.is_done = True
        except psycopg.Error as error:
            self._failure = error
        except sqlite3.IntegrityError as error:
            self._failure = errors.UniqueViolation(str(error))
        except sqlite3.Error as error:
            self._failure = errors.InternalError_(f"{reply.name}: {error}")

    def _statement(self, reply: SimReply, parameters: Mapping[str, Value]) -> None:
        if reply.name == LOCK:
            self.server.take_lock(self)
            return
        if reply.name == OPEN:
            self.opened_at = self.server.loop.time()
        if reply.name == NOTIFY:
            self.notes.append(str(parameters["payload"]))
            return
        cursor = self.connection.execute(statements()[reply.name], parameters)
        if cursor.description is None:
            self.server.need_room(self)
            reply.moved = cursor.rowcount
        else:
            reply.found = cursor.fetchall()
            reply.moved = len(reply.found)

    def _command(self, reply: SimReply) -> None:
        if reply.name == READ_WRITE:
            self.in_transaction = True
        elif reply.name == READ_ONLY:
            self.in_transaction = True
            self.connection.execute("BEGIN")
        elif reply.name == "ROLLBACK":
            self.server.take_back(self)
        elif reply.name == "COMMIT":
            self.server.commit(self)
            reply.result = SimpleNamespace(command_status=b"COMMIT")
        else:
            self.connection.execute(reply.name)
