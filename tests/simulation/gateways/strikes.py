"""Everything that can go wrong with several gateways and the database that they share."""

from collections.abc import Callable
from typing import Any

from tests.simulation.gateways.machine import SharedGatewayMachine
from tests.simulation.gateways.server import SimServer, Trap
from tests.simulation.gateways.session import SimSession
from tests.simulation.strikes import HOUR, Strikes
from tests.simulation.themes import Blow
from tests.simulation.worker_machine import WorkerMachine

STEPS = (-HOUR, -60.0, -5.0, 5.0, 60.0, HOUR)


class SharedStrikes(Strikes):
    """Those of a single gateway, and what only several have. Both are set before the first strike."""

    database: SimServer
    leader: Callable[[], str]
    """The name of the gateway that leads the sweeps."""

    # At a failpoint of a worker

    def at_freeze_gateway(self, worker: WorkerMachine, blow: Blow) -> None:
        """Where this worker was served last, or the one that leads."""
        self._one(worker).freeze(self._chance.uniform(*blow.seconds))

    def at_freeze_in_group(self, worker: WorkerMachine, blow: Blow) -> None:
        self._trap(self._one(worker), blow)

    def at_lose_connection(self, worker: WorkerMachine, blow: Blow) -> None:
        """Any gateway's, in the middle of its next group."""
        del worker, blow
        self.lose_connection()

    def at_unknown_commit(self, worker: WorkerMachine, blow: Blow) -> None:
        del worker, blow
        self.unknown_commit()

    def at_step_database(self, worker: WorkerMachine, blow: Blow) -> None:
        del worker, blow
        self.step_database()

    def at_step_gateways(self, worker: WorkerMachine, blow: Blow) -> None:
        del worker, blow
        self.step_clock()

    def at_crash_gateway(self, worker: WorkerMachine, blow: Blow) -> None:
        del blow
        process = self._one(worker).process
        if process is not None:
            process.fuse = self._chance.randint(1, 20)

    def at_cut_database(self, worker: WorkerMachine, blow: Blow) -> None:
        self._cut_off(self._one(worker), self._chance.uniform(*blow.seconds))

    # At any time

    def freeze_gateway(self) -> None:
        self._any_gateway().freeze(self._chance.choice((1.0, 5.0, 20.0, 90.0)) * self._chance.random())

    def freeze_leader(self) -> None:
        """For longer than its term, or not."""
        for gateway in self._gateways:
            if gateway.name == self.leader():
                gateway.freeze(self._chance.uniform(5.0, 60.0))

    def freeze_in_group(self) -> None:
        self._trap(self._any_gateway(), Blow("", (), (0.1, self._chance.choice((1.5, 10.0, 60.0)))))

    def lose_connection(self) -> None:
        def spring(session: SimSession) -> None:
            self.database.lose(session, "the connection was reset")

        self.database.traps.append(Trap(self._any_gateway().name, self._chance.randint(1, 12), spring))

    def unknown_commit(self) -> None:
        self.database.next_unknown += 1

    def cut_database(self) -> None:
        self._cut_off(self._any_gateway(), self._chance.choice((1.0, 6.0, 20.0, 45.0)) * self._chance.random())

    def restart_database(self) -> None:
        self.database.restart(self._chance.choice((0.1, 2.0, 15.0)) * self._chance.random())

    def lose_notifications(self) -> None:
        self.database.lose_notes = self._chance.choice((0.0, 0.5, 1.0))
        if self._chance.random() < 0.3:
            self.database.break_listening()

    def slow_database(self) -> None:
        self.database.slow = self._chance.choice((0.0, 0.02, 0.1))

    def step_database(self) -> None:
        """The clock of the database's machine is set, or it is another machine's after a failover."""
        step = self._chance.choice(STEPS)
        self.database.set_clock(step)
        self._trace.count("clocks of the database set")
        self._trace("world", f"the database's clock is set by {self.database.wall_offset}")

    def step_clock(self) -> None:
        """The wall clock of a gateway's machine is set, of which nothing may depend."""
        gateway = self._any_gateway()
        gateway.wall_offset += self._chance.choice(STEPS)
        self._trace.count("clocks of gateways set")
        self._trace("world", f"the wall clock of {gateway.name} is set by {gateway.wall_offset}")

    def reboot_gateway(self) -> None:
        self._any_gateway().reboot()

    def back_up(self) -> None:
        """A server's database is backed up by its own means."""

    def _one(self, worker: WorkerMachine) -> SharedGatewayMachine:
        served = worker.served_by
        return next((gateway for gateway in self._gateways if gateway.server is served), self._gateways[0])

    def _trap(self, gateway: Any, blow: Blow) -> None:
        seconds = self._chance.uniform(*blow.seconds)

        def spring(_session: SimSession) -> None:
            self._trace.count("gateways frozen in a group")
            gateway.freeze(seconds)

        self.database.traps.append(Trap(gateway.name, self._chance.randint(1, 10), spring))

    def _cut_off(self, gateway: Any, seconds: float) -> None:
        self._trace(gateway.name, f"is cut off from the database for {seconds:.1f} s")
        self._trace.count("gateways cut off from the database")
        self.database.cut(gateway.name, seconds)


ANYTIME: tuple[str, ...] = (
    "weather", "cut", "crash_gateway", "crash_gateway", "crash_worker", "freeze", "full_disk", "fill_cart", "pause",
    "stop_worker", "reboot_gateway", "freeze_gateway", "freeze_leader", "freeze_in_group", "lose_connection",
    "unknown_commit", "cut_database", "restart_database", "lose_notifications", "slow_database", "slow_disk",
    "step_database", "step_clock",
)  # fmt: skip
