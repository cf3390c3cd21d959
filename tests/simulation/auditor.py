"""Judges the gateway by rules of its own, at every commit. Its sibling `site_auditor` judges what the workers do.

None of the rules here is taken from the code under test; each is a sentence of docs/specification.md, written
down again.
"""

import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

from gateway.domain.models import LeaseScope
from tests.simulation.approval_auditor import ApprovalAuditor
from tests.simulation.books import ACKNOWLEDGE, PLACED, TICK, TTL, Books, Event, LeaseSeen, TaskSeen, settled_at
from tests.simulation.budget_auditor import BudgetAuditor
from tests.simulation.condition_auditor import ConditionAuditor
from tests.simulation.evidence_auditor import EvidenceAuditor
from tests.simulation.permit_auditor import PermitAuditor

ACTIVE = ("leased", "running")
ENDED = ("succeeded", "failed", "needs_human")
OPEN = ("queued", "leased", "running")
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
    "requeue": (("stale", "needs_human"), ("queued",)),
    "withdraw": (("queued",), ("stale",)),
    "cancel": (("queued",), ("failed",)),
    "resolve": (("stale", "needs_human", "failed", "succeeded"), ("succeeded", "failed")),
    "permit": (ACTIVE, ACTIVE),
    "restore": ((*OPEN, "stale", "needs_human"), ("stale",)),
    "too_late": (("queued",), ("failed",)),
    "approve": ((*OPEN, "stale", "needs_human"), (*OPEN, "stale", "needs_human")),
    "deny": (("queued",), ("failed",)),
    "approval_expire": (("queued",), ("queued",)),
}
STUCK = {"stale": "task_stale", "needs_human": "task_needs_human"}
"""Statuses in which a task waits for a person, and the kind of alert that must stand as long as it does."""
NOT_KNOWN = "it is not known whether the order was placed"
"""So a worker says that a look has told it nothing."""
_LEASES_BY_SCOPE = {
    LeaseScope.ACCOUNT: "leases, a slot an account",
    LeaseScope.SITE: "leases, a slot a site",
    LeaseScope.GLOBAL: "leases, a slot for all",
}
OF_HOLDER = ("acknowledge", "renew", "report", "finish", "permit")


