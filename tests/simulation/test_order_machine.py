"""The order machine against a small model of it: any sequence of requests by anybody, at any time.

The model knows the specification's sections 2 to 4 and nothing of tables or SQL. After every step, what it expects is
compared with what the gateway holds: statuses, lease counts, mirror, latest state, placement.
"""

import shutil
import tempfile
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from gateway.domain.models import Actor, Lease, Permit, Renewed, Reported, TaskDetail, Verdict
from gateway.domain.operations import Resolution
from gateway.domain.refusals import Reason, Refusal
from gateway.domain.states import ENDED, OrderState, Placement, TaskStatus
from gateway.operations.decide import expire_now, requeue, resolve, withdraw
from gateway.orders.expire import expire_lapsed
from tests.gateway.support.book import LOOK, POLICY, Book
from tests.gateway.support.manual_time import ManualTime
from tests.simulation.mutants import MUTANTS

TASKS = ("t-1", "t-2")
WORKERS = {"w1": "journal-of-worker-1", "w2": "journal-of-worker-2"}
TTL, ACKNOWLEDGE = POLICY.lease_ttl.total_seconds(), POLICY.acknowledge_within.total_seconds()
PERMIT_TTL, SETTLE = POLICY.permit_ttl.total_seconds(), POLICY.permit_settle.total_seconds()
NOTHING_PLACED = (OrderState.CREATED, OrderState.IN_CART)
S = TaskStatus


@dataclass
class Held:
    """A lease in the model; times in seconds."""

    lease: Lease
    worker: str
    number: int
    began: float
    deadline: float
    acknowledged: bool = False
    permit_until: float | None = None
    ended: float | None = None


@dataclass
class Order:
    """A task in the model. `mirror`: order state to (age, what is known)."""

    position: int
    status: TaskStatus = S.QUEUED
    leases: list[Held] = field(default_factory=list)
    mirror: dict[OrderState, dict[str, Any]] = field(default_factory=dict)
    ages: dict[OrderState, tuple[int, int]] = field(default_factory=dict)
    latest: OrderState | None = None
    latest_age: tuple[int, int] = (0, 0)
    end: tuple[OrderState, TaskStatus] | None = None
    known: bool = False

    @property
    def is_active(self) -> bool:
        return self.status in (S.LEASED, S.RUNNING)

    @property
    def held(self) -> Held:
        return self.leases[-1]

    @property
    def placement(self) -> Placement:
        if self.known:
            return Placement.CERTAIN
        clicking = any(lease.permit_until is not None for lease in self.leases)
        return Placement.POSSIBLE if clicking else Placement.IMPOSSIBLE


