"""What the person in charge does, as use cases on a book."""

from datetime import timedelta
from typing import Any

from gateway.domain.approvals import Consent
from gateway.domain.leases import Via
from gateway.domain.models import Actor, AlertKind
from gateway.domain.operations import Alert, Decision, HistoryEvent, HistoryFilter, Resolution
from gateway.domain.paging import Page
from gateway.domain.states import OrderState, TaskStatus
from gateway.operations.actions import expire_now, requeue, resolve, withdraw
from gateway.operations.alerts import answer_alert, list_alerts
from gateway.operations.approvals import approve, deny
from gateway.operations.decisions import list_decisions
from gateway.operations.history import list_events
from gateway.operations.pause import forget_worker, pause, resume
from gateway.orders.cancel import cancel
from gateway.orders.expire import expire_due
from tests.gateway.support.book import Book

OPERATOR = Actor("operator")
MIKA = Actor("mika")
"""Somebody with a named operator's token, who may approve."""
WHY = "looked at the site"


class Person:
    """Somebody with an operator's token."""

    def __init__(self, book: Book) -> None:
        self.book = book

    def requeue(self, task_id: str = "po-1") -> Any:
        return self.book.run(requeue, task_id, WHY, OPERATOR)

    def withdraw(self, task_id: str = "po-1") -> Any:
        return self.book.run(withdraw, task_id, WHY, OPERATOR)

    def expire_now(self, task_id: str = "po-1") -> Any:
        return self.book.run(expire_now, task_id, WHY, OPERATOR)

    def cancel(self, task_id: str = "po-1") -> Any:
        return self.book.run(cancel, task_id, WHY, OPERATOR)

    def resolve(
        self,
        outcome: TaskStatus = TaskStatus.SUCCEEDED,
        task_id: str = "po-1",
        state: OrderState | None = None,
        number: str | None = None,
        *,
        although: bool = False,
        why: str = WHY,
    ) -> Any:
        told = Resolution(task_id, why, outcome, state, number, although)
        return self.book.run(resolve, self.book.policy, told, OPERATOR)

    def fail(self, task_id: str = "po-1") -> Any:
        return self.resolve(TaskStatus.FAILED, task_id)

    def approve(
        self,
        task_id: str = "po-1",
        total: int | None = None,
        *,
        valid_for: timedelta | None = None,
        why: str = WHY,
        actor: Actor = MIKA,
    ) -> Any:
        return self.book.run(approve, self.book.policy, Consent(task_id, why, total, valid_for), actor)

    def deny(self, task_id: str = "po-1", *, why: str = WHY, actor: Actor = MIKA) -> Any:
        return self.book.run(deny, task_id, why, actor)

    def pause(self, site: str = "") -> Any:
        return self.book.run(pause, site, WHY, OPERATOR)

    def resume(self, site: str = "") -> Any:
        return self.book.run(resume, self.book.policy, site, WHY, OPERATOR)

    def forget(self, worker_id: str = "w1") -> Any:
        return self.book.run(forget_worker, worker_id, WHY, OPERATOR)

    def decisions(self) -> tuple[Decision, ...]:
        return self.book.run(list_decisions, self.book.policy, None, 200).items

    def decision(self, task_id: str = "po-1") -> Decision:
        return next(decision for decision in self.decisions() if decision.task.task.task_id == task_id)

    def alerts(self, kind: AlertKind | None = None, *, cleared_too: bool = False) -> tuple[Alert, ...]:
        return self.book.run(list_alerts, kind, cleared_too, None, 200).items

    def clear(self, alert_id: int) -> Any:
        return self.book.run(answer_alert, alert_id, WHY, OPERATOR)

    def events(
        self,
        subject: str | None = None,
        *kinds: str,
        since: str | None = None,
        until: str | None = None,
        below: int | None = None,
        count: int = 200,
    ) -> Page[HistoryEvent, int]:
        return self.book.run(list_events, HistoryFilter(subject, kinds, since, until), below, count)


def bring(book: Book, status: TaskStatus, *, leased: bool = True, via: Via = Via.GRPC) -> None:
    """Bring the task po-1 into a status. A queued or failed one was never leased unless `leased`."""
    person = Person(book)
    request = book.rest_request() if via is Via.REST else book.request()
    if status is TaskStatus.QUEUED and not leased:
        book.submit()
        return
    if status is TaskStatus.FAILED and not leased:
        book.submit()
        person.cancel()
        return
    lease = book.take(request=request)
    ends = {
        TaskStatus.SUCCEEDED: OrderState.PAID,
        TaskStatus.FAILED: OrderState.CANCELLED,
        TaskStatus.NEEDS_HUMAN: OrderState.IN_CART,
    }
    if status in ends:
        book.report(lease, ends[status], sequence=1, terminal=True)
    elif status is TaskStatus.RUNNING:
        book.report(lease, OrderState.CREATED, sequence=1)
    elif status in (TaskStatus.STALE, TaskStatus.QUEUED):
        book.lapse(lease)
        if status is TaskStatus.QUEUED:
            person.requeue()
        else:
            book.run(expire_due)
