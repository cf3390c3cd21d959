"""A connection in libpq's pipeline mode: named statements, prepared once, sent without waiting where nobody looks.

A thin layer on `psycopg.pq`. It knows what the statements use: text, integers and NULL. Measured against psycopg's
cursors it takes a third of the processor time and half the round trips (docs/adr/0019-one-writers-lock.md).

Every wait ends with a Sync, never with a bare Flush: only then does the server count the session as idle in its
transaction, and end it, with its lock, when this process stands still.
"""

import select
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import psycopg
from psycopg import pq
from psycopg.errors import error_from_result

from gateway.store.port import Value
from gateway.store.postgres.failures import ConnectionLostError
from gateway.store.postgres.statements import Statement

ANSWER_SECONDS: Final = 8.0
"""How long an answer is waited for. `statement_timeout` does not end a COMMIT that waits for a standby; this does."""

_INTEGERS: Final = frozenset({20, 21, 23})


class PostgresRow:
    """A row, read by column name."""

    __slots__ = ("_places", "_values")

    def __init__(self, values: Sequence[Value], places: Mapping[str, int]) -> None:
        self._values = values
        self._places = places

    def __getitem__(self, column: str, /) -> Any:
        """Return one column."""
        return self._values[self._places[column]]

    def keys(self) -> list[str]:
        """Return the names of the columns."""
        return list(self._places)


class Reply:
    """What was sent, until its result is there."""

    __slots__ = ("name", "result")

    def __init__(self, name: str) -> None:
        self.name = name
        self.result: pq.abc.PGresult | None = None


