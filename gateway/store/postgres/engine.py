"""The PostgreSQL store as a whole: connects, examines, migrates, runs operations, closes."""

import asyncio
import contextlib
import functools
import itertools
import logging
import math
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

import psycopg

from gateway.domain.instant import Instant
from gateway.domain.models import Standby
from gateway.store.gathering import OnCommit, ignore_commit
from gateway.store.grouped import GroupedStore
from gateway.store.port import DatabaseUnusableError, ReadTransaction, StoreUnavailableError
from gateway.store.postgres.connection import Address, parse_url
from gateway.store.postgres.continuity import Continuity
from gateway.store.postgres.failures import Fate, fate_of
from gateway.store.postgres.group_log import GroupLog
from gateway.store.postgres.readers import Readers
from gateway.store.postgres.schema import migrate
from gateway.store.postgres.server import require_notifications, require_sound
from gateway.store.postgres.service_clock import Machine, SharedServiceClock, load_shared_clock
from gateway.store.postgres.sharing import TERM_SECONDS, leave, prune, take_term
from gateway.store.postgres.writer import PostgresWriter

T = TypeVar("T")

BEAT_SECONDS: Final = 1.0
"""How often a gateway vouches for the time, if it has nothing else to write."""

WAIT_FOR_OTHERS_SECONDS: Final = 3.0

_BEATS_A_PRUNING: Final = 600

_log = logging.getLogger(__name__)


def ignore_loss(_purpose: str) -> None:
    """For whoever counts nothing."""


@dataclass(frozen=True, slots=True)
class Database:
    """A database that was examined and is at the newest schema.

    `on_lost` is called, in any thread, when a connection to it is lost, with what that was for: writer, reader or
    listener.
    """

    address: Address
    gateway_id: str
    clock: SharedServiceClock
    on_lost: Callable[[str], None] = ignore_loss


@contextmanager
def connected(
    url: str, *, idle_in_transaction_session_timeout: str = "60s", standby: Standby = Standby.NONE
) -> Iterator[tuple[Address, psycopg.Connection]]:
    """Connect for what a gateway does not do all the time, and examine the server.

    Whatever goes wrong meanwhile is raised with the address: DatabaseUnusableError with what to do,
    StoreUnavailableError where a later start may succeed.
    """
    address = parse_url(url, standby)
    try:
        with address.connect(
            "start", idle_in_transaction_session_timeout=idle_in_transaction_session_timeout, statement_timeout="0"
        ) as connection:
            for warning in require_sound(connection, standby):
                _log.warning("the database at %s: %s", address.shown, warning)
            yield address, connection
    except (DatabaseUnusableError, StoreUnavailableError) as error:
        raise type(error)(f"{address.shown}: {error}") from error
    except psycopg.Error as error:
        words = f"{address.shown}: {' '.join(str(error).split())}"
        if fate_of(error) is Fate.OF_THE_OPERATION:
            raise DatabaseUnusableError(words) from error
        raise StoreUnavailableError(words) from error


def open_database(
    url: str, machine: Machine, wait_seconds: float = WAIT_FOR_OTHERS_SECONDS, standby: Standby = Standby.NONE
) -> Database:
    """Connect, examine the server, migrate, and load the service clock. Blocks for up to some seconds.

    `wait_seconds`: how long another gateway is waited for, to judge the clock, where nobody has done so lately.

    Raises DatabaseUnusableError with what to do, StoreUnavailableError where a later start may succeed.
    """
    with connected(url, standby=standby) as (address, connection):
        require_notifications(address, connection)
        migrate(connection)
        connection.close()
        session = address.open_session("start")
        try:
            clock = load_shared_clock(session, machine, _waiting(wait_seconds))
        finally:
            session.close()
    return Database(address, secrets.token_hex(8), clock)


class PostgresStore(GroupedStore):
    """Implements the port `Store` on one database, which other gateways may use at the same time."""

    def __init__(
        self,
        database: Database,
        publish: Callable[[set[str]], None],
        on_fatal: Callable[[BaseException], None],
        on_commit: OnCommit = ignore_commit,
    ) -> None:
        self._committed_at = 0.0
        self._on_commit = on_commit
        address = database.address
        groups = GroupLog(database.clock, database.gateway_id)
        writer = PostgresWriter(
            functools.partial(address.open_session, "writer"),
            groups,
            Continuity(groups, address.standby),
            publish,
            on_fatal,
            self._count_commit,
            functools.partial(database.on_lost, "writer"),
        )
        super().__init__(writer)
        self._gateway_id = database.gateway_id
        self._led = (-math.inf, False)
        self._asking = asyncio.Lock()
        self._readers = Readers(
            functools.partial(address.open_session, "reader"),
            database.clock,
            functools.partial(database.on_lost, "reader"),
        )

    async def vouch_for_time(self) -> None:
        """Commit a group a second until cancelled, so that gateways can tell how much time has passed."""
        for beat in itertools.count():
            try:
                if beat % _BEATS_A_PRUNING == 0:
                    await self.write(prune)
                elif time.monotonic() - self._committed_at >= BEAT_SECONDS:
                    await self.write(lambda _tx, _now: None)
            except StoreUnavailableError as error:
                _log.warning("nobody vouches for the time now: %s", error)
            await asyncio.sleep(BEAT_SECONDS)

    async def leads(self) -> bool:
        """Tell whether this gateway runs the sweeps, as asked a few seconds ago. Raises StoreUnavailableError."""
        async with self._asking:
            asked_at, led = self._led
            now = time.monotonic()
            if now - asked_at > (TERM_SECONDS / 3 if led else BEAT_SECONDS):
                self._led = (now, await self.write(take_term, self._gateway_id))
            return self._led[1]

    async def leave(self) -> None:
        """Leave the sweeps to another gateway at once, if the database can be told."""
        with contextlib.suppress(StoreUnavailableError):
            await self.write(leave, self._gateway_id)

    async def close(self) -> None:
        """Finish what is queued and give every connection back."""
        await asyncio.to_thread(self._reader_threads.shutdown)
        self._readers.close()
        await self._writer.close()

    def _read(self, run: Callable[[ReadTransaction, Instant], T]) -> T:
        return self._readers.read(run)

    def _count_commit(self, operations: int, seconds: float) -> None:
        self._committed_at = time.monotonic()
        self._on_commit(operations, seconds)


def _waiting(seconds: float) -> Callable[[], bool]:
    """Return what pauses, and tells for so many seconds that another gateway may still judge the clock."""
    until = time.monotonic() + seconds

    def wait() -> bool:
        time.sleep(min(0.2, seconds))
        return time.monotonic() < until

    return wait
