"""Judges what several gateways on one database do together, by rules of its own (docs/postgresql.md)."""

import math
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tests.simulation.auditor import Auditor
from tests.simulation.books import Books
from tests.simulation.gateways.session import Deed, SimSession
from tests.simulation.reader import Reader
from tests.simulation.worker_machine import WorkerMachine

if TYPE_CHECKING:
    from tests.simulation.gateways.machine import SharedGatewayMachine

TERM = 15.0
"""How long one gateway leads the sweeps from its last word."""
AFTERWARDS = 18.0
"""So late may come what a leader began in its term: it waits for the database, and for the lock."""
CLOCK_TOLERANCE = 1.0
"""By how much the service clock may be behind the true time, in seconds; it may jump forward by two more."""
VOUCHED = 2.0
WAITING_TOGETHER = 9.0
"""An order and a worker that may have it wait for this long at most where all is well: a lost hint costs a poll."""
SWEEP = "_expire"
TAKE_TERM = "take_term"


class GatewaysAuditor:
    """Sees each commit of the shared database, what callers are told, and who waits."""

    def __init__(self, books: Books, auditor: Auditor) -> None:
        self._books = books
        self._auditor = auditor
        self.leader = ""
        self.committing = ""
        """The gateway whose group is made durable just now."""
        self._terms: dict[str, float] = {}
        self._clock: tuple[int, str, float] | None = None
        self._behind = 0.0
        self._behind_at_most = CLOCK_TOLERANCE
        self._in_doubt = False
        self.thawed_at: Callable[[str], float] = lambda _name: -math.inf
        """When a gateway that was frozen went on."""

    # Each commit

    def committed(self, database: sqlite3.Connection, ran_at: float) -> None:
        """As for a single gateway."""
        self._books.gateway = self.committing
        self._auditor.committed(database, ran_at)

    def made(self, session: SimSession) -> None:
        """A group has become durable."""
        name, now = session.process.name, self._books.now()
        for deed in session.deeds:
            deed.made += 1
            if deed.made > 1:
                self._books.broken(f"{deed.name} was done twice")
            if deed.name == TAKE_TERM and deed.result:
                self._leads(name, session.opened_at)
            if deed.name == SWEEP:
                self._swept(name, now)
        self._judge_clock(session)

    def _leads(self, name: str, at: float) -> None:
        for other, began in self._terms.items():
            # Where nobody vouched for the clock, it may have jumped past the other's term.
            if other != name and at < began + TERM - CLOCK_TOLERANCE and not self._in_doubt:
                self._books.broken(f"{name} leads the sweeps, and so does {other}")
        self._terms[name] = at
        if self.leader not in ("", name):
            self._books.trace.count("leaders changed")
        self.leader = name

    def _swept(self, name: str, now: float) -> None:
        if now > self._terms.get(name, -math.inf) + TERM + AFTERWARDS and now > self.thawed_at(name) + AFTERWARDS:
            self._books.broken(f"{name} sweeps, and does not lead")

    def _judge_clock(self, session: SimSession) -> None:
        row = session.connection.execute(
            "SELECT elapsed_us, utc FROM store_groups ORDER BY number DESC LIMIT 1"
        ).fetchone()
        elapsed, utc, at = row["elapsed_us"], row["utc"], session.opened_at
        before, self._clock = self._clock, (elapsed, utc, at)
        if before is None:
            return
        if elapsed < before[0] or utc < before[1]:
            self._books.broken("the service clock goes back")
        gained = (elapsed - before[0]) / 1e6 - (at - before[2])
        # By what it was behind it may go forward: it catches up.
        ahead = gained - self._behind
        self._behind = max(0.0, -ahead)
        if self._in_doubt:
            return
        if ahead > VOUCHED + CLOCK_TOLERANCE:
            self._books.broken(f"the service clock jumps by {ahead:.1f} s")
        if self._behind > self._behind_at_most:
            self._books.broken(f"the service clock is {self._behind:.1f} s behind")

    def set_back_in_a_wait(self, seconds: float) -> None:
        """The database's clock was set back while a gateway waited for the lock: it cannot tell how long that was."""
        self._books.trace.count("clocks set back in a wait for the lock")
        self._behind_at_most += seconds
        self._books.tolerance += seconds

    def nobody_vouched(self) -> None:
        """A gateway has started whose clock nobody could vouch for: the server's clock, which may be wrong, judges."""
        self._books.trace.count("clocks that nobody vouched for")
        self._in_doubt = True
        self._books.gateway_rebooted_at, self._books.gateway_set_back = self._books.now(), math.inf

    # What callers are told

    def told(self, deed: Deed, *, is_done: bool) -> None:
        """A caller has its answer."""
        if is_done and not deed.made:
            self._books.broken(f"{deed.name} was told as done, and is not")
        if not is_done and deed.made:
            self._books.broken(f"{deed.name} was told as not done, and is")

    def served_nobody(self, operation: str) -> None:
        """An operation was run for a caller that had gone before it began."""
        self._auditor.served_nobody(operation)


