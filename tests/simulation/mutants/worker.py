"""Variants of the worker that lack one safeguard each."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import wraps
from typing import Any
from unittest.mock import patch
from weakref import WeakSet

import gateway.orders.permit
import worker.gateway.lease_guard
import worker.orders.cart
import worker.orders.executor
import worker.orders.submit
from tests.simulation.mutants.registry import mutant, replaced
from tests.simulation.site import SimSite
from tests.simulation.worker_machine import SimClock
from worker.gateway.lease_guard import LeaseGuard
from worker.gateway.outbox import Outbox
from worker.gateway.port import Refused, Unreachable
from worker.gateway.wire import report_to_wire
from worker.journal.claims import AlreadyRecordedError, Claims
from worker.journal.reclaims import Reclaims
from worker.journal.records import OrderStatus, Outcome
from worker.orders.ends import End
from worker.orders.permit import Permit
from worker.orders.run import OrderRun


@mutant
def no_permit(stack: ExitStack) -> None:
    """The worker clicks without requesting a permit."""

    async def granted(*_: Any) -> Any:
        return Permit(deadline=float("inf"), waited=False)

    replaced(stack, worker.orders.submit, "obtain_permit", granted)


@mutant
def permit_without_expiry(stack: ExitStack) -> None:
    """A permit never expires."""
    replaced(stack, worker.orders.submit, "ensure_permitted", lambda _run, _permit: None)


@mutant
def no_look_when_the_connection_stands(stack: ExitStack) -> None:
    """The last check of permit and lease comes before the click's connection is opened."""

    async def connect(self: SimSite, _pre_send_check: Any) -> None:
        await asyncio.sleep(self._link.connecting("submit"))

    replaced(stack, SimSite, "_connect", connect)


@mutant
def permit_counted_from_the_answer(stack: ExitStack) -> None:
    """The permit's validity is counted from the arrival of its answer, not from the request."""
    obtain = worker.orders.submit.obtain_permit

    async def mutated(order: OrderRun, *about: Any) -> Any:
        permit = await obtain(order, *about)
        return permit if isinstance(permit, End) else replace(permit, deadline=order.parts.clock.elapsed() + 10.0)

    replaced(stack, worker.orders.submit, "obtain_permit", mutated)


@mutant
def no_verification(stack: ExitStack) -> None:
    """A recovered task is ordered without a verification."""

    async def nothing(*_: Any) -> None: ...

    replaced(stack, worker.orders.executor, "recover", nothing)
    replaced(stack, gateway.orders.permit, "_verification_refuses", lambda *_: None)


@mutant
def false_attestation(stack: ExitStack) -> None:
    """The attestation ignores a click record in the journal."""

    async def no(*_: Any) -> bool:
        return False

    replaced(stack, Claims, "has_click", no)


@mutant
def click_record_after_the_click(stack: ExitStack) -> None:
    """The click record is written after the click."""
    click = worker.orders.submit._click

    async def check(order: OrderRun, permit: Any) -> None:
        worker.orders.submit.ensure_permitted(order, permit)
        order.guard.ensure_may_begin()

    async def mutated(order: OrderRun, confirmation: Any, permit: Any) -> Any:
        order.clicked = True
        answer = await click(order, confirmation, permit)
        try:
            await order.parts.journal.claims.record_click(order.task_id, order.lease.lease_token)
        except AlreadyRecordedError:
            return worker.orders.submit.needs_human("clicked before")
        return answer

    replaced(stack, worker.orders.submit, "_record_click", check)
    replaced(stack, worker.orders.submit, "_click", mutated)


@mutant
def submit_resent_by_the_client(stack: ExitStack) -> None:
    """The submit reuses a connection, and is resent if that connection turns out to be closed."""

    async def submit(self: SimSite, confirmation: Any, _pre_send_check: Any) -> Any:
        return await self._submit(confirmation, fresh=False)

    replaced(stack, SimSite, "submit", submit)


@mutant
def failed_after_a_click_record(stack: ExitStack) -> None:
    """An error after the click is reported as failed."""
    finish = worker.orders.executor._finish

    async def mutated(order: OrderRun, end: End) -> OrderStatus:
        if order.clicked and not order.state.is_placed and end.status is OrderStatus.NEEDS_HUMAN:
            end = replace(end, status=OrderStatus.FAILED)
        return await finish(order, end)

    replaced(stack, worker.orders.executor, "_finish", mutated)


@mutant
def recovered_run_pays(stack: ExitStack) -> None:
    """A recovered run pays the order."""
    pay = worker.orders.executor.pay

    async def mutated(order: OrderRun, intent: Any) -> End:
        order.recovered = False
        return await pay(order, intent)

    replaced(stack, worker.orders.executor, "pay", mutated)


@mutant
def cart_not_compared(stack: ExitStack) -> None:
    """Neither the cart nor the confirmation page is compared with the intent."""
    replaced(stack, worker.orders.cart, "difference", lambda _wanted, _shown: None)


