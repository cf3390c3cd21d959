"""Variants of gateways that share a database and lack one safeguard each."""

import sqlite3
from contextlib import ExitStack
from dataclasses import replace
from functools import wraps
from typing import Any
from unittest.mock import patch

from psycopg import errors

import gateway.api.services.order_leases as lease_service
import gateway.orders.expire
import gateway.orders.hold
import gateway.orders.lease
import gateway.orders.permit
import gateway.store.postgres.service_clock
from gateway.dispatch.notifier import Subscription
from gateway.domain.instant import Instant
from gateway.store import tasks
from gateway.store.postgres.attempts import Attempts
from gateway.store.postgres.engine import PostgresStore
from gateway.store.postgres.sharing import SharedStreams
from tests.simulation.gateways import sql
from tests.simulation.gateways.machine import SharedGatewayMachine
from tests.simulation.gateways.server import SimServer
from tests.simulation.gateways.session import SimSession
from tests.simulation.layout import World
from tests.simulation.loop import PROCESS
from tests.simulation.mutants.registry import mutant_in, replaced

gateways = mutant_in(World.GATEWAYS)


class Overlapping:
    """A transaction without the lock, as READ COMMITTED lets it be: it reads what was committed when it began, and its
    changes, found by their conditions, become everybody's at its COMMIT.
    """

    def __init__(self, shared: sqlite3.Connection, server: SimServer) -> None:
        self.shared = shared
        self._copy = sqlite3.connect(":memory:", isolation_level=None)
        shared.backup(self._copy)
        self._copy.row_factory = sqlite3.Row
        self._copy.create_function("server_us", 0, server.wall_us)
        self._copy.execute("BEGIN")
        self._done: list[tuple[str, Any, int]] = []

    def execute(self, text: str, parameters: Any = ()) -> sqlite3.Cursor:
        cursor = self._copy.execute(text, parameters)
        if cursor.description is None:
            self._done.append((text, parameters, cursor.rowcount))
        elif "RETURNING" in text:
            self._done.append((text, parameters, -1))
        return cursor

    def catch_up(self) -> None:
        """Does all of it in the shared database. Raises UniqueViolation where it cannot be done any more."""
        self.shared.execute("BEGIN IMMEDIATE")
        try:
            for text, parameters, moved in self._done:
                cursor = self.shared.execute(text, parameters)
                cursor.fetchall()
                if moved >= 0 and cursor.rowcount != moved:
                    raise errors.UniqueViolation("a row was changed by another transaction")
        except sqlite3.IntegrityError as error:
            raise errors.UniqueViolation(str(error)) from error


@gateways
def lock_not_taken(stack: ExitStack) -> None:
    """Groups do not wait for the writer's lock: those of two gateways overlap."""
    take_back, make = SimServer.take_back, SimServer._make

    def take_lock(self: SimServer, session: SimSession) -> None:
        session.connection = Overlapping(session.connection, self)  # type: ignore[assignment]

    def end(session: SimSession) -> Any:
        overlapping = session.connection
        if isinstance(overlapping, Overlapping):
            session.connection = overlapping.shared
        return overlapping

    def mutated_take_back(self: SimServer, session: SimSession) -> None:
        end(session)
        take_back(self, session)

    def mutated_make(self: SimServer, session: SimSession) -> None:
        overlapping = end(session)
        if isinstance(overlapping, Overlapping):
            try:
                overlapping.catch_up()
            except errors.UniqueViolation as error:
                session.connection.execute("ROLLBACK")
                session.ended = error
                return
        make(self, session)

    replaced(stack, SimServer, "take_lock", take_lock)
    replaced(stack, SimServer, "take_back", mutated_take_back)
    replaced(stack, SimServer, "_make", mutated_make)


