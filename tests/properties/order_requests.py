"""Everybody's requests about orders, one at a time, told to the gateway and to the model alike."""

import shutil
import tempfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gateway.domain.leases import Verdict
from gateway.domain.states import OrderState, TaskStatus
from tests.gateway.support.manual_time import TICK, ManualTime
from tests.properties.modelled_order import Held, Order
from tests.properties.order_model import ENDED, OrderModel
from tests.properties.order_terms import (
    ACKNOWLEDGE,
    OVER_REST,
    PERMIT_TTL,
    PROCESSES,
    SECOND,
    SETTLE,
    SITES,
    TTL,
    Given,
    Holder,
    Look,
    Orders,
    Process,
    Refused,
    Told,
)
from tests.properties.orders_in_use_cases import OrdersInUseCases
from tests.properties.orders_over_grpc import OrdersOverGrpc

S = TaskStatus

some_task = st.sampled_from([0, 0, 1, 2, 0, 1, None])
"""How many tasks were filed after the one that is meant, counted round and round; None: one that was never filed."""
some_process = st.sampled_from(PROCESSES)
most_say_yes = st.sampled_from([True, True, True, False])
STRANGER, EVIDENCE = "journal-of-a-stranger", "po-1/r2/00-verify"
an_intent = st.sampled_from(['{"a":1,"b":2}', '{"a":1, "b":2}', '{"a":1,"b":3}'])
some_facts = st.fixed_dictionaries(
    {},
    optional={
        "site_order_id": st.sampled_from(["A-1", "A-2"]),
        "payable_yen": st.sampled_from([0, 1000]),
        "evidence_ref": st.sampled_from(["po-1/03-order-confirm"]),
        "error_code": st.sampled_from([5001]),
        "detail": st.sampled_from(["words", "other words"]),
    },
)


def agree(told: Any, expected: Any) -> None:
    """Compare an answer with the model's."""
    if isinstance(told, Refused) and isinstance(expected, Refused):
        assert told.reasons <= expected.reasons
        assert told.recorded_late == expected.recorded_late
    else:
        assert told == expected


