"""Variants of the system that lack one safeguard each. The simulation must find every one of them guilty.

A mutant is a set of patches around a run; production code is never touched. What is broken is said in its docstring.
"""

import asyncio
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cache, wraps
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import gateway.api.services.order_leases as lease_service
import gateway.clock
import gateway.operations.decide
import gateway.orders.expire
import gateway.orders.hold
import gateway.orders.lease
import gateway.orders.permit
import gateway.orders.report
import gateway.waiting.lease_desk
import worker.execution
import worker.lease_guard
import worker.purchase
import worker.submission
from gateway.domain.models import Actor
from gateway.domain.refusals import Refusal, RefusedError
from gateway.domain.states import TaskStatus
from gateway.store.named_sql import statements
from gateway.store.sqlite.writer import GroupWriter
from tests.simulation import run
from tests.simulation.site import SimSite
from tests.simulation.worker_machine import SimClock
from worker.gateway_port import Refused, Unreachable
from worker.journal.journal import AlreadyRecordedError, Journal
from worker.journal.records import OrderStatus, Outcome
from worker.lease_guard import LeaseGuard
from worker.order_run import EndOrderError, OrderRun
from worker.outbox import Outbox
from worker.wire import report_to_wire

Mutant = Callable[[], AbstractContextManager[None]]
MUTANTS: dict[str, Mutant] = {}
_WHOLE = run.template
MOST_RUNS = 2_000
"""So many runs a mutant may survive."""


def mutant(function: Callable[[ExitStack], None]) -> Callable[[ExitStack], None]:
    """Registers a function that puts its patches on a stack."""

    @contextmanager
    def applied() -> Iterator[None]:
        with ExitStack() as stack:
            function(stack)
            yield

    MUTANTS[function.__name__] = applied
    return function


def _replace(stack: ExitStack, owner: Any, name: str, value: Any) -> None:
    stack.enter_context(patch.object(owner, name, value))


def _sql(stack: ExitStack, **changed: str) -> None:
    stack.enter_context(patch.dict(statements(), changed))  # type: ignore[arg-type]


@cache
def _without(*parts: str) -> Path:
    """The database template without some of its constraints."""
    path = Path(tempfile.mkdtemp(prefix="simulation-mutant-")) / "gateway.db"
    shutil.copy(_WHOLE(), path)
    connection = sqlite3.connect(path)
    for part in parts:
        connection.execute(f"DROP {part}")
    connection.commit()
    connection.close()
    return path


# The gateway


@mutant
def no_token_check(stack: ExitStack) -> None:
    """Whoever has the worker's name holds the lease."""

    def is_holder(lease: Any, holder: Any) -> bool:
        return lease is not None and lease.worker_id == holder.worker_id

    _replace(stack, gateway.orders.hold, "is_holder", is_holder)
    _replace(stack, gateway.orders.report, "is_holder", is_holder)


