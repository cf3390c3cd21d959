"""Judges whether a permit is given exactly when it may be (docs/specification.md#submit-permit)."""

import math

from tests.simulation.approval_auditor import ApprovalAuditor
from tests.simulation.books import PERMIT_TTL, Books, Event, LeaseSeen, TaskSeen, settled_at
from tests.simulation.budget_auditor import BudgetAuditor
from tests.simulation.condition_auditor import ConditionAuditor
from tests.simulation.evidence_auditor import EvidenceAuditor


class PermitAuditor:
    """Sees each permit that is given or refused."""

    def __init__(self, books: Books, evidence: EvidenceAuditor) -> None:
        self._books = books
        self._evidence = evidence
        self._conditions = ConditionAuditor(books)
        self._budgets = BudgetAuditor(books)
        self._approvals = ApprovalAuditor(books)

    def granted(self, event: Event) -> None:
        """A lease gets its permit."""
        lease, trace = event.task.lease, self._books.trace
        if lease.permit_until is not None:
            self._books.broken(f"{event.task_id}: two permits on one lease")
        for ground in self._grounds_to_refuse(event, tolerance=self._books.tolerance):
            self._books.broken(f"{event.task_id}: a permit {ground}")
        look = event.details.get("verification") or {}
        if lease.number > 1:
            trace.count("recovered tasks permitted")
            self._evidence.must_be_there(event.task_id, look.get("evidence_ref"))
        if any(other.may_have_clicked for other in event.task.leases[:-1]):
            trace.count("second permits")
            before = [other.permitted_at for other in event.task.leases[:-1] if other.permit_until is not None]
            if any(gateway != self._books.gateway for gateway in before):
                trace.count("second permits across gateways")
        self._budgets.granted(event)
        self._approvals.granted(event)
        lease.permitted_at = self._books.gateway
        lease.permit_until = self._books.permits[lease.token] = event.at + PERMIT_TTL

    def refused(self, event: Event) -> None:
        """A permit is refused for a reason, not because it would be safer."""
        refusal, task = event.details["refusal"], event.task
        if refusal == "lease_invalid" or not task.leases:
            return
        self._conditions.refused(event)
        self._budgets.refused(event)
        self._approvals.refused(event)
        if refusal == "permit_not_settled" and self._clock_may_be_behind(task):
            return
        if not self._permit_may_be_over(task.lease, event.at) and not self._grounds_to_refuse(
            event, tolerance=-self._books.tolerance
        ):
            self._books.broken(f"{event.task_id}: a permit was refused without a ground: {refusal}")

    def _permit_may_be_over(self, lease: LeaseSeen, at: float) -> bool:
        """A lease has one permit. A reboot ends it early: nobody knows how much of its time was left."""
        if lease.permit_until is None:
            return False
        granted_at = lease.permit_until - PERMIT_TTL
        return at >= lease.permit_until - self._books.tolerance or self._books.gateway_rebooted_at > granted_at

    def _clock_may_be_behind(self, task: TaskSeen) -> bool:
        """The gateway's clock loses the time that its machine was off for: it settles a lease late, never early."""
        earlier = [other for other in task.leases[:-1] if other.may_have_clicked]
        ended = max((other.ended or 0.0 for other in earlier), default=math.inf)
        return self._books.gateway_rebooted_at > ended

    def _grounds_to_refuse(self, event: Event, *, tolerance: float) -> list[str]:
        """Why a permit must not be given now (docs/specification.md#submit-permit)."""
        task, lease = event.task, event.task.lease
        look = event.details.get("verification") or {}
        grounds = [*self._conditions.grounds_to_refuse(event), *self._budgets.grounds_to_refuse(event)]
        grounds += self._approvals.grounds_to_refuse(event)
        if self._books.paused:
            grounds.append("while dispatch is paused")
        if not lease.acknowledged:
            grounds.append("on a lease that was not acknowledged")
        if task.told_as_placed:
            grounds.append("though a report tells of an order")
        not_ordered = look.get("verdict") == "not_ordered" and look.get("window_fully_covered")
        if lease.number > 1 and not (not_ordered and look.get("evidence_ref")):
            grounds.append(f"for a recovered task without a verification: {look}")
        earlier = [other for other in task.leases[:-1] if other.may_have_clicked]
        if not earlier:
            return grounds
        if any(other.journal_id != lease.journal_id for other in earlier):
            grounds.append("to another journal than the first")
        holders = [worker for worker in self._books.workers if worker.journal_id == lease.journal_id]
        if any(self._books.has_click(event.task_id, worker) for worker in holders):
            grounds.append("to a journal that holds a click record")
        looked = lease.began + look.get("begun_at_us", 0) / 1e6
        early = settled_at(earlier) - min(event.at, looked)
        if early > tolerance:
            grounds.append(f"{early:.1f} s before the first was settled")
        return grounds
