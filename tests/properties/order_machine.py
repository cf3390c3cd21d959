"""Everybody's requests about orders, in any order, and those that follow each other most often."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from gateway.domain.leases import Verdict
from gateway.domain.states import OrderState, TaskStatus
from tests.properties.modelled_order import Order
from tests.properties.order_model import ENDED
from tests.properties.order_requests import EVIDENCE, STRANGER, OrderRequests, S, in_order, some_facts, some_process
from tests.properties.order_terms import (
    OVER_REST,
    PERMIT_TTL,
    PROCESSES,
    SECOND,
    SITES,
    TTL,
    WORKER,
    Look,
    Process,
    Told,
)
from tests.properties.orders_in_use_cases import OrdersInUseCases
from tests.properties.orders_over_grpc import OrdersOverGrpc


class OrderMachine(OrderRequests):
    """What happens most: several steps at once, so that the machine gets far."""

    @precondition(lambda self: not self.model.active())
    @rule(process=some_process, site=st.sampled_from(SITES))
    def an_order_is_taken(self, process: Process, site: str) -> None:
        self._lift_pauses()
        if not any(order.status is S.QUEUED for order in self.model.orders.values()):
            self.submit_a_new_order(site, '{"a":1,"b":2}')
        self.wait_for_an_order(process, SITES)
        self._renew_what_is_held()

    @precondition(lambda self: self.model.active())
    @rule(process=some_process, by_reclaim=st.booleans(), dead=st.booleans())
    def the_lease_ends_and_a_person_lets_go(self, process: Process, by_reclaim: bool, dead: bool) -> None:
        order = self.model.active()[0]
        if dead:
            self._decide("expire_now", order.task_id)
        else:
            self._pass(max(0, order.held.deadline - self.model.now))
        if by_reclaim:
            self._reclaim(process, order.task_id)
        else:
            self._decide("requeue", order.task_id)
            self.wait_for_an_order(process, SITES)
        self._renew_what_is_held()

    @precondition(lambda self: self.model.active())
    @rule(seconds=st.sampled_from([29, 250, 899, 930]))
    def leases_are_held_for(self, seconds: int) -> None:
        self._hold(seconds * SECOND)

    @precondition(lambda self: not any(order.known for order in self.model.active()))
    @rule(
        former=some_process | st.just(OVER_REST), recovered=st.booleans(),
        later=st.sampled_from([None, PERMIT_TTL - 1, PERMIT_TTL]),
    )  # fmt: skip
    def a_permit_is_asked_for(self, former: Process, recovered: bool, later: int | None) -> None:
        """With one thing wrong, whichever it is; then as it should be, and perhaps again `later`."""
        order = self._an_order_that_may_be_placed(former if self.orders.inside else WORKER)
        if order is None:
            return
        if recovered:
            self._pass(max(0, order.held.deadline - self.model.now))
            self._reclaim(WORKER, order.task_id)
            self._ask_well(order)
            self._renew_what_is_held()
        holder, journal = self._holder(order, order.held), order.held.process.journal or STRANGER
        look = Look(Verdict.NOT_ORDERED, covered=True, evidence=EVIDENCE, begun=self.model.now - order.held.began)
        self.pause_or_resume("")
        self._ask(holder, journal, True, look)
        self.pause_or_resume("")
        self._ask(holder, STRANGER, True, look)
        if order.held.number > 1:
            self._ask(holder, journal, True, None)
            self._ask(holder, journal, True, replace(look, verdict=Verdict.UNKNOWN))
            self._ask(holder, journal, True, replace(look, covered=False))
            self._ask(holder, journal, True, replace(look, evidence=None))
            self._ask(holder, journal, True, replace(look, begun=look.begun + 1))
        self._ask(holder, journal, True, look)
        if later is not None:
            self._pass(later)
            self._ask(holder, journal, True, look)

    def _an_order_that_may_be_placed(self, process: Process) -> Order | None:
        """An active one, or one that the process takes now."""
        if not self.model.active():
            self.an_order_is_taken(process, SITES[0])
        self._lift_pauses()
        self._renew_what_is_held()
        return next(iter(self.model.active()), None)

    @precondition(lambda self: self.orders.inside and not self.model.active())
    @rule(process=some_process, streams=st.sampled_from([1, 1, 2]))
    def a_stream_is_left_before_its_answer_came(self, process: Process, streams: int) -> None:
        """Or two of one process, of which one may have brought it."""
        self._lift_pauses()
        for _ in range(streams):
            self.wait_for_an_order(process, SITES)
        for order in self.model.waiting_for(process):
            self._give_back(order)

    @precondition(lambda self: self.model.active())
    @rule(
        state=st.sampled_from(OrderState), terminal=st.sampled_from([False, False, True]),
        ends_as=st.sampled_from([None, *ENDED]), facts=some_facts, other_facts=some_facts,
        overtaken=st.sampled_from(OrderState),
    )  # fmt: skip
    def the_holder_reports(
        self, state: OrderState, terminal: bool, ends_as: TaskStatus | None,
        facts: dict[str, Any], other_facts: dict[str, Any], overtaken: OrderState,
    ) -> None:  # fmt: skip
        """Then the same after a lost answer, another end, and a later report, which overtakes two earlier ones."""
        order = self.model.active()[0]
        holder = self._holder(order, order.held)
        told = Told(state, self._next(), terminal, ends_as if terminal else None, in_order(facts))
        self._report(holder, told)
        self._report(holder, told)
        if terminal:
            end = S.FAILED if told.ends_as is S.SUCCEEDED else S.SUCCEEDED
            self._report(holder, replace(told, sequence=self._next(), ends_as=end))
        self._report(holder, replace(told, sequence=self._next(), facts=in_order(other_facts)))
        earlier = (("detail", "earlier words"), ("payable_yen", 7))
        self._report(holder, replace(told, sequence=self.sequence - 1, facts=earlier))
        self._report(holder, Told(overtaken, self.sequence - 2))

    @precondition(lambda self: not any(order.known for order in self.model.active()))
    @rule(
        process=st.sampled_from([None, None, *PROCESSES]),
        reported=st.sampled_from([None, None, None, *OrderState]),
    )  # fmt: skip
    def a_permitted_order_is_taken_again(self, process: Process | None, reported: OrderState | None) -> None:
        """By the process that held it (None) or another, which asks for a second permit as early as it can."""
        order = self._an_order_that_may_be_placed(WORKER)
        if order is None:
            return
        former = order.held
        self._ask_well(order)
        self._pass(max(0, former.deadline - self.model.now))
        self._reclaim(process or former.process, order.task_id)
        if order.held is former:
            return
        self._renew_what_is_held()
        if reported is not None:  # what the former holder says now comes too late
            self._report(self._holder(order, former), Told(reported, self._next()))
        self._ask_well(order)
        self._hold(max(0, order.settled(order.leases[:-1]) - 1 - self.model.now))
        self._ask_well(order)
        look = Look(Verdict.NOT_ORDERED, covered=True, evidence=EVIDENCE, begun=self.model.now - order.held.began)
        self._pass(1)
        holder, journal = self._holder(order, order.held), order.held.process.journal or STRANGER
        self._ask(holder, journal, True, look)
        self._ask(holder, journal, False, replace(look, begun=look.begun + 1))
        self._ask_well(order)

    @precondition(lambda self: self._to_decide())
    @rule(
        outcome=st.sampled_from([S.FAILED, S.FAILED, S.SUCCEEDED]), waits=st.sampled_from([None, -1, 0]),
        state=st.sampled_from([None, None, *OrderState]), number=st.sampled_from([None, "A-1", "A-2"]),
        although=st.booleans(),
    )  # fmt: skip
    def a_person_resolves(
        self, outcome: TaskStatus, waits: int | None, state: OrderState | None, number: str | None, although: bool
    ) -> None:
        """At any time, or as the last click that may have been made is settled, or a tick before."""
        order = max(self._to_decide(), key=lambda order: len(order.numbers))
        if waits is not None and order.leases:
            settled = order.settled([lease for lease in order.leases if lease.may_have_clicked] or order.leases)
            self._pass(max(0, settled + waits - self.model.now))
        if order.numbers:
            self._resolve(order.task_id, outcome, state, "A-number-that-nobody-told", although)
        self._resolve(order.task_id, outcome, state, number, although)

    def _to_decide(self) -> list[Order]:
        return [order for order in self.model.orders.values() if order.status in (S.STALE, S.NEEDS_HUMAN)]

    @precondition(lambda self: any(order.resolved for order in self.model.orders.values()))
    @rule(
        outcome=st.sampled_from([S.FAILED, S.SUCCEEDED]), state=st.sampled_from([None, *OrderState]),
        number=st.sampled_from([None, "A-1", "A-2"]), although=st.booleans(),
    )  # fmt: skip
    def a_person_revises_a_statement(
        self, outcome: TaskStatus, state: OrderState | None, number: str | None, although: bool
    ) -> None:
        order = next(order for order in self.model.orders.values() if order.resolved)
        self._resolve(order.task_id, outcome, state, number, although)

    def _lift_pauses(self) -> None:
        for paused in sorted(self.model.paused):
            self.pause_or_resume(paused)

    def _hold(self, delay: int) -> None:
        while delay > 0:
            self._pass(min(delay, TTL - SECOND))
            delay -= TTL - SECOND
            self._renew_what_is_held()

    def _renew_what_is_held(self) -> None:
        for order in self.model.active():
            self._renew(self._holder(order, order.held))


class OrdersByUseCase(OrderMachine):
    reach = OrdersInUseCases


class OrdersByGrpc(OrderMachine):
    reach = OrdersOverGrpc