class Auditor:
    """Sees every commit of the gateway."""

    def __init__(self, books: Books, evidence: EvidenceAuditor) -> None:
        self._books = books
        self._evidence = evidence
        self._permits = PermitAuditor(books, evidence)
        self._conditions = ConditionAuditor(books)
        self._budgets = BudgetAuditor(books)
        self._approvals = ApprovalAuditor(books)
        self.backup: Books | None = None

    def committed(self, database: sqlite3.Connection, ran_at: float) -> None:
        """`ran_at`: when the operations that are committed now were run."""
        books = self._books
        rows = database.execute(
            "SELECT sequence, occurred_at, subject, kind, actor, status_before, status_after, reason, details_json"
            " FROM events WHERE sequence > ? ORDER BY sequence",
            (books.last_event,),
        ).fetchall()
        if not rows:
            return
        subjects = set()
        for row in rows:
            books.last_event = row["sequence"]
            if row["kind"] in ("pause", "resume") or (row["kind"] == "restore" and not row["subject"]):
                books.paused = row["kind"] != "resume"
            self._budgets.told(row)
            if row["subject"] in books.intents:
                subjects.add(row["subject"])
                self._judge(database, row, ran_at)
        self._judge_slots(database)
        for subject in sorted(subjects):
            self._judge_task(database, subject)
            self._judge_mirror(database, subject)
        self._judge_alerts(database)
        self._budgets.judge(database)

    def _judge_slots(self, database: sqlite3.Connection) -> None:
        """One active task a slot, and each in the slot of its own target."""
        layout, active = self._books.layout, Counter[str]()
        for row in database.execute("SELECT task_id, slot FROM tasks WHERE status IN ('leased', 'running')"):
            slot = layout.slot(self._books.targets[row["task_id"]])
            active[slot] += 1
            if row["slot"] != slot:
                self._books.broken(f"{row['task_id']}: occupies the slot {row['slot']}, its own is {slot}")
        for count in active.values():
            if count > 1:
                self._books.broken(f"{count} tasks are active in one slot")
        if len(active) > 1:
            self._books.trace.count("slots occupied at once")

    def restored(self, path: Path) -> None:
        """The gateway has been put back to the moment of the last backup."""
        assert self.backup is not None
        self._books.restore(self.backup)
        with closing(sqlite3.connect(path)) as database:
            database.row_factory = sqlite3.Row
            self.committed(database, self._books.now())
            for task_id, task in self._books.tasks.items():
                if task.status in OPEN or (task.status == "needs_human" and not task.may_be_ordered):
                    self._books.broken(f"{task_id}: is {task.status} after a restore")
        if not self._books.paused:
            self._books.broken("dispatch goes on after a restore")

    def back_up(self) -> None:
        """The gateway is backed up."""
        self.backup = self._books.back_up()

    def served_nobody(self, operation: str) -> None:
        """An operation was run for a caller that had gone before it began."""
        self._books.broken(f"{operation} was done for a caller that had gone")

    def went_on(self) -> None:
        """The gateway has begun a transaction after a commit of which nobody knows what became."""
        self._books.broken("the gateway goes on after a commit whose outcome nobody knows")

    def _judge(self, database: sqlite3.Connection, row: sqlite3.Row, ran_at: float) -> None:
        broken = self._books.broken
        task_id, kind = row["subject"], row["kind"]
        self._books.trace("gateway", f"{task_id}: {kind} {row['status_before']} -> {row['status_after']}")
        self._books.trace.count(f"event {kind}")
        task = self._books.tasks.setdefault(task_id, TaskSeen())
        event = Event(database, task_id, task, row, json.loads(row["details_json"]), ran_at)
        if kind == "report_refused":
            self._note_report(event)
            self._budgets.followed(event)
        if kind == "cancel_refused" and event.details["refusal"] == "cancel_too_late":
            self._books.trace.count("cancels that came too late")
        if kind == "cancel_request":
            self._conditions.cancel_requested(event)
        if kind == "permit_refused":
            self._permits.refused(event)
        if kind not in MOVES:
            if row["status_after"] != row["status_before"]:
                broken(f"{task_id}: {kind} moved the task")
            return
        before, after = MOVES[kind]
        if row["status_before"] not in before or row["status_after"] not in after:
            broken(f"{task_id}: {kind} led from {row['status_before']} to {row['status_after']}")
        if task.status is not None and row["status_before"] != task.status:
            broken(f"{task_id}: {kind} starts at {row['status_before']}, but the task was {task.status}")
        task.status = row["status_after"]
        if kind in OF_HOLDER and task.leases and ran_at >= task.lease.deadline + self._doubt(task.lease):
            broken(f"{task_id}: {kind} was accepted after the lease had expired")
        getattr(self, f"_on_{kind}", self._on_other)(event)

    def _doubt(self, lease: LeaseSeen) -> float:
        """By how much the gateway may take a lease for younger than it is."""
        books = self._books
        return books.gateway_set_back if books.gateway_rebooted_at > lease.began else books.tolerance - TICK

    def _on_other(self, event: Event) -> None: ...

    # Leases

    def _on_lease(self, event: Event) -> None:
        broken, task, number = self._books.broken, event.task, event.details["lease_count"]
        if event.row["kind"] == "lease":
            self._conditions.leased(event)
            self._approvals.leased(event)
        if self._books.paused and event.row["kind"] == "lease":
            broken(f"{event.task_id}: leased while dispatch is paused")
        if task.leases and not task.let_go_by_person:
            broken(f"{event.task_id}: leased again without a person")
        task.let_go_by_person = False
        self._books.trace.count(_LEASES_BY_SCOPE[self._books.layout.scope])
        over_rest = event.details["via"] == "rest"
        seen = LeaseSeen(number, event.at, event.at + (TTL if over_rest else ACKNOWLEDGE), over_rest=over_rest)
        seen.acknowledged, seen.told_as_placed = over_rest, task.told_in_time
        seen.given_at = self._books.gateway
        if self._books.filed_at.get(event.task_id, seen.given_at) != seen.given_at:
            self._books.trace.count("leases of orders filed at another gateway")
        seen.in_doubt = self._books.has_doubtful_order(event.task_id)
        row = event.database.execute(
            "SELECT token, journal_id FROM leases WHERE task_id = ? AND lease_number = ?", (event.task_id, number)
        ).fetchone()
        if row is not None:
            seen.token, seen.journal_id = row["token"], row["journal_id"]
        if any(lease.token == seen.token for lease in task.leases):
            broken(f"{event.task_id}: the token of an earlier lease was given again")
        task.leases.append(seen)

    def _on_too_late(self, event: Event) -> None:
        self._conditions.ended_as_too_late(event)

    def _on_approve(self, event: Event) -> None:
        self._approvals.approved(event)

    def _on_deny(self, event: Event) -> None:
        self._approvals.denied(event)

    def _on_approval_expire(self, event: Event) -> None:
        self._approvals.ran_out(event)

    def _on_reclaim(self, event: Event) -> None:
        if event.task_id not in self._books.wished:
            self._books.broken(f"{event.task_id}: reclaimed without a person")
        event.task.let_go_by_person = True
        self._on_lease(event)

    def _on_undo(self, event: Event) -> None:
        task, broken = event.task, self._books.broken
        if task.lease.acknowledged:
            broken(f"{event.task_id}: an acknowledged lease was undone")
        undone = task.leases.pop()
        self._books.undone.add(undone.token)
        if undone.token in self._books.came:
            broken(f"{event.task_id}: a lease was undone that its worker has")
        if event.database.execute("SELECT 1 FROM leases WHERE token = ?", (undone.token,)).fetchone() is not None:
            broken(f"{event.task_id}: another lease than the current one was undone")
        if undone.number > 1:
            task.let_go_by_person = True  # it is where the person had put it

    def _on_acknowledge(self, event: Event) -> None:
        event.task.lease.acknowledged, event.task.lease.acknowledged_at = True, event.at
        event.task.lease.deadline = event.at + TTL
        self._count_elsewhere(event.task.lease)

    def _on_renew(self, event: Event) -> None:
        event.task.lease.deadline = event.at + TTL
        self._count_elsewhere(event.task.lease)

    def _count_elsewhere(self, lease: LeaseSeen) -> None:
        if lease.given_at != self._books.gateway:
            self._books.trace.count("leases renewed at another gateway")

    def _on_submit(self, event: Event) -> None:
        self._books.filed_at[event.task_id] = self._books.gateway
        self._approvals.submitted(event)

    def _on_expire(self, event: Event) -> None:
        lease, books = event.task.lease, self._books
        if event.at < lease.deadline - books.tolerance and books.gateway_rebooted_at < lease.began:
            books.broken(f"{event.task_id}: expired {lease.deadline - event.at:.1f} s before its deadline")
        self._end(event, "restart" if "restart" in event.row["reason"] else "expire")

    def _on_expire_now(self, event: Event) -> None:
        self._end(event, "expire_now")

    def _on_restore(self, event: Event) -> None:
        """Nobody knows what happened since: as if somebody unknown had been permitted to click until now."""
        if event.task.leases:
            self._end(event, "restore")
        unknown = LeaseSeen(event.details["lease_count"], event.at, event.at, acknowledged=True)
        unknown.permit_until = unknown.ended = event.at
        event.task.approval = None
        event.task.leases.append(unknown)

    def _end(self, event: Event, how: str) -> None:
        lease = event.task.lease
        if lease.ended is None:
            lease.ended, lease.ended_by = event.at, how

    # Reports

    def _on_report(self, event: Event) -> None:
        task, details = event.task, event.details
        self._note_report(event)
        self._evidence.must_be_there(event.task_id, details.get("evidence_ref"))
        if task.lease.over_rest:
            task.newest_state = None  # without a sequence nobody can tell which is the newest
            return
        sequence = details["sequence"]
        known = self._books.tokens_of_reports.get((event.task_id, details["state"], sequence), ())
        if task.lease.token not in known:
            self._books.broken(f"{event.task_id}: report {sequence} was accepted without the token of the lease")
        if (task.lease.number, sequence) > task.newest:  # the same one again says nothing that a person has not seen
            task.newest, task.newest_state = (task.lease.number, sequence), details["state"]
        self._budgets.followed(event)

    def _on_report_after_end(self, event: Event) -> None:
        self._on_report(event)

    def _on_finish(self, event: Event) -> None:
        self._on_report(event)
        self._end(event, "finish")
        lease, broken = event.task.lease, self._books.broken
        if event.row["status_after"] == "failed" and not lease.over_rest and self._books.has_click(event.task_id):
            broken(f"{event.task_id}: reported as failed though a click is on record")
        look = self._books.looks.get(lease.token)
        if look is None or not look.read or not look.covered:
            return
        if event.details.get("detail", "").startswith(NOT_KNOWN) and not look.own and not look.unexplained:
            broken(f"{event.task_id}: its worker says not known, though its journal knows whose each order is")
        if look.others or lease.in_doubt:
            return
        told = event.database.execute("SELECT 1 FROM order_numbers WHERE task_id = ?", (event.task_id,)).fetchone()
        if look.own and not told and not any(worker.disk.was_full for worker in self._books.workers):
            broken(f"{event.task_id}: its worker saw {look.own[0]} alone in the list and does not report it")

    def _note_report(self, event: Event) -> None:
        task, details = event.task, event.details
        if details.get("state") in PLACED or details.get("site_order_id"):
            task.told_as_placed = True
        if event.row["kind"] != "report_refused":
            task.told_in_time |= details.get("state") in PLACED
            task.told_number |= bool(details.get("site_order_id"))
        if details.get("sequence"):
            task.sequences.add((details["state"], details["sequence"]))

    # Persons

    def _on_requeue(self, event: Event) -> None:
        task = event.task
        if event.row["actor"] != "api":
            self._books.broken(f"{event.task_id}: requeued by {event.row['actor']}")
        if event.row["status_before"] == "needs_human" and task.may_be_ordered:
            self._books.broken(f"{event.task_id}: requeued after its end, though it may have been ordered")
        task.let_go_by_person = True

    def _on_resolve(self, event: Event) -> None:
        self._budgets.followed(event)
        event.task.newest_state = None  # a person's statement counts from here, until a newer report
        permitted = [lease for lease in event.task.leases if lease.may_have_clicked]
        if (
            permitted
            and event.row["status_after"] == "failed"
            and event.at < settled_at(permitted) - self._books.tolerance
        ):
            early = settled_at(permitted) - event.at
            self._books.broken(f"{event.task_id}: resolved to failed {early:.1f} s before it was settled")

    def _on_withdraw(self, event: Event) -> None:
        event.task.let_go_by_person = False

    def _on_permit(self, event: Event) -> None:
        self._permits.granted(event)

    # What the tables say

    def _judge_task(self, database: sqlite3.Connection, task_id: str) -> None:
        broken, task = self._books.broken, self._books.tasks[task_id]
        row = database.execute(
            "SELECT status, lease_count, latest_state, order_known FROM tasks WHERE task_id = ?", (task_id,)
        ).fetchone()
        if row["status"] != task.status:
            broken(f"{task_id}: is {row['status']}, but the history says {task.status}")
            task.status = row["status"]
        if row["lease_count"] != len(task.leases):
            broken(f"{task_id}: was leased {row['lease_count']} times, the history says {len(task.leases)}")
        if task.newest_state is not None and row["latest_state"] != task.newest_state:
            broken(f"{task_id}: the latest state is {row['latest_state']}, last reported was {task.newest_state}")
        if task.told_as_placed and not row["order_known"]:
            broken(f"{task_id}: a report has named an order, and none is known")

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
            self._books.broken(f"{task_id}: is stuck without an alert {kind}")
        for task_id, kind in sorted(standing - stuck):
            self._books.broken(f"{task_id}: the alert {kind} stands though the task is not stuck")

    def _judge_mirror(self, database: sqlite3.Connection, task_id: str) -> None:
        for row in database.execute("SELECT * FROM reports WHERE task_id = ?", (task_id,)):
            values = {name: row[name] for name in MIRRORED}
            known = self._books.mirror.get((task_id, row["state"]), {})
            erased = [name for name, value in known.items() if value not in (None, "") and values[name] in (None, "")]
            if erased:
                self._books.broken(f"{task_id}: {', '.join(erased)} of {row['state']} was erased from the mirror")
            self._books.mirror[task_id, row["state"]] = values