class OrderMachine(RuleBasedStateMachine):
    """Everybody's requests, in any order."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="machine-"))
        self.time = ManualTime()
        self.book = Book(self.folder / "gateway.db", self.time)
        self.now = 0.0
        self.orders: dict[str, Order] = {}
        self.paused = False
        self.sequence = 0
        self.sessions = dict.fromkeys(WORKERS, 0)

    def teardown(self) -> None:
        if hasattr(self, "book"):
            self.book.database.close()
            shutil.rmtree(self.folder)

    # What happens most: several steps at once, so that the machine gets far

    @rule(worker=st.sampled_from(sorted(WORKERS)), task_id=st.sampled_from(TASKS))
    def take_an_order(self, worker: str, task_id: str) -> None:
        self.submit(task_id, again=False)
        self.wait_for_an_order(worker, new_process=False)
        self._renew_what_is_held()

    @precondition(lambda self: self._active() is not None)
    @rule(worker=st.sampled_from(sorted(WORKERS)), by_reclaim=st.booleans())
    def the_lease_runs_out_and_a_person_lets_go(self, worker: str, by_reclaim: bool) -> None:
        task_id, order = self._active() or ("", Order(0))
        self.time_passes(round(order.held.deadline - self.now, 6))
        self._look()
        if by_reclaim:
            self.reclaim(task_id, worker)
        else:
            self.requeue(task_id)
            self.wait_for_an_order(worker, new_process=False)
        self._renew_what_is_held()

    @precondition(lambda self: self._active() is not None)
    @rule(seconds=st.sampled_from([29.0, 250.0, 899.0, 930.0]))
    def the_lease_is_held_for(self, seconds: float) -> None:
        while seconds > 0:
            self.time_passes(min(seconds, 250.0))
            seconds -= 250.0
            self._renew_what_is_held()

    @precondition(lambda self: self._active() is not None)
    @rule()
    def a_permit_is_asked_for_as_it_should_be(self) -> None:
        order = (self._active() or ("", Order(0)))[1]
        held = order.held
        verdict = None if held.number == 1 else Verdict.NOT_ORDERED
        self._ask(order, held, attests=True, verdict=verdict, covered=True, own_journal=True, looked_now=True)

    @precondition(lambda self: self._active() is not None and not self.paused)
    @rule(
        worker=st.sampled_from(sorted(WORKERS)), waits=st.sampled_from([0.0, 899.0, 930.0]),
        attests=st.sampled_from([True, True, False]), looked_now=st.booleans(), reported=st.booleans(),
    )  # fmt: skip
    def a_permitted_order_is_taken_again(
        self, worker: str, waits: float, attests: bool, looked_now: bool, reported: bool
    ) -> None:
        self.a_permit_is_asked_for_as_it_should_be()
        self.the_lease_runs_out_and_a_person_lets_go(worker, by_reclaim=True)
        active = self._active()
        if active is None:
            return
        order = active[1]
        if reported:  # what the former holder says now comes too late
            self._report(order, order.leases[-2], OrderState.ORDERED, None, {"site_order_id": "A-1"})
        self.the_lease_is_held_for(waits)
        self._ask(order, order.held, attests, Verdict.NOT_ORDERED, True, True, looked_now)

    def _active(self) -> tuple[str, Order] | None:
        return next(((name, order) for name, order in self.orders.items() if order.is_active), None)

    def _renew_what_is_held(self) -> None:
        active = self._active()
        if active is not None:
            self._renew(active[1], active[1].held)

    # Time and the gateway's own life

    @rule(seconds=st.sampled_from([0.000001, 1.0, 9.0, 29.999999, 30.0, 299.999999]))
    def time_passes(self, seconds: float) -> None:
        self.time.advance(timedelta(seconds=seconds))
        self.now = round(self.now + seconds, 6)
        for order in self.orders.values():
            if order.is_active and self.now >= order.held.deadline:
                # Judged when somebody asks; a lease that nobody asked about ends when the gateway looks.
                order.status = S.STALE

    @rule(crash=st.booleans())
    def the_gateway_restarts(self, crash: bool) -> None:
        self._look()
        self.book.restart(crash=crash)

    @rule(hours=st.sampled_from([-1, 1]))
    def the_wall_clock_is_set(self, hours: int) -> None:
        self.time.step_wall(timedelta(hours=hours))

    def _look(self) -> None:
        """The gateway's sweep."""
        self.book.run(expire_lapsed)
        for order in self.orders.values():
            self._note_end(order)

    def _note_end(self, order: Order) -> None:
        if order.status is S.STALE and order.leases and order.held.ended is None:
            order.held.ended = self.now

    # Upstreams

    @rule(task_id=st.sampled_from(TASKS), again=st.booleans())
    def submit(self, task_id: str, again: bool) -> None:
        told = self.book.submit(task_id, intent_json='{"b":1}' if again else "{}")
        assert told.created == (task_id not in self.orders)
        self.orders.setdefault(task_id, Order(len(self.orders)))

    @rule(task_id=st.sampled_from(TASKS))
    def cancel(self, task_id: str) -> None:
        order = self.orders.get(task_id)
        told = self.book.cancel(task_id)
        cancelled = order is not None and order.status is S.FAILED and not order.leases
        if order is not None and (cancelled or (order.status is S.QUEUED and not order.leases)):
            assert isinstance(told, TaskDetail)
            order.status = S.FAILED
        else:
            assert isinstance(told, Refusal)

    # Workers

    @rule(worker=st.sampled_from(sorted(WORKERS)), new_process=st.booleans())
    def wait_for_an_order(self, worker: str, new_process: bool) -> None:
        self.sessions[worker] += new_process
        session = f"session-of-{worker}-{self.sessions[worker]}"
        mine = [
            order
            for order in self.orders.values()
            if order.is_active and not order.held.acknowledged and order.held.worker == session
        ]
        given = self.book.open(self.book.request(worker, session, WORKERS[worker]))
        self._look()
        if mine:
            assert given is not None
            assert given.token == mine[0].held.lease.token
            return
        queued = [task_id for task_id, order in self.orders.items() if order.status is S.QUEUED]
        if self.paused or not queued or any(order.is_active for order in self.orders.values()):
            assert given is None
            return
        assert given is not None
        assert given.task_id == min(queued, key=lambda task_id: self.orders[task_id].position)
        self._hold(given, session)

    def _hold(self, given: Lease, session: str) -> None:
        order = self.orders[given.task_id]
        number = len(order.leases) + 1
        assert given.lease_count == number
        assert given.known_state == order.latest
        order.status = S.LEASED
        order.leases.append(Held(given, session, number, self.now, round(self.now + ACKNOWLEDGE, 6)))

    def _any_lease(self, data: st.DataObject) -> tuple[Order, Held]:
        order = data.draw(st.sampled_from([order for order in self.orders.values() if order.leases]), "task")
        return order, data.draw(st.sampled_from(order.leases[::-1]), "lease")

    def _has_leases(self) -> bool:
        return any(order.leases for order in self.orders.values())

    @precondition(lambda self: self._has_leases())
    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        self._renew(*self._any_lease(data))

    def _renew(self, order: Order, held: Held) -> None:
        told = self.book.renew(held.lease)
        if order.is_active and held is order.held:
            assert isinstance(told, Renewed), told
            held.acknowledged, held.deadline = True, round(self.now + TTL, 6)
        else:
            assert isinstance(told, Refusal)
            assert told.reason is Reason.LEASE_INVALID
            self._note_end(order)

    @precondition(lambda self: self._has_leases())
    @rule(
        data=st.data(),
        state=st.sampled_from(list(OrderState)),
        terminal_status=st.sampled_from([None, None, None, *sorted(ENDED)]),
        number=st.sampled_from([None, None, "A-1"]),
        payable=st.sampled_from([None, 1000, 2000]),
        detail=st.sampled_from(["", "words"]),
        late=st.sampled_from([0, 0, 0, 5, 9]),
    )
    def report(
        self,
        data: st.DataObject,
        state: OrderState,
        terminal_status: TaskStatus | None,
        number: str | None,
        payable: int | None,
        detail: str,
        late: int,
    ) -> None:
        order, held = self._any_lease(data)
        facts = {"site_order_id": number, "payable_yen": payable, "detail": detail}
        self._report(order, held, state, terminal_status, facts, late)

    def _report(
        self,
        order: Order,
        held: Held,
        state: OrderState,
        terminal_status: TaskStatus | None,
        told_facts: dict[str, Any],
        late: int = 0,
    ) -> None:
        facts = {"site_order_id": None, "payable_yen": None, "detail": ""} | told_facts
        self.sequence += 4
        sequence = max(1, self.sequence - late)  # now and then an older report comes after a newer one
        told = self.book.report(
            held.lease, state, sequence=sequence, terminal=terminal_status is not None,
            terminal_status=terminal_status, **facts,
        )  # fmt: skip
        tells = state not in NOTHING_PLACED or facts["site_order_id"] is not None
        accepted = self._accepts(order, held, state, terminal_status)
        assert isinstance(told, Reported) == accepted, told
        if tells:
            order.known = True
        if not accepted:
            assert isinstance(told, Refusal)
            assert told.recorded_late
            self._note_end(order)
            return
        assert isinstance(told, Reported)
        assert told.recorded == (state not in order.mirror)
        self._mirror(order, state, (held.number, sequence), facts)
        if order.is_active:
            order.status = S.RUNNING if terminal_status is None else terminal_status
            if terminal_status is not None:
                held.ended, order.end = self.now, (state, terminal_status)

    def _accepts(self, order: Order, held: Held, state: OrderState, ends_as: TaskStatus | None) -> bool:
        if held is not order.held:
            return False
        if order.is_active:
            return True
        if order.status not in ENDED:
            return False
        if ends_as is None:
            return True
        return ends_as is order.status if order.end is None else (state, ends_as) == order.end

    def _mirror(self, order: Order, state: OrderState, age: tuple[int, int], facts: dict[str, Any]) -> None:
        known = order.mirror.setdefault(state, dict.fromkeys(facts))
        newer = age >= order.ages.get(state, (0, 0))
        for name, value in facts.items():
            if value not in (None, "") and (newer or known[name] in (None, "")):
                known[name] = value
        order.ages[state] = max(age, order.ages.get(state, (0, 0)))
        if age > order.latest_age:
            order.latest, order.latest_age = state, age

    @precondition(lambda self: self._has_leases())
    @rule(
        data=st.data(), attests=st.booleans(), verdict=st.sampled_from([None, *Verdict]), covered=st.booleans(),
        own_journal=st.sampled_from([True, True, True, False]), looked_now=st.booleans(),
    )  # fmt: skip
    def ask_for_a_permit(
        self, data: st.DataObject, attests: bool, verdict: Verdict | None, covered: bool, own_journal: bool,
        looked_now: bool,
    ) -> None:  # fmt: skip
        order, held = self._any_lease(data)
        self._ask(order, held, attests, verdict, covered, own_journal, looked_now)

    def _ask(
        self, order: Order, held: Held, attests: bool, verdict: Verdict | None, covered: bool, own_journal: bool,
        looked_now: bool,
    ) -> None:  # fmt: skip
        age = self.now - held.began if looked_now else 0.0
        look = None
        if verdict is not None:
            look = replace(LOOK, verdict=verdict, window_fully_covered=covered, begun_at=timedelta(seconds=age))
        journal = next(journal for name, journal in WORKERS.items() if f"-{name}-" in held.worker)
        other = next(other for other in WORKERS.values() if other != journal)
        told = self.book.permit(held.lease, journal=journal if own_journal else other, attests=attests, look=look)
        expected = self._refuses(order, held, journal, own_journal, attests, verdict, covered, held.began + age)
        if expected is not None:
            assert isinstance(told, Refusal), (told, expected)
            assert told.reason is expected
            self._note_end(order)
            return
        assert isinstance(told, Permit), told
        if held.permit_until is None:
            held.permit_until = round(self.now + PERMIT_TTL, 6)
        assert told.valid_for == timedelta(seconds=round(held.permit_until - self.now, 6))

    def _refuses(
        self, order: Order, held: Held, journal: str, own_journal: bool, attests: bool,
        verdict: Verdict | None, covered: bool, looked: float,
    ) -> Reason | None:  # fmt: skip
        if not order.is_active or held is not order.held:
            return Reason.LEASE_INVALID
        if not held.acknowledged:
            return Reason.LEASE_NOT_ACKNOWLEDGED
        if not own_journal:
            return Reason.PERMIT_OTHER_JOURNAL
        if order.known:
            return Reason.PERMIT_ORDER_KNOWN
        if held.permit_until is not None:
            return Reason.PERMIT_EXPIRED if self.now >= held.permit_until else None
        if self.paused:
            return Reason.DISPATCH_PAUSED
        if held.number > 1 and (verdict is not Verdict.NOT_ORDERED or not covered):
            return Reason.PERMIT_NOT_VERIFIED
        earlier = [other for other in order.leases[:-1] if other.permit_until is not None]
        if not earlier:
            return None
        if any(f"-{name}-" in other.worker and WORKERS[name] != journal for other in earlier for name in WORKERS):
            return Reason.PERMIT_OTHER_JOURNAL
        if not attests:
            return Reason.PERMIT_NOT_ATTESTED
        settled = max(max(other.permit_until or 0.0, other.ended or 0.0) for other in earlier) + SETTLE
        return Reason.PERMIT_NOT_SETTLED if self.now < settled - 1e-7 or looked < settled - 1e-7 else None

    # The person

    @rule(task_id=st.sampled_from(TASKS), worker=st.sampled_from(sorted(WORKERS)))
    def reclaim(self, task_id: str, worker: str) -> None:
        session = f"session-of-{worker}-{self.sessions[worker]}"
        told = self.book.reclaim(task_id, self.book.request(worker, session, WORKERS[worker]))
        self._look()
        order = self.orders.get(task_id)
        if order is None:
            assert isinstance(told, Refusal)
        elif order.status is S.LEASED and not order.held.acknowledged and order.held.worker == session:
            assert isinstance(told, Lease)
            assert told.token == order.held.lease.token
        elif order.status is S.STALE and not any(other.is_active for other in self.orders.values()):
            assert isinstance(told, Lease)
            self._hold(told, session)
        else:
            assert isinstance(told, Refusal)

    @rule(task_id=st.sampled_from(TASKS))
    def requeue(self, task_id: str) -> None:
        self._person(requeue, task_id, S.STALE, S.QUEUED)

    @rule(task_id=st.sampled_from(TASKS))
    def withdraw(self, task_id: str) -> None:
        order = self.orders.get(task_id)
        leased_before = order is not None and bool(order.leases)
        self._person(withdraw, task_id, S.QUEUED if leased_before else None, S.STALE)

    @rule(task_id=st.sampled_from(TASKS))
    def expire_now(self, task_id: str) -> None:
        order = self.orders.get(task_id)
        self._person(expire_now, task_id, order.status if order and order.is_active else None, S.STALE)

    def _person(self, operation: Any, task_id: str, before: TaskStatus | None, after: TaskStatus) -> None:
        told = self.book.run(operation, task_id, "a reason", Actor("operator"))
        order = self.orders.get(task_id)
        if order is not None and order.status is before:
            assert isinstance(told, TaskDetail), told
            order.status = after
        else:
            assert isinstance(told, Refusal), told
        if order is not None:
            self._note_end(order)

    @rule(task_id=st.sampled_from(TASKS), outcome=st.sampled_from([S.SUCCEEDED, S.FAILED]))
    def resolve(self, task_id: str, outcome: TaskStatus) -> None:
        told = self.book.run(
            resolve, self.book.policy, Resolution(task_id, "looked", outcome, None, None), Actor("operator")
        )
        order = self.orders.get(task_id)
        if order is not None:
            self._note_end(order)
        if order is None or order.status not in (S.STALE, S.NEEDS_HUMAN, S.FAILED) or order.status is outcome:
            assert isinstance(told, Refusal)
            return
        if outcome is S.FAILED and not self._is_settled(order):
            assert isinstance(told, Refusal)
            assert told.reason is Reason.PERMIT_NOT_SETTLED
            return
        assert isinstance(told, TaskDetail), told
        order.status = outcome
        order.known = order.known or outcome is S.SUCCEEDED

    def _is_settled(self, order: Order) -> bool:
        if order.placement is Placement.IMPOSSIBLE:
            return True
        clicking = [lease for lease in order.leases if lease.permit_until is not None] or order.leases
        return self.now >= max(max(each.permit_until or 0.0, each.ended or 0.0) for each in clicking) + SETTLE - 1e-7

    @rule()
    def pause_or_resume(self) -> None:
        (self.book.resume if self.paused else self.book.pause)()
        self.paused = not self.paused

    # What must be the same

    @invariant()
    def the_gateway_holds_what_the_model_expects(self) -> None:
        if not hasattr(self, "book"):
            return
        rows = {row["task_id"]: row for row in self.book.rows("SELECT * FROM tasks")}
        assert rows.keys() == self.orders.keys()
        elapsed = self.book.clock.now().elapsed_us
        for task_id, order in self.orders.items():
            row = rows[task_id]
            lapsed = row["lease_deadline_us"] is not None and row["lease_deadline_us"] <= elapsed
            assert (S.STALE if lapsed else row["status"]) == order.status, task_id
            assert row["lease_count"] == len(order.leases)
            assert row["latest_state"] == order.latest
            assert self.book.task(task_id).placement == order.placement
        told = self.book.rows("SELECT task_id, state, site_order_id, payable_yen, detail FROM reports")
        mirror = {(row.pop("task_id"), row.pop("state")): row for row in told}
        expected = {
            (task_id, state): {**facts, "detail": facts["detail"] or ""}
            for task_id, order in self.orders.items()
            for state, facts in order.mirror.items()
        }
        assert mirror == expected
        assert sum(order.is_active for order in self.orders.values()) <= 1


SETTINGS = settings(
    max_examples=80,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def test_the_order_machine_is_the_model() -> None:
    run_state_machine_as_test(OrderMachine, settings=SETTINGS)


@pytest.mark.parametrize(
    "missing",
    [
        "no_token_check",
        "no_settle_time",
        "second_permit_to_another_journal",
        "order_of_arrival",
        "no_pause",
        "a_lease_for_everybody",
    ],
)
def test_a_rule_that_is_missing_is_noticed(missing: str) -> None:
    only_generate = settings(SETTINGS, max_examples=400, phases=[Phase.generate], report_multiple_bugs=False)
    with MUTANTS[missing](), pytest.raises(Exception):  # noqa: B017, PT011 -- whichever comparison fails first
        run_state_machine_as_test(OrderMachine, settings=only_generate)
