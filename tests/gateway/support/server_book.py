"""The database of the book of use cases on PostgreSQL: one transaction each, as the group writer runs them."""

from collections.abc import Callable
from typing import Any

from gateway.domain.instant import Instant
from gateway.store.port import Transaction
from gateway.store.postgres.engine import open_database
from gateway.store.postgres.group_log import GroupLog
from gateway.store.postgres.service_clock import SharedServiceClock
from gateway.store.postgres.transaction import PostgresTransaction
from tests.gateway.support import postgres
from tests.gateway.support.manual_time import ManualTime


class ServerClock:
    """The shared service clock, which a test reads with a transaction of its own."""

    def __init__(self, clock: SharedServiceClock, database: "ServerDatabase") -> None:
        self.continues = clock.continues
        self.moved_ahead_us = clock.moved_ahead_us
        self.save = clock.save
        self._database = database

    def now(self) -> Instant:
        instant: Instant = self._database.run(lambda _tx, now: now)[0]
        return instant

    def wall_utc(self) -> str:
        self.now()
        return self._database.groups.clock.wall_utc()


class ServerDatabase:
    """A database of the test server."""

    def __init__(self, url: str, time: ManualTime) -> None:
        database = open_database(url, postgres.machine(time), wait_seconds=0)
        self.groups = GroupLog(database.clock, database.gateway_id)
        self.clock = ServerClock(database.clock, self)
        self.connection = postgres.Beside(url)
        self._session = database.address.open_session("book")

    def run(self, operation: Callable[[Transaction, Instant], Any]) -> tuple[Any, set[str]]:
        moment = self.groups.open(self._session)
        tx = PostgresTransaction(self._session)
        try:
            result = operation(tx, moment.instant)
            tx.check()
        except BaseException as error:
            failure = self._session.forget()
            self._session.command("ROLLBACK")
            self._session.settle()
            if failure is not None and failure is not error:
                raise failure from error
            raise
        self.groups.close(self._session, self.groups.new_id(), moment, tx.notified)
        self.groups.commit(self._session)
        self.groups.clock.committed(moment)
        return result, tx.notified

    def close(self) -> None:
        self._session.close()
        self.connection.close()