@mutant
def settle_counted_from_the_permit(stack: ExitStack) -> None:
    """The settle time begins when the permit was granted, not at the later of its expiry and the lease's end."""

    def settled_us(policy: Any, leases: Any) -> int | None:
        granted = [lease.permit_expires_us - policy.permit_ttl // _MICROSECOND for lease in leases]
        return max(granted) + policy.permit_settle // _MICROSECOND if granted else None

    _replace(stack, gateway.orders.permit, "settled_us", settled_us)


@mutant
def no_settle_time(stack: ExitStack) -> None:
    """A second permit is given at once."""
    _replace(stack, gateway.orders.permit, "settled_us", lambda _policy, _leases: 0)


@mutant
def second_permit_to_another_journal(stack: ExitStack) -> None:
    """Which journal had the first permit does not matter."""
    refuse, read = gateway.orders.permit._earlier_leases_refuse, gateway.orders.permit.lease_from

    def mutated(tx: Any, policy: Any, task: Any, lease: Any, request: Any, now: Any) -> Any:
        def as_own(row: Any) -> Any:
            return replace(read(row), journal_id=request.journal_id)

        with patch.object(gateway.orders.permit, "lease_from", as_own):
            return refuse(tx, policy, task, lease, request, now)

    _replace(stack, gateway.orders.permit, "_earlier_leases_refuse", mutated)


@mutant
def automatic_requeue(stack: ExitStack) -> None:
    """A lease that has run out puts its task back into the queue."""
    expire = gateway.orders.expire.expire

    def mutated(tx: Any, now: Any, task: Any, *args: Any, **options: Any) -> Any:
        stale = expire(tx, now, task, *args, **options)
        tx.change("task_requeue", task_id=task.task_id, at=now.utc, elapsed_us=now.elapsed_us)
        gateway.orders.expire.record(tx, now, stale, "requeue", Actor("gateway"), TaskStatus.QUEUED)
        return gateway.orders.expire.get_task(tx, task.task_id)

    for module in (gateway.orders.expire, gateway.orders.hold, gateway.orders.lease):
        _replace(stack, module, "expire", mutated)


@mutant
def expiry_only_by_the_sweep(stack: ExitStack) -> None:
    """A renewal, report or permit is not judged when it arrives."""
    for module in (gateway.orders.hold, gateway.orders.report):
        _replace(stack, module, "judge_at_use", lambda _tx, _now, task: task)


@mutant
def refusal_rolled_back_with_its_record(stack: ExitStack) -> None:
    """A refusal is an exception inside the transaction."""
    report = lease_service.report

    def mutated(*args: Any) -> Any:
        told = report(*args)
        if isinstance(told, Refusal):
            raise RefusedError(told)
        return told

    _replace(stack, lease_service, "report", mutated)


@mutant
def null_erases(stack: ExitStack) -> None:
    """A repeated report overwrites with what it does not bring."""
    _sql(
        stack,
        report_overwrite="UPDATE reports SET payable_yen = :payable_yen, pay_deadline = :pay_deadline,"
        " site_order_id = :site_order_id, evidence_ref = :evidence_ref, detail = :detail, error_code = :error_code,"
        " lease_number = :lease_number, sequence = :sequence WHERE task_id = :task_id AND state = :state",
    )


@mutant
def undo_without_the_fence(stack: ExitStack) -> None:
    """What a client that has gone was given is taken back, whatever became of it."""

    def undo(tx: Any, now: Any, task_id: str, token: str, actor: Any) -> bool:
        task = gateway.orders.lease.find_task(tx, task_id)
        if task is None or task.status is not TaskStatus.LEASED:
            return False
        tx.change("lease_undo", task_id=task_id, token=token)
        tx.change("task_give_back", task_id=task_id, lease_number=task.lease_count, at=now.utc)
        gateway.orders.lease.record(tx, now, task, "undo", actor, TaskStatus.QUEUED)
        return True

    _sql(stack, lease_undo="DELETE FROM leases WHERE task_id = :task_id AND :token <> '' AND ended_at IS NULL")
    _replace(stack, gateway.waiting.lease_desk, "undo_lease", undo)
    _replace(stack, run, "template", lambda: _without("TRIGGER leases_acknowledged_stay"))


@mutant
def order_of_arrival(stack: ExitStack) -> None:
    """The latest state is the one that arrived last, whatever its sequence."""
    mirror, arrived = gateway.orders.report._mirror, iter(range(2**30, 2**31))

    def mutated(tx: Any, now: Any, task: Any, lease: Any, state: Any, told: Any, status: Any) -> Any:
        return mirror(tx, now, task, lease, state, replace(told, sequence=next(arrived)), status)

    _replace(stack, gateway.orders.report, "_mirror", mutated)


@mutant
def unknown_numbers_ignored(stack: ExitStack) -> None:
    """A match on the site counts although another task may have an order whose number nobody has told."""
    _sql(stack, task_possibly_ordered_without_number="SELECT 1 AS found WHERE :site || :task_id || :since IS NULL")


@mutant
def no_pause(stack: ExitStack) -> None:
    """A pause does not hold back a permit."""
    _replace(stack, gateway.orders.permit, "_pause_refuses", lambda _tx, _task: None)


@mutant
def a_lease_for_everybody(stack: ExitStack) -> None:
    """An unacknowledged lease is repeated to any session that asks."""
    _sql(
        stack,
        lease_unacknowledged_of_session="SELECT * FROM leases"
        " WHERE ended_at IS NULL AND acknowledged_at IS NULL AND :session_id <> '' LIMIT 1",
    )
    _replace(
        stack, gateway.orders.lease, "_is_unacknowledged_of", lambda lease, _request: lease.acknowledged_at is None
    )


@mutant
def slots_not_unique(stack: ExitStack) -> None:
    """Neither the use case nor the database keeps a second task out of a slot."""
    _sql(stack, task_in_slot="SELECT task_id FROM tasks WHERE slot = :slot AND 0")
    _replace(stack, gateway.orders.lease, "LeaseScope", SimpleNamespace(GLOBAL=None))
    _replace(stack, run, "template", lambda: _without("INDEX tasks_one_active_a_slot"))


@mutant
def a_reboot_goes_unnoticed(stack: ExitStack) -> None:
    """After a reboot the machine's clock is taken for the same one going on."""
    init = gateway.clock.ServiceClock.__init__

    def mutated(self: Any, machine: Any, _boot_id: str, *args: Any) -> None:
        init(self, machine, machine.boot_id, *args)

    _replace(stack, gateway.clock.ServiceClock, "__init__", mutated)


@mutant
def answered_before_the_commit(stack: ExitStack) -> None:
    """Whoever asked is answered once the operation has run, not once it is on disk."""
    run_plainly, answer = GroupWriter._run_plainly, GroupWriter._answer

    def mutated(self: GroupWriter, group: list[Any], outcome: Any) -> bool:
        done = run_plainly(self, group, outcome)
        if done:
            answer(self, group)
        return done

    def to_the_rest(self: GroupWriter, group: list[Any]) -> None:
        answer(self, [job for job in group if not job.future.done()])

    _replace(stack, GroupWriter, "_run_plainly", mutated)
    _replace(stack, GroupWriter, "_answer", to_the_rest)


@mutant
def stale_without_an_alert(stack: ExitStack) -> None:
    """Nobody is told that a lease has run out."""
    _replace(stack, gateway.orders.expire, "raise_alert", lambda *_: False)


@mutant
def needs_human_without_an_alert(stack: ExitStack) -> None:
    """Nobody is told that a task needs a person."""
    _replace(stack, gateway.orders.report, "raise_alert", lambda *_: False)


@mutant
def resolved_before_it_is_settled(stack: ExitStack) -> None:
    """A person's statement that nothing was ordered is taken while a click may still be on its way."""
    _replace(stack, gateway.operations.decide, "_not_settled", lambda *_: None)


# The worker


@mutant
def no_permit(stack: ExitStack) -> None:
    """The worker clicks without asking."""

    async def granted(_run: OrderRun, _intent: Any) -> Any:
        return worker.submission.Permit(deadline=float("inf"), waited=False)

    _replace(stack, worker.submission, "obtain_permit", granted)


@mutant
def permit_without_expiry(stack: ExitStack) -> None:
    """A permit is good for ever."""
    _replace(stack, worker.submission, "_ensure_permitted", lambda _run, _permit: None)


@mutant
def no_look_when_the_connection_stands(stack: ExitStack) -> None:
    """The last look at permit and lease comes before the connection is opened that the click goes over."""

    async def connect(self: SimSite, _last_look: Any) -> None:
        await asyncio.sleep(self._link.delay())

    _replace(stack, SimSite, "_connect", connect)


@mutant
def permit_counted_from_the_answer(stack: ExitStack) -> None:
    """The permit's time begins when its answer arrives."""
    obtain = worker.submission.obtain_permit

    async def mutated(order: OrderRun, intent: Any) -> Any:
        permit = await obtain(order, intent)
        return replace(permit, deadline=order.parts.clock.elapsed() + 10.0)

    _replace(stack, worker.submission, "obtain_permit", mutated)


@mutant
def no_verification(stack: ExitStack) -> None:
    """A recovered task is ordered without a look at the site."""

    async def nothing(*_: Any) -> None: ...

    _replace(stack, worker.execution, "come_back", nothing)
    _replace(stack, gateway.orders.permit, "_verification_refuses", lambda *_: None)


@mutant
def false_attestation(stack: ExitStack) -> None:
    """The journal is not asked whether it holds a click record."""

    async def no(*_: Any) -> bool:
        return False

    _replace(stack, Journal, "has_click", no)


@mutant
def click_record_after_the_click(stack: ExitStack) -> None:
    """First the click, then its record."""
    click = worker.submission._click

    async def check(order: OrderRun, permit: Any) -> None:
        worker.submission._ensure_permitted(order, permit)
        order.guard.ensure_may_begin()

    async def mutated(order: OrderRun, confirmation: Any, permit: Any) -> Any:
        order.clicked = True
        answer = await click(order, confirmation, permit)
        try:
            await order.parts.journal.record_click(order.task_id, order.lease.lease_token)
        except AlreadyRecordedError as error:
            raise worker.submission.needs_human("clicked before") from error
        return answer

    _replace(stack, worker.submission, "_record_click", check)
    _replace(stack, worker.submission, "_click", mutated)


@mutant
def submit_resent_by_the_client(stack: ExitStack) -> None:
    """The submit goes on a connection that was used before, and is sent again if that turns out dead."""

    async def submit(self: SimSite, confirmation: Any, _last_look: Any) -> Any:
        return await self._submit(confirmation, fresh=False)

    _replace(stack, SimSite, "submit", submit)


@mutant
def failed_after_a_click_record(stack: ExitStack) -> None:
    """What went wrong after the click is told as failed."""
    end_for = worker.execution._end_for

    async def mutated(order: OrderRun, error: Exception) -> EndOrderError:
        end = await end_for(order, error)
        if order.clicked and not order.state.is_placed and end.status is OrderStatus.NEEDS_HUMAN:
            return EndOrderError(OrderStatus.FAILED, str(end), error_code=end.error_code)
        return end

    _replace(stack, worker.execution, "_end_for", mutated)


@mutant
def recovered_run_pays(stack: ExitStack) -> None:
    """A run that took a task over pays its order."""
    pay = worker.execution.pay

    async def mutated(order: OrderRun, intent: Any) -> None:
        order.recovered = False
        await pay(order, intent)

    _replace(stack, worker.execution, "pay", mutated)


@mutant
def cart_not_compared(stack: ExitStack) -> None:
    """Whatever is in the cart is ordered: neither the cart nor the confirmation page is compared with the intent."""
    _replace(stack, worker.purchase, "difference", lambda _wanted, _shown: None)


@mutant
def confirmation_not_compared(stack: ExitStack) -> None:
    """The cart is compared, the confirmation page is not."""
    difference, open_confirmation = worker.purchase.difference, SimSite.open_confirmation
    on_a_page: list[Any] = []

    async def noted(self: SimSite, options: Any) -> Any:
        confirmation = await open_confirmation(self, options)
        on_a_page.append(confirmation.items)
        return confirmation

    def mutated(wanted: Any, shown: Any) -> str | None:
        return None if any(shown is items for items in on_a_page) else difference(wanted, shown)

    _replace(stack, SimSite, "open_confirmation", noted)
    _replace(stack, worker.purchase, "difference", mutated)


@mutant
def payment_not_recorded(stack: ExitStack) -> None:
    """Each order is paid a second time, and no record keeps that out (see `payment_repeated`)."""

    async def nothing(*_: Any) -> None: ...

    _replace(stack, Journal, "record_payment", nothing)
    stack.enter_context(payment_repeated())


@mutant
def no_amount_guard(stack: ExitStack) -> None:
    """Whatever it costs is paid."""
    _replace(stack, worker.purchase, "guard_amount", lambda _yen, _limit: None)


@mutant
def wall_clock_lease_guard(stack: ExitStack) -> None:
    """Deadlines are counted on the wall clock."""

    def elapsed(self: SimClock) -> float:
        return float(self._machine.loop.time() + self._machine.wall_offset)

    _replace(stack, SimClock, "elapsed", elapsed)


@mutant
def lease_counted_from_the_answer(stack: ExitStack) -> None:
    """A renewed lease is trusted from the moment its answer arrives."""
    renew = LeaseGuard.renew

    async def mutated(self: LeaseGuard) -> None:
        await renew(self)
        self._deadline = self._clock.elapsed() + self._ttl

    _replace(stack, LeaseGuard, "renew", mutated)


@mutant
def lost_lease_ignored(stack: ExitStack) -> None:
    """The worker begins and goes on with steps on the site whatever became of its lease."""

    async def hold(_self: LeaseGuard, step: Any, *, seconds: float | None) -> Any:
        async with asyncio.timeout(seconds):
            return await step

    _replace(stack, LeaseGuard, "hold", hold)
    _replace(stack, LeaseGuard, "ensure_may_begin", lambda _self: None)


@mutant
def no_acknowledgement(stack: ExitStack) -> None:
    """The worker acts as soon as it has a lease."""
    renew, begun = LeaseGuard.renew, set[int]()

    @wraps(renew)
    async def mutated(self: LeaseGuard) -> None:
        if id(self) in begun:
            await renew(self)
        begun.add(id(self))
        self._deadline = self._clock.elapsed() + self._ttl

    _replace(stack, LeaseGuard, "renew", mutated)


@mutant
def report_before_evidence(stack: ExitStack) -> None:
    """The page goes to the disk when there is time."""
    keep, writing = OrderRun.keep, list[Any]()

    async def mutated(self: OrderRun, step: str, page: Any, state: Any = None) -> str:
        ref = f"{self.folder}/{self.parts.evidence._free_name(self.folder, step)}"

        async def later() -> None:
            await asyncio.sleep(0.5)
            await keep(self, step, page, state)

        writing.append(asyncio.ensure_future(later()))
        self.evidence_ref = ref
        return ref

    _replace(stack, OrderRun, "keep", mutated)


@mutant
def a_report_is_sent_once(stack: ExitStack) -> None:
    """A report whose answer does not come counts as delivered."""

    async def mutated(self: Outbox, report: Any, _backoff: Any) -> None:
        with suppress(Unreachable, Refused):
            await self._gateway.report(report_to_wire(report, self._worker_id))
        await self._journal.settle_report(report.sequence, Outcome.ACCEPTED, "")

    _replace(stack, Outbox, "_deliver_one", mutated)


# Faults that the simulation has found, put back


@mutant
def delivery_gives_up(stack: ExitStack) -> None:
    """A local failure, such as a full disk, ends the delivery of a task's reports until the next restart."""
    deliver_one = Outbox._deliver_one

    async def mutated(self: Outbox, report: Any, backoff: Any) -> None:
        try:
            await deliver_one(self, report, backoff)
        except Exception as error:
            raise asyncio.CancelledError from error

    _replace(stack, Outbox, "_deliver_one", mutated)


@mutant
def taken_wish_is_forgotten(stack: ExitStack) -> None:
    """A wish whose end could not be written down is in execution until the next restart."""
    interrupt, once = Journal.interrupt_taken_wishes, set[str]()

    async def mutated(self: Journal) -> None:
        incarnation = f"{self.journal_id} {id(self)}"
        if incarnation not in once:
            once.add(incarnation)
            await interrupt(self)

    _replace(stack, Journal, "interrupt_taken_wishes", mutated)


@contextmanager
def payment_repeated() -> Iterator[None]:
    """Each order is paid a second time. Alone this is no mutant: the payment record keeps the second payment out."""
    pay = worker.execution.pay

    async def mutated(order: OrderRun, intent: Any) -> None:
        with suppress(EndOrderError):
            await pay(order, intent)
        await pay(order, intent)

    with patch.object(worker.execution, "pay", mutated):
        yield


_MICROSECOND = gateway.orders.permit.timedelta(microseconds=1)


def runs_until_found(seed: int, name: str) -> tuple[int, str]:
    """How many runs from `seed` on it takes until a mutant is found guilty, and of what; (0, "") if it never is."""
    for number in range(MOST_RUNS):
        with MUTANTS[name]():
            result = run.simulate(seed + number)
        if result.violations:
            return number + 1, result.violations[0]
    return 0, ""