class OrderRequests(RuleBasedStateMachine):
    """What everybody may ask, and what may happen, at any time."""

    reach: ClassVar[type[OrdersInUseCases] | type[OrdersOverGrpc]]

    @initialize(scope=st.sampled_from(["global", "site"]))
    def begin(self, scope: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="orders-"))
        self.time = ManualTime()
        self.orders: Orders = self.reach(self.folder, self.time, scope)
        self.model = OrderModel(scope)
        self.sequence = 0
        self.last_report: tuple[Holder, Told] | None = None
        self.submit_a_new_order(SITES[0], '{"a":1,"b":2}')

    def teardown(self) -> None:
        if hasattr(self, "orders"):
            self.orders.close()
            shutil.rmtree(self.folder)

    def _task(self, younger: int | None) -> str:
        filed = list(self.model.orders)[::-1]
        return "t-never-filed" if younger is None else filed[younger % len(filed)]

    # Time and the gateway's own life

    @rule(delay=st.sampled_from([1, SECOND, ACKNOWLEDGE - 1, PERMIT_TTL, TTL - 1, TTL, SETTLE]))
    def time_passes(self, delay: int) -> None:
        self._pass(delay)

    def _pass(self, delay: int) -> None:
        self.time.advance(delay * TICK)
        self.model.advance(delay)

    @precondition(lambda self: self.orders.inside)
    @rule()
    def the_gateway_sweeps(self) -> None:
        self.orders.sweep()
        self.model.sweep()

    @rule(crash=st.booleans(), scope=st.sampled_from(["", "", "global", "site"]))
    def the_gateway_restarts(self, crash: bool, scope: str) -> None:
        crash = crash and self.orders.inside
        if crash:  # a sweep writes down how far the clock is, a crash does not
            self.the_gateway_sweeps()
        self.model.scope = scope or self.model.scope
        self.orders.restart(self.model.scope, crash=crash)
        self.model.sweep()

    @rule(seconds=st.sampled_from([5, 200, 4000]))
    def the_machine_restarts(self, seconds: int) -> None:
        self.orders.restart(self.model.scope, meanwhile=lambda: self.time.reboot(timedelta(seconds=seconds)))
        self.model.reboot(seconds * SECOND)
        self.model.sweep()

    @rule(hours=st.sampled_from([-1, 1]))
    def the_wall_clock_is_set(self, hours: int) -> None:
        self.time.step_wall(timedelta(hours=hours))
        self.model.set_wall(hours * 3600 * SECOND)

    # Upstreams

    @precondition(lambda self: len(self.model.orders) < 6)
    @rule(site=st.sampled_from(SITES), intent_json=an_intent)
    def submit_a_new_order(self, site: str, intent_json: str) -> None:
        self._submit(f"t-{len(self.model.orders)}", site, intent_json)

    @rule(task=some_task, site=st.sampled_from(SITES), intent_json=an_intent)
    def submit_again(self, task: int | None, site: str, intent_json: str) -> None:
        """The same key again changes nothing, whatever else is told."""
        if task is not None:
            self._submit(self._task(task), site, intent_json)

    def _submit(self, *said: str) -> None:
        agree(self.orders.submit(*said), self.model.submit(*said))

    @rule(task=some_task)
    def cancel(self, task: int | None) -> None:
        """Twice, since the first answer may be lost."""
        for _ in range(2):
            agree(self.orders.cancel(self._task(task)), self.model.cancel(self._task(task)))

    # Workers

    @rule(process=some_process, sites=st.sampled_from([SITES, SITES, SITES[:1], SITES[1:]]))
    def wait_for_an_order(self, process: Process, sites: tuple[str, ...]) -> None:
        self._given(self.orders.lease(process, sites), self.model.lease(process, sites))

    @precondition(lambda self: self.orders.inside)
    @rule(task=some_task, by_reclaim=st.booleans())
    def ask_over_rest(self, task: int | None, by_reclaim: bool) -> None:
        if by_reclaim:
            self._reclaim(OVER_REST, self._task(task))
        else:
            self.wait_for_an_order(OVER_REST, SITES)

    @precondition(lambda self: self.orders.inside)
    @rule(data=st.data())
    def a_stream_s_answer_is_given_back(self, data: st.DataObject) -> None:
        answered = [order for order in self.model.orders.values() if order.leases and order.held.streams]
        if answered:
            self._give_back(data.draw(st.sampled_from(answered), "task"))

    def _give_back(self, order: Order) -> None:
        agree(self.orders.give_back(order.task_id, order.held.token), self.model.give_back(order))

    @rule(process=some_process, task=some_task)
    def reclaim(self, process: Process, task: int | None) -> None:
        self._reclaim(process, self._task(task))

    def _reclaim(self, process: Process, task_id: str) -> None:
        """A process acts on one lease before it asks for another."""
        waiting = self.model.waiting_for(process)
        if not waiting or waiting[0].task_id == task_id:
            self._given(self.orders.reclaim(process, task_id), self.model.reclaim(process, task_id))

    def _given(self, told: Given | Refused | None, expected: tuple[Given, Held] | Refused | None) -> None:
        given, held = expected if isinstance(expected, tuple) else (expected, None)
        agree(told, given)
        if isinstance(told, Given) and held is not None:
            held.token = held.token or told.token
            assert told.token == held.token

    def _holder(self, order: Order, held: Held) -> Holder:
        return Holder(order.task_id, held.process.worker, held.token)

    def _some_holder(self, data: st.DataObject) -> tuple[Holder, Held]:
        """Mostly who holds a lease; now and then somebody else, or one who has lost it."""
        leased = [order for order in self.model.orders.values() if order.leases]
        order = data.draw(st.sampled_from([*self.model.active(), *self.model.active(), *leased]), "task")
        held = data.draw(st.sampled_from([order.held, order.held, *order.leases[:-4:-1]]), "lease")
        holder = self._holder(order, held) if held.token else Holder(order.task_id, "w1", "x" * 43)
        who = data.draw(st.sampled_from(["holder"] * 6 + ["another name", "another token", "no token"]), "who")
        if who == "another name":
            holder = replace(holder, worker="w2" if holder.worker == "w1" else "w1")
        elif who == "another token":
            holder = replace(holder, token="x" * 43)
        elif who == "no token" and self.orders.inside:
            holder = replace(holder, token=None)
        return holder, held

    @precondition(lambda self: any(order.leases for order in self.model.orders.values()))
    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        self._renew(self._some_holder(data)[0])

    def _renew(self, holder: Holder) -> None:
        agree(self.orders.renew(holder), self.model.renew(holder))

    @precondition(lambda self: any(order.leases for order in self.model.orders.values()))
    @rule(
        data=st.data(), state=st.sampled_from(OrderState), terminal=st.sampled_from([False, False, True]),
        ends_as=st.sampled_from([None, *ENDED]), facts=some_facts, late=st.sampled_from([0, 0, 0, 5, 9]),
    )  # fmt: skip
    def report(
        self, data: st.DataObject, state: OrderState, terminal: bool, ends_as: TaskStatus | None,
        facts: dict[str, Any], late: int,
    ) -> None:  # fmt: skip
        """Now and then an older report comes after a newer one."""
        holder, held = self._some_holder(data)
        self._next()
        told = Told(state, max(1, self.sequence - late), terminal, ends_as if terminal else None, in_order(facts))
        if held.over_rest:
            told = replace(told, sequence=None, state=None if terminal and data.draw(st.booleans()) else state)
        self._report(holder, told)

    @precondition(lambda self: self.last_report)
    @rule()
    def the_last_report_comes_again(self) -> None:
        if self.last_report:
            self._report(*self.last_report)

    def _next(self) -> int:
        self.sequence += 4
        return self.sequence

    def _report(self, holder: Holder, told: Told) -> None:
        self.last_report = holder, told
        agree(self.orders.report(holder, told), self.model.report(holder, told))

    @precondition(lambda self: any(order.leases for order in self.model.orders.values()))
    @rule(
        data=st.data(), attests=st.booleans(), verdict=st.sampled_from([None, *Verdict]), covered=most_say_yes,
        evidence=most_say_yes, begun=st.sampled_from(["first", "now", "now", "later"]), own_journal=most_say_yes,
    )  # fmt: skip
    def ask_for_a_permit(
        self, data: st.DataObject, attests: bool, verdict: Verdict | None, covered: bool, evidence: bool,
        begun: str, own_journal: bool,
    ) -> None:  # fmt: skip
        holder, held = self._some_holder(data)
        age = {"first": 0, "now": self.model.now - held.began, "later": self.model.now - held.began + 1}[begun]
        look = None if verdict is None else Look(verdict, covered, EVIDENCE if evidence else None, age)
        journal = held.process.journal if own_journal and held.token else None
        self._ask(holder, journal or STRANGER, attests, look)

    def _ask_well(self, order: Order) -> None:
        look = self._look(order, self.model.now - order.held.began)
        journal = order.held.process.journal or STRANGER
        self._ask(self._holder(order, order.held), journal, True, look)

    def _look(self, order: Order, begun: int) -> Look | None:
        if order.held.number == 1:
            return None
        return Look(Verdict.NOT_ORDERED, covered=True, evidence=EVIDENCE, begun=begun)

    def _ask(self, holder: Holder, journal: str, attests: bool, look: Look | None) -> None:
        agree(self.orders.permit(holder, journal, attests, look), self.model.permit(holder, journal, attests, look))

    # The person

    @rule(decision=st.sampled_from(["requeue", "withdraw", "expire_now"]), task=some_task)
    def decide(self, decision: str, task: int | None) -> None:
        self._decide(decision, self._task(task))

    def _decide(self, decision: str, task_id: str) -> None:
        agree(self.orders.decide(decision, task_id), self.model.decide(decision, task_id))

    @rule(
        task=some_task, outcome=st.sampled_from([S.SUCCEEDED, S.FAILED]),
        state=st.sampled_from([None, None, *OrderState]), number=st.sampled_from([None, None, "A-1", "A-2"]),
        although=st.booleans(),
    )  # fmt: skip
    def resolve(
        self, task: int | None, outcome: TaskStatus, state: OrderState | None, number: str | None, although: bool
    ) -> None:
        self._resolve(self._task(task), outcome, state, number, although)

    def _resolve(self, *said: Any) -> None:
        agree(self.orders.resolve(*said), self.model.resolve(*said))

    @rule(process=some_process, site=st.sampled_from(["", *SITES]))
    def somebody_waits_while_it_is_paused(self, process: Process, site: str) -> None:
        if site not in self.model.paused:
            self.pause_or_resume(site)
            self.wait_for_an_order(process, SITES)
            self.pause_or_resume(site)

    @rule(site=st.sampled_from(["", SITES[0]]))
    def pause_or_resume(self, site: str) -> None:
        if site in self.model.paused:
            agree(self.orders.resume(site), self.model.resume(site))
        else:
            agree(self.orders.pause(site), self.model.pause(site))

    @precondition(lambda self: self.orders.inside and len(self.model.orders) > 1)
    @rule()
    def the_gateway_is_restored_from_a_backup(self) -> None:
        self.orders.restore()
        self.model.restore()

    # What must be the same

    @invariant()
    def the_gateway_holds_what_the_model_expects(self) -> None:
        if hasattr(self, "orders"):
            assert self.orders.view() == self.model.view()
            held = [order.site if self.model.scope == "site" else "" for order in self.model.active()]
            assert len(held) == len(set(held)) or self.model.scope == "global"


def in_order(facts: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(facts.items()))
