"""Judges a run by rules of its own: at every commit of the gateway, at every step on the site, and at the end.

None of the rules here is taken from the code under test; each is the specification's sentence, written down again.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ordergateway.v1 import orders_pb2

from tests.simulation.gateway_machine import POLICY
from tests.simulation.trace import Trace
from tests.simulation.worker_machine import WorkerMachine
from worker.sandbox_shop.orders import Order

TTL = POLICY.lease_ttl.total_seconds()
ACKNOWLEDGE = POLICY.acknowledge_within.total_seconds()
PERMIT_TTL = POLICY.permit_ttl.total_seconds()
SETTLE = POLICY.permit_settle.total_seconds()
PLACED = ("ordered", "awaiting_payment", "paid", "shipped", "delivered", "cancelled")
ACTIVE = ("leased", "running")
ENDED = ("succeeded", "failed", "needs_human")
MIRRORED = ("payable_yen", "pay_deadline", "site_order_id", "evidence_ref", "detail", "error_code")

# kind of event: statuses before, statuses after
MOVES = {
    "submit": ((None,), ("queued",)),
    "lease": (("queued",), ("leased",)),
    "undo": (("leased",), ("queued",)),
    "acknowledge": (("leased",), ("leased",)),
    "renew": (ACTIVE, ACTIVE),
    "report": (ACTIVE, ("running",)),
    "finish": (ACTIVE, ENDED),
    "report_after_end": (ENDED, ENDED),
    "expire": (ACTIVE, ("stale",)),
    "expire_now": (ACTIVE, ("stale",)),
    "reclaim": (("stale",), ("leased",)),
    "requeue": (("stale",), ("queued",)),
    "withdraw": (("queued",), ("stale",)),
    "cancel": (("queued",), ("failed",)),
    "resolve": (("stale", "needs_human", "failed"), ("succeeded", "failed")),
    "permit": (ACTIVE, ACTIVE),
}
STUCK = {"stale": "task_stale", "needs_human": "task_needs_human"}
"""Statuses in which a task waits for a person, and the kind of alert that must stand as long as it does."""
OF_HOLDER = ("acknowledge", "renew", "report", "finish", "permit")


class Violation(Exception):  # noqa: N818 -- what an invariant suffers
    """An invariant is broken; the message says which and how."""


@dataclass
class LeaseSeen:
    """A lease as the auditor saw it come and go; times in virtual seconds."""

    number: int
    began: float
    deadline: float
    token: str = ""
    journal_id: str = ""
    acknowledged: bool = False
    permit_until: float | None = None
    ended: float | None = None
    ended_by: str = ""
    writers: set[str] = field(default_factory=set)


@dataclass
class TaskSeen:
    """A task as the auditor knows it."""

    status: str | None = None
    leases: list[LeaseSeen] = field(default_factory=list)
    told_as_placed: bool = False
    let_go_by_person: bool = False
    sequences: set[tuple[str, int]] = field(default_factory=set)
    newest: tuple[int, int] = (0, 0)
    newest_state: str | None = None

    @property
    def lease(self) -> LeaseSeen:
        return self.leases[-1]


class Auditor:
    """Sees everything. `wished`: tasks that a person asked to reclaim."""

    def __init__(self, now: Callable[[], float], trace: Trace) -> None:
        self._now = now
        self._trace = trace
        self.tasks: dict[str, TaskSeen] = {}
        self.intents: dict[str, dict[str, Any]] = {}
        self.orders: dict[str, list[Order]] = {}
        self.wished: set[str] = set()
        self.workers: list[WorkerMachine] = []
        self.accepted_submits: set[str] = set()
        self.violations: list[str] = []
        self.paused = False
        self.gateway_rebooted_at = -1.0
        self.gateway_set_back = 0.0
        """By how much the gateway's wall clock was set back: after a reboot it has nothing else to count by."""
        self.tokens_of_reports: dict[tuple[str, str, int], set[str]] = {}
        """(task, state, sequence) of each report that any worker sent, to the tokens it presented."""
        self._last_event = 0
        self._mirror: dict[tuple[str, str], dict[str, Any]] = {}

    def broken(self, what: str) -> None:
        """Notes that an invariant is broken."""
        self._trace("AUDITOR", f"VIOLATION: {what}")
        self.violations.append(what)

    def report_sent(self, request: Any) -> None:
        """A worker sends a report: notes the token it presents."""
        state = orders_pb2.OrderState.Name(request.state).removeprefix("ORDER_STATE_").lower()
        tokens = self.tokens_of_reports.setdefault((request.task_id, state, request.sequence), set())
        tokens.add(request.lease_token)

    def answered(self, path: str, request: Any, sent: float) -> None:
        """A worker got a good answer: only the token of a lease that lived then gets one."""
        method = path.rpartition("/")[2]
        if method not in ("RenewLease", "RequestSubmitPermit"):
            return
        leases = self.tasks[request.task_id].leases
        lease = next((lease for lease in leases if lease.token == request.lease_token), None)
        if lease is None or (lease.ended is not None and lease.ended < sent):
            self.broken(f"{request.task_id}: {method} was granted to the token of a lease that had ended")

    # The gateway, at every commit

    def committed(self, database: sqlite3.Connection, ran_at: float) -> None:
        """`ran_at`: when the operations that are committed now were run."""
        events = database.execute(
            "SELECT sequence, subject, kind, actor, status_before, status_after, reason, details_json"
            " FROM events WHERE sequence > ? ORDER BY sequence",
            (self._last_event,),
        ).fetchall()
        if not events:
            return
        subjects = set()
        for event in events:
            self._last_event = event["sequence"]
            if event["kind"] in ("pause", "resume"):
                self.paused = event["kind"] == "pause"
            if event["subject"] in self.intents:
                subjects.add(event["subject"])
                self._judge(database, event, ran_at)
        active = database.execute("SELECT task_id FROM tasks WHERE status IN ('leased', 'running')").fetchall()
        if len(active) > 1:
            self.broken(f"{len(active)} tasks are active in one slot")
        for subject in sorted(subjects):
            self._judge_task(database, subject)
            self._judge_mirror(database, subject)
        self._judge_alerts(database)

    def _judge(self, database: sqlite3.Connection, event: sqlite3.Row, ran_at: float) -> None:
        task_id, kind = event["subject"], event["kind"]
        self._trace("gateway", f"{task_id}: {kind} {event['status_before']} -> {event['status_after']}")
        self._trace.count(f"event {kind}")
        task = self.tasks.setdefault(task_id, TaskSeen())
        details = json.loads(event["details_json"])
        if kind == "report_refused":
            self._note_report(task, kind, details)
        if kind not in MOVES:
            if event["status_after"] != event["status_before"]:
                self.broken(f"{task_id}: {kind} moved the task")
            return
        before, after = MOVES[kind]
        if event["status_before"] not in before or event["status_after"] not in after:
            self.broken(f"{task_id}: {kind} led from {event['status_before']} to {event['status_after']}")
        if task.status is not None and event["status_before"] != task.status:
            self.broken(f"{task_id}: {kind} starts at {event['status_before']}, but the task was {task.status}")
        task.status = event["status_after"]
        if kind in OF_HOLDER and task.leases and ran_at >= task.lease.deadline + self._doubt(task.lease):
            self.broken(f"{task_id}: {kind} was accepted after the lease had run out")
        getattr(self, f"_on_{kind}", self._on_other)(database, task_id, task, event, details, ran_at)

    def _doubt(self, lease: LeaseSeen) -> float:
        """By how much the gateway may take a lease for younger than it is."""
        return self.gateway_set_back if self.gateway_rebooted_at > lease.began else 0.0

    def _on_other(self, *_: Any) -> None: ...

    def _on_lease(self, database: Any, task_id: str, task: TaskSeen, event: Any, details: Any, ran_at: float) -> None:
        if self.paused and event["kind"] == "lease":
            self.broken(f"{task_id}: leased while dispatch is paused")
        if task.leases and not task.let_go_by_person:
            self.broken(f"{task_id}: leased again without a person")
        task.let_go_by_person = False
        row = database.execute(
            "SELECT token, journal_id FROM leases WHERE task_id = ? AND lease_number = ?",
            (task_id, details["lease_count"]),
        ).fetchone()
        deadline = ran_at + ACKNOWLEDGE
        seen = LeaseSeen(details["lease_count"], ran_at, deadline)
        if row is not None:
            seen.token, seen.journal_id = row["token"], row["journal_id"]
        if any(lease.token == seen.token for lease in task.leases):
            self.broken(f"{task_id}: the token of an earlier lease was given again")
        task.leases.append(seen)

    def _on_reclaim(self, database: Any, task_id: str, task: TaskSeen, event: Any, details: Any, ran_at: float) -> None:
        if task_id not in self.wished:
            self.broken(f"{task_id}: reclaimed without a person")
        task.let_go_by_person = True
        self._on_lease(database, task_id, task, event, details, ran_at)

    def _on_undo(self, database: Any, task_id: str, task: TaskSeen, event: Any, details: Any, ran_at: float) -> None:
        if task.lease.acknowledged:
            self.broken(f"{task_id}: an acknowledged lease was undone")
        undone = task.leases.pop()
        if database.execute("SELECT 1 FROM leases WHERE token = ?", (undone.token,)).fetchone() is not None:
            self.broken(f"{task_id}: another lease than the current one was undone")
        if undone.number > 1:
            task.let_go_by_person = True  # it is where the person had put it

    def _on_acknowledge(
        self, database: Any, task_id: str, task: TaskSeen, event: Any, details: Any, ran_at: float
    ) -> None:
        task.lease.acknowledged = True
        task.lease.deadline = ran_at + TTL

    def _on_renew(self, database: Any, task_id: str, task: TaskSeen, event: Any, details: Any, ran_at: float) -> None:
        task.lease.deadline = ran_at + TTL

    def _on_report(self, database: Any, task_id: str, task: TaskSeen, event: Any, details: Any, ran_at: float) -> None:
        self._note_report(task, event["kind"], details)
        self._evidence_is_there(task_id, details.get("evidence_ref"))
        sequence = details["sequence"]
        if task.lease.token not in self.tokens_of_reports.get((task_id, details["state"], sequence), ()):
            self.broken(f"{task_id}: report {sequence} was accepted without the token of the lease")
        if (task.lease.number, sequence) > task.newest:  # the same one again says nothing that a person has not seen
            task.newest, task.newest_state = (task.lease.number, sequence), details["state"]

    def _on_report_after_end(self, *about: Any) -> None:
        self._on_report(*about)

    def _on_finish(self, database: Any, task_id: str, task: TaskSeen, event: Any, details: Any, ran_at: float) -> None:
        self._on_report(database, task_id, task, event, details, ran_at)
        self._end(task, "finish", ran_at)
        if event["status_after"] == "failed" and self.has_click(task_id):
            self.broken(f"{task_id}: told as failed though a click is on record")

    def _on_expire(self, database: Any, task_id: str, task: TaskSeen, event: Any, details: Any, ran_at: float) -> None:
        self._end(task, "restart" if "restart" in event["reason"] else "expire", ran_at)

    def _on_expire_now(
        self, database: Any, task_id: str, task: TaskSeen, event: Any, details: Any, ran_at: float
    ) -> None:
        self._end(task, "expire_now", ran_at)

    def _on_requeue(self, database: Any, task_id: str, task: TaskSeen, event: Any, details: Any, ran_at: float) -> None:
        if event["actor"] != "api":
            self.broken(f"{task_id}: requeued by {event['actor']}")
        task.let_go_by_person = True

    def _on_resolve(self, database: Any, task_id: str, task: TaskSeen, event: Any, details: Any, ran_at: float) -> None:
        task.newest_state = None  # a person's statement counts from here, until a newer report
        permitted = [lease for lease in task.leases if lease.permit_until is not None]
        if permitted and event["status_after"] == "failed" and ran_at < _settled(permitted) - 0.001:
            self.broken(f"{task_id}: resolved to failed {_settled(permitted) - ran_at:.1f} s before it was settled")

    def _on_withdraw(
        self, database: Any, task_id: str, task: TaskSeen, event: Any, details: Any, ran_at: float
    ) -> None:
        task.let_go_by_person = False

    def _on_permit(self, database: Any, task_id: str, task: TaskSeen, event: Any, details: Any, ran_at: float) -> None:
        lease = task.lease
        if self.paused:
            self.broken(f"{task_id}: a permit while dispatch is paused")
        if not lease.acknowledged:
            self.broken(f"{task_id}: a permit on a lease that was not acknowledged")
        if lease.permit_until is not None:
            self.broken(f"{task_id}: two permits on one lease")
        if task.told_as_placed:
            self.broken(f"{task_id}: a permit though a report tells of an order")
        look = details.get("verification") or {}
        if lease.number > 1:
            fine = (
                look.get("verdict") == "not_ordered" and look.get("window_fully_covered") and look.get("evidence_ref")
            )
            if not fine:
                self.broken(f"{task_id}: a permit for a recovered task without a verification: {look}")
            else:
                self._evidence_is_there(task_id, look["evidence_ref"])
        earlier = [other for other in task.leases[:-1] if other.permit_until is not None]
        if earlier:
            if any(other.journal_id != lease.journal_id for other in earlier):
                self.broken(f"{task_id}: a second permit to another journal")
            if any(w.journal_id == lease.journal_id and self.has_click(task_id, w) for w in self.workers):
                self.broken(f"{task_id}: a second permit to a journal that holds a click record")
            settled = _settled(earlier)
            looked = lease.began + look.get("begun_at_us", 0) / 1e6
            if ran_at < settled - 0.001 or looked < settled - 0.001:
                self.broken(f"{task_id}: a second permit {settled - min(ran_at, looked):.1f} s before it was settled")
            self._trace.count("second permits")
        lease.permit_until = ran_at + PERMIT_TTL

    def _end(self, task: TaskSeen, how: str, ran_at: float) -> None:
        task.lease.ended, task.lease.ended_by = ran_at, how

    def _note_report(self, task: TaskSeen, kind: str, details: dict[str, Any]) -> None:
        if details.get("state") in PLACED or details.get("site_order_id"):
            task.told_as_placed = True
        if details.get("sequence"):
            task.sequences.add((details["state"], details["sequence"]))

    def _judge_task(self, database: sqlite3.Connection, task_id: str) -> None:
        row = database.execute(
            "SELECT status, lease_count, latest_state FROM tasks WHERE task_id = ?", (task_id,)
        ).fetchone()
        task = self.tasks[task_id]
        if row["status"] != task.status:
            self.broken(f"{task_id}: is {row['status']}, but the history says {task.status}")
            task.status = row["status"]
        if row["lease_count"] != len(task.leases):
            self.broken(f"{task_id}: was leased {row['lease_count']} times, the history says {len(task.leases)}")

        if task.newest_state is not None and row["latest_state"] != task.newest_state:
            self.broken(f"{task_id}: the latest state is {row['latest_state']}, last told was {task.newest_state}")

    def _judge_alerts(self, database: sqlite3.Connection) -> None:
        """Every stuck task has its alert, and no other task has one that says it is stuck."""
        stuck = {
            (row["task_id"], STUCK[row["status"]])
            for row in database.execute("SELECT task_id, status FROM tasks WHERE status IN ('stale', 'needs_human')")
        }
        standing = {
            (row["subject"], row["kind"])
            for row in database.execute("SELECT subject, kind FROM alerts WHERE cleared_at IS NULL")
            if row["kind"] in STUCK.values()
        }
        for task_id, kind in sorted(stuck - standing):
            self.broken(f"{task_id}: is stuck without an alert {kind}")
        for task_id, kind in sorted(standing - stuck):
            self.broken(f"{task_id}: the alert {kind} stands though the task is not stuck")

    def _judge_mirror(self, database: sqlite3.Connection, task_id: str) -> None:
        for row in database.execute("SELECT * FROM reports WHERE task_id = ?", (task_id,)):
            values = {name: row[name] for name in MIRRORED}
            known = self._mirror.get((task_id, row["state"]), {})
            erased = [name for name, value in known.items() if value not in (None, "") and values[name] in (None, "")]
            if erased:
                self.broken(f"{task_id}: {', '.join(erased)} of {row['state']} was erased from the mirror")
            self._mirror[task_id, row["state"]] = values

    def _evidence_is_there(self, task_id: str, ref: str | None) -> None:
        if ref is not None and not any(_is_whole(worker.evidence_dir, ref) for worker in self.workers):
            self.broken(f"{task_id}: the gateway mirrors {ref}, which is not on any worker's disk")

    # The site, at every step of a worker

    def write_begins(self, worker: WorkerMachine, what: str) -> None:
        """A worker may only write to the site under a lease that lives."""
        task_id = worker.current_task
        lease = self._lease_of(worker)
        if lease is None:
            self.broken(f"{task_id}: {what} by {worker.name} without a lease")
            return
        if lease.journal_id != worker.journal_id:
            self.broken(f"{task_id}: {worker.name} acts under a lease of another journal")
        lease.writers.add(worker.name)
        if len(lease.writers) > 1:
            self.broken(f"{task_id}: {' and '.join(sorted(lease.writers))} act under one lease")
        process = worker.process
        if process is not None and process.thawed_at == self._now():
            return  # frozen between its last look at the clock and this step
        if not lease.acknowledged:
            self.broken(f"{task_id}: {what} by {worker.name} under a lease that is not acknowledged")
            return
        if lease.ended_by in ("expire_now", "restart") and self._now() < lease.deadline:
            return  # nobody could tell the worker in time
        if lease.ended_by == "finish":
            self.broken(f"{task_id}: {what} by {worker.name} after the task had ended")
            return
        if self._now() >= lease.deadline:
            self.broken(f"{task_id}: {what} by {worker.name} {self._now() - lease.deadline:.1f} s after its lease")

    def submit_begins(self, worker: WorkerMachine) -> None:
        task_id = worker.current_task
        self._trace(worker.name, f"{task_id}: CLICKS")
        self._trace.count("clicks")
        self.write_begins(worker, "submit")
        if not self.has_click(task_id, worker):
            self.broken(f"{task_id}: {worker.name} clicks without a click record")
        lease = self._lease_of(worker)
        if lease is None or lease.permit_until is None:
            self.broken(f"{task_id}: {worker.name} clicks without a permit")
        elif self._now() >= lease.permit_until:
            self.broken(f"{task_id}: {worker.name} clicks {self._now() - lease.permit_until:.1f} s after its permit")

    def placed(self, worker: WorkerMachine, task_id: str, order: Order) -> None:
        """The shop has taken an order that this worker sent for this task."""
        self._trace("shop", f"takes order {order.number} for {task_id}, {order.quote.payable_yen} yen")
        self._trace.count("orders placed")
        orders = self.orders.setdefault(task_id, [])
        orders.append(order)
        if len(orders) > 1:
            self._trace.count("duplicates")
            self.broken(f"{task_id}: ORDERED {len(orders)} TIMES")
        intent = self.intents[task_id]
        wanted = Counter({(_code(item["item_url"]), item.get("variant_id")): 0 for item in intent["items"]})
        for item in intent["items"]:
            wanted[_code(item["item_url"]), item.get("variant_id")] += item["quantity"]
        got: Counter[tuple[str, str | None]] = Counter()
        for line in order.quote.lines:
            got[line.code, line.variant_id] += line.quantity
        if got != wanted:
            self.broken(f"{task_id}: ordered {dict(got)}, wanted {dict(wanted)}")
        if order.quote.payable_yen > intent["max_total_yen"]:
            self.broken(f"{task_id}: ordered for {order.quote.payable_yen} yen, allowed were {intent['max_total_yen']}")

    def pay_begins(self, worker: WorkerMachine, number: str) -> None:
        self.write_begins(worker, "pay")
        lease = self._lease_of(worker)
        if lease is not None and lease.number > 1:
            self.broken(f"{worker.current_task}: a recovered run pays")
        if number not in [order.number for order in self.orders.get(worker.current_task, [])]:
            self.broken(f"{worker.current_task}: pays {number}, which is not its order")

    def paid(self, order: Order) -> None:
        self._trace.count("payments")
        if order.payments > 1:
            self.broken(f"order {order.number} was paid {order.payments} times")

    def _lease_of(self, worker: WorkerMachine) -> LeaseSeen | None:
        task = self.tasks.get(worker.current_task)
        token = worker.tokens.get(worker.current_task)
        if task is None or token is None:
            return None
        return next((lease for lease in task.leases if lease.token == token), None)

    def has_click(self, task_id: str, worker: WorkerMachine | None = None) -> bool:
        """True if a journal (this worker's, or any) holds a click record of the task, on disk."""
        for machine in self.workers if worker is None else [worker]:
            if machine.read("SELECT 1 FROM clicks WHERE task_id = ?", task_id):
                return True
        return False


def _settled(leases: list[LeaseSeen]) -> float:
    """When a click under one of these permits must show on the site."""
    return max(max(lease.permit_until or 0.0, lease.ended or 0.0) for lease in leases) + SETTLE


def _is_whole(root: Path, ref: str) -> bool:
    meta = root / f"{ref}.meta.json"
    if not meta.exists():
        return False
    return all((root / ref).with_name(name).exists() for name in json.loads(meta.read_text("utf-8"))["sha256"])


def _code(item_url: str) -> str:
    return item_url.rstrip("/").rpartition("/")[2]
