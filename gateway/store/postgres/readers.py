"""Reads on snapshots of what is committed, beside the writer."""

import contextlib
import queue
import time
from collections.abc import Callable
from typing import TypeVar

import psycopg

from gateway.domain.instant import Instant
from gateway.store.port import ReadTransaction
from gateway.store.postgres.attempts import AGAIN_SECONDS
from gateway.store.postgres.failures import Fate, fate_of, unavailable
from gateway.store.postgres.service_clock import SharedServiceClock
from gateway.store.postgres.session import Session
from gateway.store.postgres.transaction import PostgresTransaction

T = TypeVar("T")


class Readers:
    """A few sessions that only read, each used by one thread at a time. `on_lost` is called when one is lost."""

    def __init__(
        self, connect: Callable[[], Session], clock: SharedServiceClock, on_lost: Callable[[], None] = lambda: None
    ) -> None:
        self._connect = connect
        self._clock = clock
        self._on_lost = on_lost
        self._idle: queue.SimpleQueue[Session] = queue.SimpleQueue()

    def read(self, run: Callable[[ReadTransaction, Instant], T]) -> T:
        """Run an operation in this thread, again on a new session where one is lost. Raises StoreUnavailableError."""
        until = time.monotonic() + AGAIN_SECONDS
        while True:
            session: Session | None = None
            try:
                session = self._take()
                result = self._read(session, run)
            except psycopg.Error as error:
                fate = fate_of(error)
                if fate is Fate.RECONNECT:
                    self._lose(session)
                else:
                    self._undo(session)
                if fate is Fate.OF_THE_OPERATION:
                    raise
                if fate is Fate.UNAVAILABLE or time.monotonic() > until:
                    raise unavailable(error, "be read") from error
                time.sleep(0.05)
            except BaseException:
                self._undo(session)
                raise
            else:
                self._idle.put(session)
                return result

    def close(self) -> None:
        """Close the sessions; nothing may read any more."""
        while not self._idle.empty():
            self._idle.get().close()

    def _read(self, session: Session, run: Callable[[ReadTransaction, Instant], T]) -> T:
        sent_us = self._clock.machine.boot_us()
        session.command("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        row = session.rows(session.send("group_open", {}))[0]
        transaction = PostgresTransaction(session)
        result = run(transaction, self._clock.look(row, sent_us).instant)
        transaction.check()
        session.command("ROLLBACK")
        session.settle()
        return result

    def _take(self) -> Session:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return self._connect()

    def _undo(self, session: Session | None) -> None:
        """End the transaction, and keep the session if that succeeds."""
        if session is None:
            return
        try:
            session.forget()
            session.command("ROLLBACK")
            session.settle()
        except psycopg.Error:
            self._lose(session)
        else:
            self._idle.put(session)

    def _lose(self, session: Session | None) -> None:
        if session is not None:
            self._on_lost()
            with contextlib.suppress(Exception):
                session.close()