class Session:
    """Owns a connection. Not for two threads at a time.

    The first error of a transaction is raised by the wait that finds it and by each one after it, until `forget`.
    """

    def __init__(self, connection: psycopg.Connection, statements: Mapping[str, Statement]) -> None:
        """Prepare every statement: a preparation inside a group that fails would be believed to be there."""
        self._connection = connection
        self._pg = connection.pgconn
        self._statements = statements
        self._waiting: deque[Reply | None] = deque()  # None stands for a Sync
        self._shapes: dict[str, tuple[dict[str, int], list[bool]]] = {}
        self._failure: psycopg.Error | None = None
        self.warnings: list[str] = []
        """The codes of the warnings that came."""
        self.trips = 0
        """How often an answer was waited for."""
        self._pg.nonblocking = 1
        self._pg.notice_handler = self._noticed
        self._pg.enter_pipeline_mode()
        self._input = select.poll()
        self._input.register(self._pg.socket, select.POLLIN)
        self._both = select.poll()
        self._both.register(self._pg.socket, select.POLLIN | select.POLLOUT)
        for statement in statements.values():
            self._pg.send_prepare(statement.name, statement.sql)
            self._waiting.append(Reply(""))
        self.settle()

    @property
    def is_idle(self) -> bool:
        """Whether no transaction is open."""
        return self._pg.transaction_status == pq.TransactionStatus.IDLE

    def send(self, name: str, parameters: Mapping[str, Value]) -> Reply:
        """Send a named statement. Its result, or what went wrong, is there after the next wait."""
        statement = self._statements[name]
        values = [parameters[parameter] for parameter in statement.parameters]
        # Text goes in binary form: in text form libpq cuts it at a NUL without a word, and the server has no say.
        self._send(
            lambda: self._pg.send_query_prepared(
                statement.name, list(map(_encoded, values)), [isinstance(value, str) for value in values]
            )
        )
        return self._sent(name)

    def command(self, sql: str) -> Reply:
        """Send a command of transactions: BEGIN, COMMIT, SAVEPOINT and the like."""
        self._send(lambda: self._pg.send_query_params(sql.encode(), None))
        return self._sent(sql)

    def rows(self, reply: Reply, limit: int | None = None) -> list[PostgresRow]:
        """Wait for a query, and return its rows."""
        result = self.wait(reply)
        count = result.ntuples if limit is None else min(result.ntuples, limit)
        if not count:
            return []
        places, integers = self._shape(reply.name, result)
        return [PostgresRow([_decoded(result, row, at, integers[at]) for at in range(len(integers))], places)
                for row in range(count)]  # fmt: skip

    def count(self, reply: Reply) -> int:
        """Wait for a statement, and return how many rows it changed or found."""
        return self.wait(reply).command_tuples or 0

    def wait(self, reply: Reply) -> pq.abc.PGresult:
        """Wait for a result. Raises psycopg.Error: the first that came since the transaction was begun."""
        if reply.result is None and self._failure is None:
            self._sync()
            self._read(lambda: reply.result is not None)
        self._raise_failure()
        if reply.result is None:
            raise ConnectionLostError("the database gave no result")
        return reply.result

    def settle(self) -> None:
        """Wait for everything that was sent. Raises as `wait` does."""
        if any(reply is not None for reply in self._waiting):
            self._sync()
        self._read(lambda: False)
        self._raise_failure()

    def forget(self) -> psycopg.Error | None:
        """Forget what went wrong, before what undoes it is sent, and return it. Raises ConnectionLostError."""
        if any(reply is not None for reply in self._waiting):
            self._sync()
        self._read(lambda: False)
        failure, self._failure = self._failure, None
        return failure

    def close(self) -> None:
        """Give the connection back to the system."""
        self._connection.close()

    def _sent(self, name: str) -> Reply:
        reply = Reply(name)
        self._waiting.append(reply)
        return reply

    def _send(self, send: Callable[[], None]) -> None:
        try:
            send()
        except psycopg.OperationalError as error:
            raise ConnectionLostError(str(error)) from error

    def _sync(self) -> None:
        self._send(self._pg.pipeline_sync)
        self._waiting.append(None)
        self.trips += 1

    def _read(self, is_enough: Callable[[], bool]) -> None:
        """Take results until it is enough, or none is awaited."""
        try:
            while self._pg.flush():
                self._await(self._both)
                self._pg.consume_input()
            while self._waiting and not is_enough():
                while self._pg.is_busy():
                    self._await(self._input)
                    self._pg.consume_input()
                self._take(self._pg.get_result())
        except psycopg.OperationalError as error:
            if self._failure is not None:
                raise self._failure from error
            raise error if isinstance(error, ConnectionLostError) else ConnectionLostError(str(error)) from error

    def _take(self, result: pq.abc.PGresult | None) -> None:
        if result is None:
            # The end of one statement's results, or of the connection.
            if self._pg.status != pq.ConnStatus.OK:
                raise ConnectionLostError("the connection to the database was lost")
            return
        if result.status == pq.ExecStatus.FATAL_ERROR and self._failure is None:
            self._failure = _failure(result)
        reply = self._waiting[0]
        if reply is None:
            # Nothing but the end of a connection comes in the place of a Sync.
            if result.status == pq.ExecStatus.PIPELINE_SYNC:
                self._waiting.popleft()
            return
        self._waiting.popleft()
        reply.result = result

    def _await(self, poll: select.poll) -> None:
        if not poll.poll(ANSWER_SECONDS * 1000):
            raise ConnectionLostError(f"the database gave no answer for {ANSWER_SECONDS:g} s")

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _noticed(self, result: pq.abc.PGresult) -> None:
        self.warnings.append((result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode())

    def _shape(self, name: str, result: pq.abc.PGresult) -> tuple[dict[str, int], list[bool]]:
        shape = self._shapes.get(name)
        if shape is None:
            columns = range(result.nfields)
            names = {(result.fname(at) or b"").decode(): at for at in columns}
            shape = self._shapes[name] = (names, [result.ftype(at) in _INTEGERS for at in columns])
        return shape


def _failure(result: pq.abc.PGresult) -> psycopg.Error:
    if result.error_field(pq.DiagnosticField.SQLSTATE) is None:
        return ConnectionLostError(result.error_message.decode(errors="replace").strip())
    return error_from_result(result, encoding="utf-8")


def _encoded(value: Value) -> bytes | None:
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else b"%d" % value


def _decoded(result: pq.abc.PGresult, row: int, column: int, is_integer: bool) -> Value:
    found = result.get_value(row, column)
    if found is None:
        return None
    return int(found) if is_integer else found.decode()