@mutant
def confirmation_not_compared(stack: ExitStack) -> None:
    """The confirmation page is not compared with the intent; the cart is."""
    difference, open_confirmation = worker.orders.cart.difference, SimSite.open_confirmation
    on_a_page: list[Any] = []

    async def noted(self: SimSite, options: Any) -> Any:
        confirmation = await open_confirmation(self, options)
        on_a_page.append(confirmation.items)
        return confirmation

    def mutated(wanted: Any, shown: Any) -> str | None:
        return None if any(shown is items for items in on_a_page) else difference(wanted, shown)

    replaced(stack, SimSite, "open_confirmation", noted)
    replaced(stack, worker.orders.cart, "difference", mutated)


@mutant
def payment_not_recorded(stack: ExitStack) -> None:
    """Each order is paid twice, and no payment record prevents it (see `payment_repeated`)."""

    async def nothing(*_: Any) -> None: ...

    replaced(stack, Claims, "record_payment", nothing)
    stack.enter_context(payment_repeated())


@mutant
def no_amount_guard(stack: ExitStack) -> None:
    """The amount to pay is not compared with the limit."""
    replaced(stack, worker.orders.cart, "guard_amount", lambda _yen, _limit: None)


@mutant
def wall_clock_lease_guard(stack: ExitStack) -> None:
    """Deadlines are counted on the wall clock."""

    def elapsed(self: SimClock) -> float:
        return float(self._machine.loop.time() + self._machine.wall_offset)

    replaced(stack, SimClock, "elapsed", elapsed)


@mutant
def lease_counted_from_the_answer(stack: ExitStack) -> None:
    """A renewed lease is counted from the arrival of the answer, not from the request."""
    renew = LeaseGuard.renew

    async def mutated(self: LeaseGuard) -> None:
        await renew(self)
        self._deadline = self._clock.elapsed() + self._ttl

    replaced(stack, LeaseGuard, "renew", mutated)


@mutant
def lost_lease_ignored(stack: ExitStack) -> None:
    """The worker starts and continues steps on the site after its lease was lost."""

    async def hold(_self: LeaseGuard, step: Any, *, seconds: float | None) -> Any:
        async with asyncio.timeout(seconds):
            return await step

    replaced(stack, LeaseGuard, "hold", hold)
    replaced(stack, LeaseGuard, "ensure_may_begin", lambda _self: None)


@mutant
def no_acknowledgement(stack: ExitStack) -> None:
    """The worker acts without acknowledging its lease."""
    renew, begun = LeaseGuard.renew, set[int]()

    @wraps(renew)
    async def mutated(self: LeaseGuard) -> None:
        if id(self) in begun:
            await renew(self)
        begun.add(id(self))
        self._deadline = self._clock.elapsed() + self._ttl

    replaced(stack, LeaseGuard, "renew", mutated)


@mutant
def report_before_evidence(stack: ExitStack) -> None:
    """A report is sent before its evidence is on disk."""
    keep, writing = OrderRun.keep, list[Any]()

    async def mutated(self: OrderRun, step: str, page: Any, state: Any = None) -> str:
        ref = f"{self.folder}/{self.parts.evidence._free_name(self.folder, step)}"

        async def later() -> None:
            await asyncio.sleep(0.5)
            await keep(self, step, page, state)

        writing.append(asyncio.ensure_future(later()))
        self.evidence_ref = ref
        return ref

    replaced(stack, OrderRun, "keep", mutated)


@mutant
def a_report_is_sent_once(stack: ExitStack) -> None:
    """A report is sent once; without an answer it counts as delivered."""

    async def mutated(self: Outbox, report: Any, _backoff: Any) -> None:
        with suppress(Unreachable, Refused):
            await self._gateway.report(report_to_wire(report, self._worker_id))
        await self._reports.acknowledge(report.sequence, Outcome.ACCEPTED, "")

    replaced(stack, Outbox, "_deliver_one", mutated)


# Faults that the simulation has found, put back


@mutant
def delivery_gives_up(stack: ExitStack) -> None:
    """A local failure, such as a full disk, stops the delivery of a task's reports until the next restart."""
    deliver_one, start, once = Outbox._deliver_one, Outbox.start, set[int]()

    async def mutated(self: Outbox, report: Any, backoff: Any) -> None:
        try:
            await deliver_one(self, report, backoff)
        except Exception as error:
            raise asyncio.CancelledError from error

    async def at_the_start_only(self: Outbox) -> None:
        if id(self) not in once:
            once.add(id(self))
            await start(self)

    replaced(stack, Outbox, "_deliver_one", mutated)
    replaced(stack, Outbox, "start", at_the_start_only)


@mutant
def taken_reclaim_request_is_forgotten(stack: ExitStack) -> None:
    """A reclaim request whose end could not be recorded stays in execution until the next restart."""
    interrupt, once = Reclaims.interrupt_taken, WeakSet[Reclaims]()

    async def mutated(self: Reclaims) -> None:
        if self not in once:
            once.add(self)
            await interrupt(self)

    replaced(stack, Reclaims, "interrupt_taken", mutated)


@contextmanager
def payment_repeated() -> Iterator[None]:
    """Each order is paid twice. Alone this is no mutant: the payment record prevents the second payment."""
    pay = worker.orders.executor.pay

    async def mutated(order: OrderRun, intent: Any) -> End:
        await pay(order, intent)
        return await pay(order, intent)

    with patch.object(worker.orders.executor, "pay", mutated):
        yield
