"""A double of the database server that several gateways share: SQLite beneath, PostgreSQL's rules above.

The rules are the writer's lock with its queue and its time limit, the end of a session that stands still in its
transaction, COMMITs whose answer is lost, notifications that may be lost, a clock that drifts and is stepped.
"""

import asyncio
import random
import sqlite3
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextvars import Context
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, Protocol, Self

import psycopg
from psycopg import errors

from gateway.domain.models import Standby
from gateway.store.postgres.failures import ConnectionLostError
from gateway.store.postgres.group_log import read_payload
from tests.simulation.gateway_machine import BEGINNING
from tests.simulation.gateways.session import SimSession
from tests.simulation.gateways.threads import Wait
from tests.simulation.loop import Process, VirtualLoop
from tests.simulation.store import Disk
from tests.simulation.trace import Trace

LOCK_SECONDS: Final = 6.0
IDLE_SECONDS: Final = 2.0
CALM_SECONDS: Final = 12.0
UNKNOWN: Final = ("not made", "made", "made late", "made without its standby")
"""What may become of a COMMIT whose sender is told nothing, or that its standby was not waited for."""

_EPOCH_US: Final = BEGINNING.timestamp() * 1e6


class ServerWatch(Protocol):
    """Sees each commit, before anybody is answered."""

    committing: str

    def committed(self, database: sqlite3.Connection, ran_at: float) -> None: ...
    def made(self, session: SimSession) -> None: ...
    def set_back_in_a_wait(self, seconds: float) -> None: ...


class Trap:
    """Something that happens to a gateway in the middle of a group, after so many round trips."""

    def __init__(self, gateway: str, trips: int, spring: Callable[[SimSession], None]) -> None:
        self.gateway = gateway
        self.trips = trips
        self.spring = spring


