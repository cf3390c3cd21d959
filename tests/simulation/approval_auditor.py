"""Keeps a book of its own of who agreed to which order, and judges permits and the shop's orders by it.

Each rule is a sentence of docs/specification.md#approval, written down again.
"""

from collections.abc import Iterator
from datetime import datetime

from sandbox_shop.orders import Order
from tests.simulation.books import ApprovalSeen, Books, Event


class ApprovalAuditor:
    """Sees each decision, each permit, and each order that the shop takes."""

    def __init__(self, books: Books) -> None:
        self._books = books

    def submitted(self, event: Event) -> None:
        """A task was filed."""
        event.task.filed_by = event.row["actor"]
        if self._books.conditions[event.task_id].requires_approval:
            self._books.trace.count("orders that need an approval")

    def approved(self, event: Event) -> None:
        """Somebody agreed."""
        by, task = event.row["actor"], event.task
        if by == task.filed_by:
            self._books.broken(f"{event.task_id}: approved by {by}, who filed it")
        until = datetime.fromisoformat(event.details["valid_until"])
        task.approval = ApprovalSeen(by, event.details["max_total_yen"], until)

    def denied(self, event: Event) -> None:
        """Somebody did not agree."""
        self._books.trace.count("orders denied")
        if event.task.may_be_ordered:
            self._books.broken(f"{event.task_id}: denied though it may have been ordered")
        self._books.denied.add(event.task_id)

    def ran_out(self, event: Event) -> None:
        """An approval has run out in the queue."""
        self._books.trace.count("approvals that ran out in the queue")
        if event.task.approval is None or _moment(event) <= event.task.approval.until:
            self._books.broken(f"{event.task_id}: its approval was ended before its time")

    def leased(self, event: Event) -> None:
        """A task was taken from the queue."""
        if grounds := list(self._grounds(event)):
            self._books.broken(f"{event.task_id}: handed out {grounds[0]}")

    def grounds_to_refuse(self, event: Event) -> Iterator[str]:
        """Why a permit must not be given for want of an approval."""
        yield from self._grounds(event)
        approval = event.task.approval
        if not self._books.conditions[event.task_id].requires_approval or approval is None:
            return
        payable = (event.details.get("terms") or {}).get("payable_yen")
        if payable is None:
            yield "without terms, though it was approved for a total"
        elif payable > approval.total_yen:
            yield f"for {payable} yen, though {approval.total_yen} were approved"

    def _grounds(self, event: Event) -> Iterator[str]:
        approval = event.task.approval
        if not self._books.conditions[event.task_id].requires_approval:
            return
        if approval is None:
            yield "without an approval"
        elif approval.used:
            yield "with an approval that was used before"
        elif _moment(event) > approval.until:
            yield f"{(_moment(event) - approval.until).total_seconds()} s after its approval ran out"

    def granted(self, event: Event) -> None:
        """A permit uses the approval up."""
        approval = event.task.approval
        if not self._books.conditions[event.task_id].requires_approval or approval is None:
            return
        approval.used = True
        self._books.trace.count("permits with an approval")
        payable = (event.details.get("terms") or {}).get("payable_yen")
        if payable == approval.total_yen:
            self._books.trace.count("permits at the approved total, to the yen")
        most = self._books.approved_yen.get(event.task_id, 0)
        self._books.approved_yen[event.task_id] = max(most, approval.total_yen)

    def refused(self, event: Event) -> None:
        """A permit was refused."""
        if event.details["refusal"].startswith("approval_"):
            self._books.trace.count(f"permits refused: {event.details['refusal']}")

    def placed(self, task_id: str, order: Order) -> None:
        """The shop has taken an order for a task."""
        if task_id in self._books.denied:
            self._books.broken(f"{task_id}: ordered though it was denied", grave=True)
        if not self._books.conditions[task_id].requires_approval:
            return
        paid, most = order.quote.payable_yen, self._books.approved_yen.get(task_id)
        if most is None:
            self._books.broken(f"{task_id}: ordered without an approval", grave=True)
        elif paid > most:
            self._books.broken(f"{task_id}: ordered for {paid} yen, though {most} were approved", grave=True)


def _moment(event: Event) -> datetime:
    """When it happened by the gateway's clock: the one that judges."""
    return datetime.fromisoformat(event.row["occurred_at"])
