"""What a chaos test strikes: the programs, the network between them, and the database server where there is one."""

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable

from gateway.store.postgres.session import ANSWER_SECONDS
from tests.faults.armed import GATEWAY_PLACES
from tests.faults.database_proxy import DatabaseProxy
from tests.faults.proxy import Mode
from tests.faults.stage import LEASE_SECONDS, GatewayPart, Stage
from tests.gateway.support.postgres import Server
from worker.failpoints import FailpointName

Blow = Callable[[], Awaitable[None]]

BAD_WEATHER = [mode for mode in Mode if mode is not Mode.PASS]
ENDS_OF_A_COMMIT = (Mode.CUT, Mode.RESET, Mode.BLACK_HOLE)
COMMIT_COMES_WITHIN = 3.0
"""A gateway commits once a second, if it has nothing else to write."""


class Blows:
    """Strikes at random, and thaws what was frozen once its lease is over."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._chance = stage.chance
        self._worker = stage.worker
        self._thaw_at: dict[str, float] = {}

    def all(self) -> list[Blow]:
        """Return every blow, as often as its weight."""
        blows: list[Blow] = [
            self._kill_worker_at_a_failpoint, self._kill_worker_at_a_failpoint, self._kill_worker,
            self._kill_gateway_at_a_commit, self._kill_gateway_at_a_commit, self._kill_gateway, self._kill_both,
            self._freeze_worker, self._bad_network,
        ]  # fmt: skip
        if self._stage.server is None:
            return blows
        return [
            *blows,
            self._freeze_gateway, self._freeze_gateway_at_a_commit, self._freeze_gateway_at_a_commit,
            self._cut_from_the_database, self._cut_from_the_database, self._cut_in_a_commit, self._cut_in_a_commit,
            self._cut_in_a_commit, self._crash_the_server, self._crash_the_server,
        ]  # fmt: skip

    def thaw(self) -> None:
        """Let a program go on that has stood still for longer than a lease."""
        now = time.monotonic()
        for program in self._stage.programs:
            if not program.is_frozen:
                self._thaw_at[program.name] = now + LEASE_SECONDS * self._chance.uniform(1.0, 1.6)
            elif now > self._thaw_at[program.name]:
                self._count(f"{program.name} frozen past its lease")
                program.send(signal.SIGCONT)

    def _count(self, what: str) -> None:
        self._stage.figures[what] += 1

    def _a_gateway(self) -> GatewayPart:
        return self._chance.choice(self._stage.gateways)

    # The programs

    async def _kill_worker_at_a_failpoint(self) -> None:
        self._count("worker armed at a failpoint")
        self._worker.arm(self._chance.choice(list(FailpointName)))

    async def _kill_worker(self) -> None:
        await asyncio.sleep(self._chance.uniform(0, 0.5))
        self._count("worker killed")
        self._worker.send(signal.SIGKILL)

    async def _kill_gateway_at_a_commit(self) -> None:
        await asyncio.sleep(self._chance.uniform(0, 0.3))
        self._count("gateway armed at a commit")
        self._a_gateway().program.arm(self._chance.choice(GATEWAY_PLACES))

    async def _kill_gateway(self) -> None:
        await asyncio.sleep(self._chance.uniform(0, 0.5))
        self._count("gateway killed")
        self._a_gateway().program.send(signal.SIGKILL)

    async def _kill_both(self) -> None:
        await asyncio.sleep(self._chance.uniform(0, 0.5))
        self._count("both killed")
        self._a_gateway().program.send(signal.SIGKILL)
        self._worker.send(signal.SIGKILL)

    async def _freeze_worker(self) -> None:
        """It may stand still much later, where the place is one that only a recovered task passes."""
        self._worker.arm(self._chance.choice(list(FailpointName)), signal.SIGSTOP)

    async def _freeze_gateway(self) -> None:
        """For a moment, or until it is thawed."""
        await asyncio.sleep(self._chance.uniform(0, 0.5))
        self._count("gateway frozen")
        frozen = self._a_gateway().program
        frozen.send(signal.SIGSTOP)
        if self._chance.random() < 0.5:
            await asyncio.sleep(self._chance.uniform(0.1, 2.2))
            frozen.send(signal.SIGCONT)

    async def _freeze_gateway_at_a_commit(self) -> None:
        """With the writer's lock in its hand, or just before it takes it, or just after it gave it back."""
        self._count("gateway to freeze at a commit")
        self._a_gateway().program.arm(self._chance.choice(GATEWAY_PLACES), signal.SIGSTOP)

    # The network

    async def _bad_network(self) -> None:
        mode = self._chance.choice(BAD_WEATHER)
        self._count(f"network: {mode}")
        await asyncio.sleep(self._chance.uniform(0, 0.3))
        self._stage.proxy.set(mode)
        await asyncio.sleep(self._chance.uniform(0.2, LEASE_SECONDS * 1.3))
        self._stage.proxy.set(Mode.PASS)

    async def _cut_from_the_database(self) -> None:
        mode, way = self._chance.choice(BAD_WEATHER), self._a_way()
        self._count(f"way to the database: {mode}")
        await asyncio.sleep(self._chance.uniform(0, 0.3))
        way.set(mode)
        await self._long_or_short()
        way.set(Mode.PASS)

    async def _cut_in_a_commit(self) -> None:
        mode, made, way = self._chance.choice(ENDS_OF_A_COMMIT), self._chance.random() < 0.5, self._a_way()
        await asyncio.sleep(self._chance.uniform(0, 0.3))
        way.at_commit(mode, made=made)
        if not await way.has_struck(COMMIT_COMES_WITHIN):
            return
        self._count(f"COMMIT {'without an answer' if made else 'that does not arrive'}: {mode}")
        await self._long_or_short()
        way.set(Mode.PASS)

    async def _long_or_short(self) -> None:
        """Mostly for about a lease; sometimes for longer than a gateway waits for an answer of its database."""
        longest = ANSWER_SECONDS * 1.3 if self._chance.random() < 0.2 else LEASE_SECONDS * 1.3
        await asyncio.sleep(self._chance.uniform(0.1, longest))

    def _a_way(self) -> DatabaseProxy:
        way = self._a_gateway().way
        assert way is not None
        return way

    # The database server

    async def _crash_the_server(self) -> None:
        await asyncio.sleep(self._chance.uniform(0, 0.5))
        self._count("server stopped with -m immediate")
        server: Server | None = self._stage.server
        assert server is not None
        await asyncio.to_thread(server.stop, at_once=True)
        await asyncio.sleep(self._chance.uniform(0, 1.5))
        try:
            await asyncio.to_thread(server.start)
        except AssertionError as ended:
            # It has ended again at once: somebody would start it once more.
            self._count(f"server that did not start, code {ended.args[0][0]}")
            await asyncio.to_thread(server.start)
