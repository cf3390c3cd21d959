"""The order machine reached by its use cases: one transaction each, on a real SQLite file."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from gateway.domain.leases import Holder as Claim
from gateway.domain.leases import Lease, LeaseRequest, Permit, PermitRequest, Renewed, Verification, Via
from gateway.domain.models import (
    Actor,
    LeaseScope,
    NewReport,
    Policy,
    Reported,
    Submission,
    Submitted,
    TaskDetail,
)
from gateway.domain.operations import Resolution
from gateway.domain.refusals import Refusal
from gateway.domain.search import TaskSearch
from gateway.domain.states import OrderState, TaskStatus
from gateway.operations.actions import expire_now, requeue, resolve, withdraw
from gateway.operations.pause import pause, resume
from gateway.operations.restore import mark_restored
from gateway.orders.cancel import cancel
from gateway.orders.expire import expire_due
from gateway.orders.hold import renew
from gateway.orders.lease import open_lease, reclaim, undo_lease
from gateway.orders.permit import request_permit
from gateway.orders.report import report
from gateway.orders.search import search_tasks
from gateway.orders.submit import submit
from tests.gateway.support.book import POLICY, Book
from tests.gateway.support.manual_time import TICK, ManualTime
from tests.properties.order_model import REASON
from tests.properties.order_terms import (
    FACTS,
    Filed,
    Given,
    Holder,
    Look,
    Process,
    Refused,
    Seen,
    Told,
    View,
    facts_of,
)

PERSON = Actor("operator")
DECISIONS: dict[str, Callable[..., TaskDetail | Refusal]] = {
    "requeue": requeue,
    "withdraw": withdraw,
    "expire_now": expire_now,
}


class OrdersInUseCases:
    """See `tests.properties.order_terms.Orders`."""

    inside = True

    def __init__(self, folder: Path, time: ManualTime, scope: str) -> None:
        self._tokens = count(1)
        self._book = Book(folder / "gateway.db", time, _policy(scope))

    def submit(self, task_id: str, site: str, intent_json: str) -> Filed:
        done: Submitted = self._run(
            submit, self._book.policy, Submission(task_id, site, intent_json, None), Actor("upstream")
        )
        return Filed(done.created, done.status, done.intent_matches)

    def cancel(self, task_id: str) -> TaskStatus | Refused:
        return _status(self._run(cancel, task_id, REASON, Actor("upstream")))

    def lease(self, process: Process, sites: tuple[str, ...]) -> Given | None:
        lease = self._run(open_lease, self._book.policy, _request(process, sites), self._token())
        return None if lease is None else _given(lease)

    def reclaim(self, process: Process, task_id: str) -> Given | Refused:
        told = self._run(reclaim, self._book.policy, task_id, _request(process, POLICY.sites), self._token())
        return _refused(told) if isinstance(told, Refusal) else _given(told)

    def renew(self, holder: Holder) -> int | Refused:
        told: Renewed | Refusal = self._run(renew, self._book.policy, _claim(holder))
        return _refused(told) if isinstance(told, Refusal) else told.lease_age // TICK

    def report(self, holder: Holder, told: Told) -> tuple[TaskStatus, bool] | Refused:
        facts: dict[str, Any] = dict.fromkeys(FACTS) | {"detail": ""} | dict(told.facts)
        wanted = NewReport(
            state=told.state,
            pay_deadline=None,
            sequence=told.sequence,
            terminal=told.terminal,
            terminal_status=told.ends_as,
            **facts,
        )
        done: Reported | Refusal = self._run(report, _claim(holder), wanted)
        return _refused(done) if isinstance(done, Refusal) else (done.status, done.recorded)

    def permit(self, holder: Holder, journal: str, attests: bool, look: Look | None) -> int | Refused:
        seen = None if look is None else Verification(look.verdict, look.covered, look.evidence, look.begun * TICK)
        request = PermitRequest(_claim(holder), journal, attests, seen)
        told: Permit | Refusal = self._run(request_permit, self._book.policy, request)
        return _refused(told) if isinstance(told, Refusal) else told.valid_for // TICK

    def decide(self, decision: str, task_id: str) -> TaskStatus | Refused:
        return _status(self._run(DECISIONS[decision], task_id, REASON, PERSON))

    def resolve(
        self, task_id: str, outcome: TaskStatus, state: OrderState | None, number: str | None, although: bool
    ) -> TaskStatus | Refused:
        resolution = Resolution(task_id, REASON, outcome, state, number, although)
        return _status(self._run(resolve, self._book.policy, resolution, PERSON))

    def pause(self, site: str) -> frozenset[str]:
        return frozenset(each.site or "" for each in self._run(pause, site, REASON, PERSON))

    def resume(self, site: str) -> frozenset[str]:
        return frozenset(each.site or "" for each in self._run(resume, self._book.policy, site, REASON, PERSON))

    def give_back(self, task_id: str, token: str) -> bool:
        done: bool = self._run(undo_lease, task_id, token, Actor("gateway"))
        return done

    def sweep(self) -> None:
        self._run(expire_due)
        self._run(self._book.clock.save)

    def restore(self) -> None:
        self._run(mark_restored, "a-backup.db", PERSON, self._token)

    def restart(self, scope: str, *, crash: bool = False, meanwhile: Callable[[], None] = lambda: None) -> None:
        if not crash:
            self._run(self._book.clock.save)
        self._book.database.close()
        meanwhile()
        self._book.restart_from_closed(_policy(scope))
        self.sweep()

    def view(self) -> View:
        page = self._run(search_tasks, TaskSearch(), None, 100)
        late = self._book.rows("SELECT count(*) AS count FROM events WHERE kind = 'report_refused'")
        return View(tuple(map(_seen, page.items)), frozenset(self._book.alerts()), late[0]["count"])

    def close(self) -> None:
        self._book.database.close()

    def _run(self, operation: Any, *args: Any) -> Any:
        return self._book.run(operation, *args)

    def _token(self) -> str:
        return f"token-{next(self._tokens):037d}"


def _policy(scope: str) -> Policy:
    return replace(POLICY, scope=LeaseScope(scope))


def _request(process: Process, sites: tuple[str, ...]) -> LeaseRequest:
    via = Via.REST if process.session is None else Via.GRPC
    return LeaseRequest(process.worker, process.session, process.journal, sites, via, "worker")


def _claim(holder: Holder) -> Claim:
    return Claim(holder.task_id, holder.worker, holder.token, "worker")


def _refused(refusal: Refusal) -> Refused:
    return Refused(frozenset({refusal.reason}), refusal.recorded_late)


def _status(told: TaskDetail | Refusal) -> TaskStatus | Refused:
    return _refused(told) if isinstance(told, Refusal) else told.task.status


def _given(lease: Lease) -> Given:
    numbers, incomplete = frozenset(lease.others.site_order_ids), lease.others.incomplete
    return Given(
        lease.task_id, lease.lease_count, lease.known_state, lease.intent_json, numbers, incomplete, lease.token
    )


def _seen(detail: TaskDetail) -> Seen:
    task = detail.task
    return Seen(
        task_id=task.task_id,
        site=task.site,
        intent_json=task.intent_json,
        status=task.status,
        owner=task.lease_owner,
        lease_count=task.lease_count,
        latest=task.latest_state,
        placement=task.placement,
        permitted=task.submit_permitted_at is not None,
        reports=tuple((each.state, facts_of(each)) for each in detail.reports),
    )