class SimServer:
    """The server and its machine. `drift`: how much its clock is too fast, as a part of one."""

    def __init__(self, loop: VirtualLoop, path: Path, chance: random.Random, trace: Trace, watch: ServerWatch) -> None:
        self.loop = loop
        self.disk = Disk(chance, trace.count)
        self.drift = chance.uniform(-1e-4, 1e-4)
        self.wall_offset = 0.0
        self.slow = 0.0
        self.lose_notes = 0.0
        self.cut_until: dict[str, float] = {}
        """Until when each gateway's connections to it are broken."""
        self.traps: list[Trap] = []
        self.next_unknown = 0
        """So many of the next COMMITs have an unknown outcome."""
        self.committed_at = 0.0
        self._path = path
        self._down_until = 0.0
        self._busy_until = 0.0
        """When somebody had to wait for the lock last, or a connection was lost."""
        self._chance = chance
        self._trace = trace
        self._watch = watch
        self._sessions: list[SimSession] = []
        self._listening: list[Listening] = []
        self._holder: SimSession | None = None
        self._queue: deque[tuple[SimSession, Wait]] = deque()

    # Connections

    def wall_us(self) -> int:
        """The server's clock, in microseconds since 1970."""
        return round(_EPOCH_US + self.loop.time() * 1e6 * (1 + self.drift) + self.wall_offset * 1e6)

    def set_clock(self, seconds: float) -> None:
        """Its clock is set by so many seconds."""
        self.wall_offset += seconds
        if seconds < 0 and (self._queue or self._holder is not None or self.slow):
            self._watch.set_back_in_a_wait(LOCK_SECONDS)

    def open(self, process: Process) -> SimSession:
        """Connects, in a virtual thread. Raises psycopg.OperationalError."""
        self._pause(0.01)
        self._refuse_unreachable(process)
        connection = sqlite3.connect(self._path, isolation_level=None, timeout=0)
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = OFF")  # what power takes away is decided here, not by the system
        connection.create_function("server_us", 0, self.wall_us)
        session = SimSession(self, process, connection)
        self._sessions.append(session)
        return session

    def listen(self, process: Process, gateway_id: str) -> "Listening":
        """Connects for notifications. Raises psycopg.OperationalError."""
        self._refuse_unreachable(process)
        listening = Listening(process, gateway_id)
        self._listening.append(listening)
        return listening

    def closed(self, session: SimSession) -> None:
        """The connection is at its end: what was not committed is taken back, unless its COMMIT is on its way."""
        if not session.committing:
            session.ended = session.ended or ConnectionLostError("the connection is closed")
            self._drop(session)

    def _drop(self, session: SimSession) -> None:
        if session in self._sessions:
            self._sessions.remove(session)
            self.take_back(session)
            self.loop.at_the_end.append(session.connection.close)

    def _refuse_unreachable(self, process: Process) -> None:
        if self._is_unreachable(process):
            raise psycopg.OperationalError("the server cannot be reached")

    def _is_unreachable(self, process: Process) -> bool:
        return self.loop.time() < max(self._down_until, self.cut_until.get(process.name, 0.0))

    # What goes wrong

    def on_the_way(self, session: SimSession) -> None:
        """A round trip begins."""
        if session.in_transaction and session.process.burns("store: a round trip"):
            self._never()
        if session.ended is None and self._is_unreachable(session.process):
            self.lose(session, "the connection is cut")
        for trap in [trap for trap in self.traps if trap.gateway == session.process.name and session is self._holder]:
            trap.trips -= 1
            if trap.trips <= 0:
                self.traps.remove(trap)
                trap.spring(session)
                self._pause(0.0)
        if self.slow and self._chance.random() < self.slow:
            self._pause(self._chance.uniform(0.01, 0.6))

    def lose(self, session: SimSession, why: str) -> None:
        """The connection breaks: its client knows at once, the server at once or when it has waited long enough."""
        session.ended = ConnectionLostError(why)
        self._busy_until = self.loop.time()
        self._trace.count("connections lost in a group" if session is self._holder else "connections lost")
        self.later(self._chance.choice((0.0, IDLE_SECONDS)), lambda: self.closed(session))

    def cut(self, name: str, seconds: float) -> None:
        """A gateway is cut off from the server."""
        self.cut_until[name] = self.loop.time() + seconds
        self._break_listening(lambda listening: listening.process.name == name)

    def break_listening(self) -> None:
        """The connections over which notifications come are lost."""
        self._break_listening(lambda _listening: True)

    def restart(self, seconds: float) -> None:
        """All sessions end, their COMMITs made or not, and nobody can connect for a while."""
        self._trace("database", f"is restarted, for {seconds:.1f} s")
        self._trace.count("restarts of the database")
        self._down_until = self.loop.time() + seconds
        for session in [*self._sessions]:
            session.ended = errors.AdminShutdown("terminating connection due to administrator command")
            if session.committing and self._chance.random() < 0.5:
                self._make(session)
            session.committing = False
            self._drop(session)
        self.break_listening()

    def stands_still(self, process: Process) -> None:
        """A process is frozen: the server ends its sessions that are in a transaction."""
        for session in self._sessions:
            if session.process is process:
                self._watch_idle(session)

    def is_gone(self, process: Process) -> None:
        """A process has lost its power: its connections end, noticed at once or when they stood still long enough."""
        for session in [*self._sessions]:
            if session.process is process:
                after = 0.0 if self._chance.random() < 0.7 else IDLE_SECONDS
                self.later(after, lambda session=session: self.closed(session))
        self._listening = [listening for listening in self._listening if listening.process is not process]

    def _watch_idle(self, session: SimSession) -> None:
        trips = session.trips

        def end() -> None:
            still = session.trips == trips and not session.process.runs and session.in_transaction
            if still and session.ended is None and not session.committing and not self._is_queued(session):
                self._trace.count("groups of frozen gateways ended")
                session.ended = errors.IdleInTransactionSessionTimeout("the transaction was idle for too long")
                self._drop(session)

        self.later(IDLE_SECONDS, end)

    def _is_queued(self, session: SimSession) -> bool:
        return any(other is session and not wait.is_over for other, wait in self._queue)

    def _break_listening(self, whose: Callable[["Listening"], bool]) -> None:
        for listening in self._listening:
            if whose(listening):
                listening.arrived.put_nowait(ConnectionLostError("the listener's connection was lost"))
        self._listening = [listening for listening in self._listening if not whose(listening)]

    def is_well_for(self, name: str) -> bool:
        """True if nothing is wrong between this gateway and the server just now, nor was in the last seconds."""
        bad_until = max(self._down_until, self.cut_until.get(name, 0.0), self._busy_until)
        return not (self.disk.full or self.disk.slow or self.slow) and self.loop.time() > bad_until + CALM_SECONDS

    def heal(self) -> None:
        """From now on nothing goes wrong."""
        self.slow = self.lose_notes = 0.0
        self.next_unknown = 0
        self.traps.clear()
        self.cut_until.clear()
        self._down_until = min(self._down_until, self.loop.time())

    def need_room(self, _session: SimSession) -> None:
        """Raises DiskFull where nothing more can be written."""
        if self.disk.full:
            raise errors.DiskFull("could not extend file: no space left on device")

    # Transactions

    def take_lock(self, session: SimSession) -> None:
        """Waits for the writer's lock. Raises LockNotAvailable."""
        if self._holder is None:
            self._hold(session)
            return
        wait = Wait()
        self._queue.append((session, wait))
        self._trace.count("waits for the writer's lock")
        began = self.loop.time()
        self.later(LOCK_SECONDS, lambda: wait.end(False))
        had = wait.value()
        if self.loop.time() > began + 1.0:
            self._busy_until = self.loop.time()
        if had is False:
            self._trace.count("locks not had in time")
            raise errors.LockNotAvailable("canceling statement due to lock timeout")

    def _hold(self, session: SimSession) -> None:
        self._holder = session
        session.connection.execute("BEGIN IMMEDIATE")

    def _release(self, session: SimSession) -> None:
        if self._holder is not session:
            return
        self._holder = None
        while self._holder is None and self._queue:
            waiting, wait = self._queue.popleft()
            if waiting.ended is None and not wait.is_over:
                self._hold(waiting)
                wait.end(True)
                if not waiting.process.runs:
                    self._watch_idle(waiting)

    def take_back(self, session: SimSession) -> None:
        """Ends a transaction without a trace."""
        if session.connection.in_transaction:
            session.connection.execute("ROLLBACK")
        session.in_transaction = False
        session.deeds.clear()
        session.notes.clear()
        self._release(session)

    def commit(self, session: SimSession) -> None:
        """COMMIT, from its being sent to its answer; where there is none, `session.ended` says so."""
        if session.process.burns("store: before COMMIT"):
            self._never()
        fate = self._fate()
        wait = Wait()
        session.committing = True
        self.later(self.disk.latency(), lambda: self._arrived(session, fate, wait))
        wait.value()
        if session.process.burns("store: after COMMIT"):
            self._never()

    def _fate(self) -> str | None:
        if self.next_unknown:
            self.next_unknown -= 1
        elif not (self.disk.fail_commit and self._chance.random() < self.disk.fail_commit):
            return None
        fate = self._chance.choice(UNKNOWN)
        self._busy_until = self.loop.time()
        self._trace("database", f"a COMMIT of unknown outcome: {fate}")
        self._trace.count("commits of unknown outcome")
        self._trace.count(f"unknown commits: {fate}")
        return fate

    def _arrived(self, session: SimSession, fate: str | None, wait: Wait) -> None:
        if session in self._sessions:
            if fate in ("not made", "made", "made late"):
                session.ended = ConnectionLostError("no answer to COMMIT")
            if fate == "made late":
                self.later(self._chance.uniform(0.1, 1.9), lambda: self._make_late(session))
            elif fate == "not made":
                session.committing = False
                self.later(self._chance.choice((0.0, IDLE_SECONDS)), lambda: self._drop(session))
            else:
                self._make(session)
                session.committing = False
                if fate == "made without its standby":
                    session.warnings.append("01000")
                if not session.process.alive:
                    self._drop(session)
        wait.end()

    def _make_late(self, session: SimSession) -> None:
        if session in self._sessions and session.committing:
            self._make(session)
            session.committing = False
            self._drop(session)

    def _make(self, session: SimSession) -> None:
        session.connection.execute("COMMIT")
        self.committed_at = self.loop.time()
        session.in_transaction = False
        self._watch.committing = session.process.name
        self._watch.committed(session.connection, session.opened_at)
        self._watch.made(session)
        notes, session.notes = session.notes, []
        session.deeds.clear()
        self._release(session)
        for note in notes:
            self._notify(note)

    def _notify(self, payload: str) -> None:
        told_by, _topics = read_payload(payload)
        for listening in self._listening:
            if self.lose_notes and self._chance.random() < self.lose_notes:
                self._trace.count("notifications lost")
                continue
            if listening.gateway_id != told_by:
                self._trace.count("notifications across gateways")
            self.later(0.002, lambda to=listening: to.arrived.put_nowait(payload))

    # Time

    def later(self, seconds: float, do: Callable[[], object]) -> None:
        """Does something on the server's account."""
        self.loop.call_later(seconds, do, context=Context())

    def _pause(self, seconds: float) -> None:
        wait = Wait()
        self.later(seconds, wait.end)
        wait.value()

    def _never(self) -> None:
        Wait().value()


class Listening:
    """A connection that listens, as far as gateway/store/postgres/listener.py uses it."""

    def __init__(self, process: Process, gateway_id: str) -> None:
        self.process = process
        self.gateway_id = gateway_id
        self.arrived: asyncio.Queue[Any] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def execute(self, _sql: str) -> None: ...

    async def notifies(self) -> AsyncIterator[Any]:
        while True:
            payload = await self.arrived.get()
            if isinstance(payload, Exception):
                raise payload
            yield SimpleNamespace(payload=payload)


class SimAddress:
    """Where the database is, for one process."""

    shown = "the simulated database"
    standby = Standby.NONE

    def __init__(self, server: SimServer, process: Process, gateway_id: str) -> None:
        self._server = server
        self._process = process
        self._gateway_id = gateway_id

    def open_session(self, _purpose: str, **_options: str) -> SimSession:
        return self._server.open(self._process)

    async def connect_async(self, _purpose: str, **_options: str) -> Listening:
        return self._server.listen(self._process, self._gateway_id)
