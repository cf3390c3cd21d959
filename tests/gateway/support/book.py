"""The use cases on a real database, one transaction each, under a clock that a test moves."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from common.terms_digest import terms_digest
from gateway.domain.instant import Instant
from gateway.domain.leases import (
    Holder,
    Lease,
    LeaseRequest,
    Permit,
    PermitRequest,
    Renewed,
    Verdict,
    Verification,
    Via,
)
from gateway.domain.models import Actor, LeaseScope, NewReport, Policy, Reported, Submission, Submitted, Task
from gateway.domain.refusals import Reason, Refusal
from gateway.domain.states import OrderState, TaskStatus
from gateway.domain.terms import Terms, TermsItem
from gateway.orders.cancel import cancel
from gateway.orders.hold import renew
from gateway.orders.lease import open_lease, reclaim, undo_lease
from gateway.orders.permit import request_permit
from gateway.orders.report import report
from gateway.orders.start import Started, resume_after_start
from gateway.orders.submit import submit
from gateway.store import leases, pauses, tasks
from gateway.store.port import Transaction
from tests.gateway.support.databases import open_book
from tests.gateway.support.manual_time import ManualTime

P = ParamSpec("P")
T = TypeVar("T")

POLICY = Policy(
    sites=("rakuten", "sandbox"),
    scope=LeaseScope.GLOBAL,
    lease_ttl=timedelta(seconds=300),
    acknowledge_within=timedelta(seconds=30),
    longest_wait=timedelta(seconds=60),
    permit_ttl=timedelta(seconds=30),
    permit_settle=timedelta(seconds=900),
    max_intent_bytes=256 * 1024,
    worker_offline_after=timedelta(seconds=300),
    task_unclaimed_after=timedelta(seconds=600),
)
JOURNAL = "journal-of-worker-1"
OTHER_JOURNAL = "journal-of-worker-2"
UPSTREAM = Actor("upstream")


def terms(
    payable_yen: int, item_url: str = "https://shop.example/item/a/b/", unit_price_yen: int | None = 500
) -> Terms:
    """Terms of one item."""
    item = TermsItem(item_url, "white-m", 2, unit_price_yen)
    return Terms(payable_yen, (item,), terms_digest(payable_yen, [(item_url, "white-m", 2, unit_price_yen)]))


LOOK = Verification(
    Verdict.NOT_ORDERED, window_fully_covered=True, evidence_ref="po-1/r2/00-verify", begun_at=timedelta()
)
"""A look at the site that lets a recovered task go on; `begun_at` is replaced as a test needs."""


def refused(outcome: object) -> Refusal:
    """The refusal that a use case returned."""
    assert isinstance(outcome, Refusal), outcome
    return outcome


def reason(outcome: object) -> Reason:
    """Why a use case refused."""
    return refused(outcome).reason


class Book:
    """The gateway's book: runs use cases as the writer thread does, one transaction each."""

    def __init__(self, path: Path, time: ManualTime, policy: Policy = POLICY) -> None:
        self.path, self.time, self.policy = path, time, policy
        self._tokens = 0
        self._open()
        self.notified: set[str] = set()
        self.run(self.clock.save)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.database.close()

    def run(self, operation: Callable[Concatenate[Transaction, Instant, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run one use case in one transaction."""
        result: T
        result, notified = self.database.run(lambda tx, now: operation(tx, now, *args, **kwargs))
        self.notified |= notified
        return result

    def restart(self, policy: Policy | None = None, *, crash: bool = False) -> Started:
        """Stop the process and start another one on the same file. A crash writes down no clock on its way."""
        if not crash:
            self.run(self.clock.save)
        self.database.close()
        return self.restart_from_closed(policy)

    def restart_from_closed(self, policy: Policy | None = None) -> Started:
        """Start a process on the file, which nobody has open."""
        self.policy = policy or self.policy
        self._open()
        started = self.run(
            resume_after_start,
            self.policy,
            clock_continues=self.clock.continues,
            moved_ahead_us=self.clock.moved_ahead_us,
            wall_utc=self.clock.wall_utc(),
        )
        self.run(self.clock.save)
        return started

    def _open(self) -> None:
        self.database = open_book(self.path, self.time)
        self.connection: Any = self.database.connection
        self.clock = self.database.clock

    def new_token(self) -> str:
        self._tokens += 1
        return f"token-{self._tokens:037d}"

    # What upstreams do.

    def wanted(
        self, task_id: str = "po-1", site: str = "rakuten", intent_json: str = "{}", **fields: Any
    ) -> Submission:
        return Submission(task_id, site, intent_json, None, **fields)

    def submit(self, task_id: str = "po-1", site: str = "rakuten", intent_json: str = "{}", **fields: Any) -> Submitted:
        filed = self.run(submit, self.policy, self.wanted(task_id, site, intent_json, **fields), UPSTREAM)
        assert isinstance(filed, Submitted)
        return filed

    def cancel(self, task_id: str = "po-1") -> Any:
        return self.run(cancel, task_id, "not wanted", UPSTREAM)

    # What workers do.

    def request(self, worker: str = "w1", session: str = "", journal: str = JOURNAL, **fields: Any) -> LeaseRequest:
        session = session or f"session-of-{worker:*<6}".replace("*", "0")
        wanted = LeaseRequest(worker, session, journal, self.policy.sites, Via.GRPC, "worker")
        return replace(wanted, **fields)

    def rest_request(self, worker: str = "w1") -> LeaseRequest:
        return LeaseRequest(worker, None, None, self.policy.sites, Via.REST, "worker")

    def open(self, request: LeaseRequest | None = None, token: str | None = None) -> Lease | None:
        """Open a lease stream; None if it would have to wait."""
        opened = self.run(open_lease, self.policy, request or self.request(), token or self.new_token())
        assert not isinstance(opened, Refusal), opened
        return opened

    def take(self, task_id: str = "po-1", *, acknowledge: bool = True, request: LeaseRequest | None = None) -> Lease:
        """Lease this very task, filing it first if it is not there, and acknowledge the lease."""
        if self.connection.execute("SELECT 1 FROM tasks WHERE task_id = ?", (task_id,)).fetchone() is None:
            self.submit(task_id)
        lease = self.open(request)
        assert lease is not None
        assert lease.task_id == task_id
        if acknowledge:
            assert isinstance(self.renew(lease), Renewed)
        return lease

    def lapse(self, lease: Lease) -> None:
        """Let the lease run out: time stands exactly at its deadline afterwards."""
        deadline = self.task(lease.task_id).lease_deadline_us
        assert deadline is not None
        self.time.advance((deadline - self.clock.now().elapsed_us) * timedelta(microseconds=1))

    def retake(self, lease: Lease, *, journal: str = JOURNAL, acknowledge: bool = True) -> Lease:
        """Let a lease run out and reclaim its task."""
        self.lapse(lease)
        return self.retake_stale(lease, journal=journal, acknowledge=acknowledge)

    def retake_stale(self, lease: Lease, *, journal: str = JOURNAL, acknowledge: bool = True) -> Lease:
        """Reclaim a task whose lease has run out."""
        again = self.reclaim(lease.task_id, self.request(session="session-after-reclaim", journal=journal))
        assert isinstance(again, Lease), again
        if acknowledge:
            assert isinstance(self.renew(again), Renewed)
        return again

    def reclaim(self, task_id: str = "po-1", request: LeaseRequest | None = None) -> Lease | Refusal:
        return self.run(reclaim, self.policy, task_id, request or self.request(), self.new_token())

    def undo(self, lease: Lease) -> bool:
        return self.run(undo_lease, lease.task_id, lease.token, Actor("gateway"))

    def holder(self, lease: Lease, **fields: Any) -> Holder:
        owner = self.run(lambda tx, _: leases.current(tx, tasks.get(tx, lease.task_id)))
        assert owner is not None
        return replace(Holder(lease.task_id, owner.worker_id, lease.token, "worker"), **fields)

    def renew(self, lease: Lease, *, with_others: bool = False, **fields: Any) -> Renewed | Refusal:
        return self.run(renew, self.policy, self.holder(lease, **fields), with_others)

    def report(
        self,
        lease: Lease,
        state: OrderState | None = OrderState.CREATED,
        *,
        sequence: int | None = None,
        terminal: bool = False,
        terminal_status: TaskStatus | None = None,
        holder: Holder | None = None,
        **fields: Any,
    ) -> Reported | Refusal:
        told = NewReport(state, None, None, None, None, "", None, sequence, terminal, terminal_status)
        return self.run(report, holder or self.holder(lease), replace(told, **fields))

    def permit(
        self,
        lease: Lease,
        *,
        journal: str = JOURNAL,
        attests: bool = False,
        look: Verification | None = None,
        terms: Terms | None = None,
        **fields: Any,
    ) -> Permit | Refusal:
        return self.run(
            request_permit, self.policy, PermitRequest(self.holder(lease, **fields), journal, attests, look, terms)
        )

    def lease_age(self, lease: Lease) -> timedelta:
        """What the worker quotes as the begin of a look that it makes now."""
        renewed = self.renew(lease)
        assert isinstance(renewed, Renewed), renewed
        return renewed.lease_age

    # What people do.

    def pause(self, site: str = "", why: str = "the card is being replaced") -> None:
        self.run(lambda tx, now: pauses.add(tx, now, site, why, Actor("operator")))

    def resume(self, site: str = "") -> None:
        self.run(lambda tx, _: pauses.lift(tx, site))

    # What is in the book.

    def task(self, task_id: str = "po-1") -> Task:
        return self.run(lambda tx, _: tasks.get(tx, task_id))

    def status(self, task_id: str = "po-1") -> TaskStatus:
        return self.task(task_id).status

    def rows(self, sql: str, *parameters: Any) -> list[dict[str, Any]]:
        return [dict(row) for row in self.connection.execute(sql, parameters)]

    def events(self, task_id: str = "po-1") -> list[str]:
        """Kinds of a task's events, the oldest first."""
        return [
            row["kind"] for row in self.rows("SELECT kind FROM events WHERE subject = ? ORDER BY sequence", task_id)
        ]

    def details(self, kind: str, task_id: str = "po-1") -> list[dict[str, Any]]:
        """Details of a task's events of one kind, the oldest first."""
        found = self.rows(
            "SELECT details_json FROM events WHERE subject = ? AND kind = ? ORDER BY sequence", task_id, kind
        )
        return [json.loads(row["details_json"]) for row in found]

    def alerts(self) -> set[tuple[str, str]]:
        """Kind and subject of the alerts that stand."""
        return {
            (row["kind"], row["subject"])
            for row in self.rows("SELECT kind, subject FROM alerts WHERE cleared_at IS NULL")
        }
