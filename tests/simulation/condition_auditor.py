"""Keeps a ledger of its own of what each task was allowed, and judges orders by it from the shop's side.

Each rule is a sentence of docs/specification.md#terms or #times, written down again.
"""

from collections.abc import Iterator
from datetime import datetime

from sandbox_shop.orders import Order
from tests.simulation.books import Books, Event


class ConditionAuditor:
    """Sees each order that the shop takes, and each permit."""

    def __init__(self, books: Books) -> None:
        self._books = books

    def placed(self, task_id: str, order: Order) -> None:
        """The shop has taken an order for a task."""
        wanted, task = self._books.conditions[task_id], self._books.tasks.get(task_id)
        if task is not None and task.cancelled_before_any_click:
            self._books.broken(f"{task_id}: ordered after its cancel had been taken", grave=True)
        if wanted.stop_before_submit:
            self._books.broken(f"{task_id}: a dry run was ordered", grave=True)
        cap, paid = wanted.max_total_yen, order.quote.payable_yen
        if cap is None:
            return
        self._books.trace.count("orders under a cap")
        if paid == cap:
            self._books.trace.count("orders at their cap, to the yen")
        if paid > cap:
            self._books.broken(f"{task_id}: ordered for {paid} yen over its cap of {cap}", grave=True)

    def leased(self, event: Event) -> None:
        """A task was taken from the queue."""
        wanted, at = self._books.conditions[event.task_id], _moment(event)
        if wanted.not_before is not None:
            self._books.trace.count("leases of tasks that were not to be taken before")
            if at < wanted.not_before:
                self._books.broken(f"{event.task_id}: leased {(wanted.not_before - at).total_seconds()} s too early")
        if wanted.not_after is not None and at > wanted.not_after and not event.task.may_be_ordered:
            self._books.broken(f"{event.task_id}: leased {(at - wanted.not_after).total_seconds()} s too late")

    def cancel_requested(self, event: Event) -> None:
        """A cancel of a task in a worker's hand was taken."""
        task = event.task
        self._books.trace.count("cancels taken before the permit")
        if task.lease.permit_until is not None:
            self._books.broken(f"{event.task_id}: a cancel was taken after the permit")
        task.cancel_requested = True
        task.cancelled_before_any_click = not task.may_be_ordered

    def ended_as_too_late(self, event: Event) -> None:
        """A queued task was ended because of its time."""
        wanted, at = self._books.conditions[event.task_id], _moment(event)
        self._books.trace.count("tasks ended as too late")
        if wanted.not_after is None or at <= wanted.not_after:
            self._books.broken(f"{event.task_id}: ended as too late at {at}, wanted until {wanted.not_after}")
        if event.task.may_be_ordered:
            self._books.broken(f"{event.task_id}: ended as too late though it may have been ordered")

    def refused(self, event: Event) -> None:
        """A permit was refused."""
        if event.details["refusal"] == "cancel_requested":
            self._books.trace.count("permits refused after a cancel")
        if event.details["refusal"] == "permit_dry_run":
            self._books.trace.count("permits refused for dry runs")
        if event.details["refusal"] == "too_late":
            self._books.trace.count("permits refused as too late")
        cap, payable = self._books.conditions[event.task_id].max_total_yen, _payable(event)
        if event.details["refusal"] != "terms_over_cap" or cap is None or payable is None:
            return
        self._books.trace.count("permits refused over a cap")
        if payable == cap + 1:
            self._books.trace.count("permits refused for one yen")

    def grounds_to_refuse(self, event: Event) -> Iterator[str]:
        """Why a permit must not be given by what its upstream demanded."""
        wanted = self._books.conditions[event.task_id]
        cap, payable = wanted.max_total_yen, _payable(event)
        if event.task.cancel_requested:
            yield "after its cancel was requested"
        if wanted.stop_before_submit:
            yield "for a dry run"
        if wanted.not_after is not None and _moment(event) > wanted.not_after:
            yield f"{(_moment(event) - wanted.not_after).total_seconds()} s after its time"
        if cap is not None and payable is None:
            yield "without terms, though the task has a cap"
        if cap is not None and payable is not None and payable > cap:
            yield f"for {payable} yen over the cap of {cap}"


def _moment(event: Event) -> datetime:
    """When it happened by the gateway's clock, which never goes back but may stand still: the one that judges."""
    return datetime.fromisoformat(event.row["occurred_at"])


def _payable(event: Event) -> int | None:
    payable: int | None = (event.details.get("terms") or {}).get("payable_yen")
    return payable