class WaitAuditor:
    """Looks every second at who waits: an order and a worker that may have it come together where all is well."""

    def __init__(
        self,
        books: Books,
        read: Reader,
        workers: Sequence[WorkerMachine],
        gateways: "Mapping[int, SharedGatewayMachine]",
        is_well: "Callable[[SharedGatewayMachine], bool]",
    ) -> None:
        self._books = books
        self._read = read
        self._workers = workers
        self._gateways = gateways
        self._is_well = is_well
        self._waits_since: dict[str, tuple[Any, float]] = {}
        self._queued_since: dict[str, float] = {}
        self._waited_at: dict[str, Any] = {}

    def look(self) -> None:
        """Once a second."""
        now = self._books.now()
        self._note_workers(now)
        self._note_orders(now)
        for worker in self._workers:
            if worker.name not in self._waits_since:
                continue
            stream, since = self._waits_since[worker.name]
            for task_id, queued in self._queued_since.items():
                together = now - max(since, queued)
                if together > WAITING_TOGETHER and self._books.targets[task_id] in worker.serves.targets:
                    self._books.broken(f"{task_id}: waits beside {worker.name} for {together:.0f} s")
                    self._waits_since[worker.name] = stream, now

    def lease_sent(self, worker: WorkerMachine, stream: Any, lease: Any) -> None:
        """A gateway sends a lease into a stream: not where its worker has begun to wait in another one since."""
        noted, since = self._waits_since.get(worker.name, (None, math.inf))
        seen = self._books.lease_with(lease.task_id, lease.lease_token)
        has_left = stream is not worker.stream and noted is worker.stream
        if has_left and seen is not None and since < seen.began:
            self._books.broken(f"{lease.task_id}: goes to a stream that {worker.name} has left")

    def _note_workers(self, now: float) -> None:
        for worker in self._workers:
            stream = worker.stream
            gateway = None if stream is None else self._gateways.get(id(stream.served_by))
            process = worker.process
            is_there = stream is not None and not stream.is_over and process is not None and process.runs
            waits = (
                is_there
                and gateway is not None
                and gateway.gateway is not None
                and self._is_well(gateway)
                and not worker.gateway_link.is_cut
                and any(request.session_id == worker.session_id for request in gateway.gateway.dispatcher.waiting())
            )
            if not waits:
                self._waits_since.pop(worker.name, None)
            elif self._waits_since.get(worker.name, (None,))[0] is not stream:
                self._waits_since[worker.name] = stream, now
                if gateway is not self._waited_at.setdefault(worker.name, gateway):
                    self._books.trace.count("workers that wait at another gateway")
                    self._waited_at[worker.name] = gateway

    def _note_orders(self, now: float) -> None:
        if self._read("SELECT 1 FROM pauses"):
            self._queued_since.clear()
            return
        layout, targets = self._books.layout, self._books.targets
        rows = self._read("SELECT task_id, status FROM tasks WHERE status IN ('queued', 'leased', 'running')")
        taken = {layout.slot(targets[row["task_id"]]) for row in rows if row["status"] != "queued"}
        queued = [row["task_id"] for row in rows if row["status"] == "queued"]
        free = [task_id for task_id in queued if layout.slot(targets[task_id]) not in taken]
        self._queued_since = {task_id: self._queued_since.get(task_id, now) for task_id in sorted(free)}