class OwnClocks:
    """What each gateway's own clock says: from the service clock at its start on, by its machine's wall clock."""

    def __init__(self, stack: ExitStack) -> None:
        self._machines: dict[Any, SharedGatewayMachine] = {}
        self._begun: dict[Any, tuple[int, float]] = {}
        start = SharedGatewayMachine.start

        def noted(machine: SharedGatewayMachine, fuse: int | None = None) -> None:
            start(machine, fuse)
            self._machines[machine.process] = machine

        replaced(stack, SharedGatewayMachine, "start", noted)

    def now(self, now: Instant) -> Instant:
        process = PROCESS.get()
        machine = self._machines[process]
        wall = machine.loop.time() + machine.wall_offset
        elapsed_us, began = self._begun.setdefault(process, (now.elapsed_us, wall))
        return replace(now, elapsed_us=elapsed_us + round((wall - began) * 1e6))


@gateways
def lease_judged_on_the_gateways_own_clock(stack: ExitStack) -> None:
    """Whether a lease has expired each gateway judges on its own clock."""
    clocks, is_due, due = OwnClocks(stack), gateway.orders.expire.is_lease_due, tasks.lapsed
    for module in (gateway.orders.expire, gateway.orders.hold, gateway.orders.lease):
        replaced(stack, module, "is_lease_due", lambda task, now: is_due(task, clocks.now(now)))
    replaced(stack, tasks, "lapsed", lambda tx, now: due(tx, clocks.now(now)))


@gateways
def permit_judged_on_the_gateways_own_clock(stack: ExitStack) -> None:
    """Whether a permit may be granted each gateway judges on its own clock; of the lease, on the shared one."""
    clocks, request_permit, live = OwnClocks(stack), lease_service.request_permit, gateway.orders.permit.live_lease

    @wraps(request_permit)
    def mutated(tx: Any, now: Instant, *args: Any) -> Any:
        def live_lease(tx: Any, _own: Instant, *about: Any) -> Any:
            return live(tx, now, *about)

        with patch.object(gateway.orders.permit, "live_lease", live_lease):
            return request_permit(tx, clocks.now(now), *args)

    replaced(stack, lease_service, "request_permit", mutated)


@gateways
def the_database_s_clock_alone(stack: ExitStack) -> None:
    """The database's clock alone says how much time has passed, and no gateway refutes it."""

    def judge(newest: Any, database_us: int, *_: Any) -> int:
        elapsed_us: int = newest.elapsed_us + max(0, database_us - newest.database_us)
        return elapsed_us

    replaced(stack, gateway.store.postgres.service_clock, "judge", judge)


@gateways
def unknown_commit_told_as_undone(stack: ExitStack) -> None:
    """A COMMIT without an answer counts as not made, and its group runs again."""
    replaced(stack, Attempts, "_was_committed", lambda _self, _group_id: False)


@gateways
def unknown_commit_told_as_done(stack: ExitStack) -> None:
    """A COMMIT without an answer counts as made, and its callers are answered."""
    replaced(stack, Attempts, "_was_committed", lambda _self, _group_id: True)


@gateways
def hints_without_a_poll(stack: ExitStack) -> None:
    """The dispatcher looks when it is notified, and never otherwise."""
    wait = Subscription.wait

    async def mutated(self: Subscription, timeout: float | None) -> bool:  # noqa: ASYNC109 -- as it is
        return await wait(self, None if self._topic.startswith("dispatcher: ") else timeout)

    replaced(stack, Subscription, "wait", mutated)


@gateways
def sweeps_on_every_gateway(stack: ExitStack) -> None:
    """Every gateway runs the sweeps, whoever leads."""

    async def leads(_self: PostgresStore) -> bool:
        return True

    replaced(stack, PostgresStore, "leads", leads)


@gateways
def the_term_of_another_is_taken(stack: ExitStack) -> None:
    """A gateway leads the sweeps as soon as it asks for it, though the term of another one has not ended."""
    text = sql.statements()["leader_take"]
    mutated = {"leader_take": text[: text.index("WHERE")]}
    stack.enter_context(patch.dict(sql.statements(), mutated))  # type: ignore[arg-type]


@gateways
def superseded_at_its_own_gateway_only(stack: ExitStack) -> None:
    """That a worker's process waits in another stream since, only the gateway knows at which it waits."""
    replaced(stack, SharedStreams, "is_latest", lambda *_: True)
