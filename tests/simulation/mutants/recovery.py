"""Variants of the worker that lack one safeguard each: of the click record, of coming back, of looking."""

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any

import worker.gateway.lease_guard
import worker.orders.intake
import worker.orders.recovery
import worker.orders.submit
import worker.orders.verification
from tests.simulation.mutants.registry import mutant, replaced
from tests.simulation.site import SimSite
from worker.evidence.store import EvidenceStore
from worker.gateway.lease_guard import StepTimeoutError
from worker.journal.claims import AlreadyRecordedError, Claims
from worker.journal.orders import Orders
from worker.journal.records import Taken
from worker.orders.ends import End
from worker.orders.executor import execute
from worker.orders.other_tasks import OtherTasks
from worker.orders.permit import NOT_ASKED, Permit
from worker.orders.run import OrderRun
from worker.orders.state import OrderState
from worker.orders.verification import Judgement, Verdict
from worker.sites.port import Cart, OrderList, Page

# The permit and the click


@mutant
def click_though_no_permit_could_be_asked(stack: ExitStack) -> None:
    """The worker clicks without a permit when the gateway is unreachable."""
    obtain = worker.orders.submit.obtain_permit

    async def mutated(order: OrderRun, *args: Any) -> Any:
        with suppress(StepTimeoutError):
            answer = await obtain(order, *args)
            if not (isinstance(answer, End) and answer.detail.startswith(NOT_ASKED)):
                return answer
        return Permit(deadline=float("inf"), waited=False)

    replaced(stack, worker.orders.submit, "obtain_permit", mutated)


@mutant
def click_record_not_awaited(stack: ExitStack) -> None:
    """The click does not wait for its record to be flushed."""
    record, writing = Claims.record_click, list[Any]()

    async def mutated(self: Claims, *args: Any) -> None:
        writing.append(asyncio.ensure_future(record(self, *args)))

    replaced(stack, Claims, "record_click", mutated)


@mutant
def one_click_a_lease(stack: ExitStack) -> None:
    """The click record is unique for each lease instead of each task."""
    record = Claims.record_click

    async def mutated(self: Claims, task_id: str, lease_token: str) -> None:
        try:
            await record(self, task_id, lease_token)
        except AlreadyRecordedError:
            row = await self._database.row("SELECT lease_token FROM clicks WHERE task_id = ?", (task_id,))
            if row is None or row["lease_token"] == lease_token:
                raise

    replaced(stack, Claims, "record_click", mutated)


@mutant
def click_record_passed_over(stack: ExitStack) -> None:
    """An existing click record does not prevent the click."""
    record = Claims.record_click

    async def mutated(self: Claims, *args: Any) -> None:
        try:
            await record(self, *args)
        except AlreadyRecordedError:
            return

    replaced(stack, Claims, "record_click", mutated)


@mutant
def never_clicked_whatever_the_journal_says(stack: ExitStack) -> None:
    """A run assumes that nothing was clicked, whatever the journal says."""

    def ignorant(**about: Any) -> OrderRun:
        return OrderRun(**about | {"clicked": False})

    replaced(stack, worker.orders.intake, "OrderRun", ignorant)


@mutant
def click_broken_off_by_a_stop(stack: ExitStack) -> None:
    """A stop or a lost lease cancels a click in progress."""

    async def mutated(self: OrderRun, operation: Any) -> Any:
        return await self.guard.hold(operation, seconds=self.parts.policy.step_seconds)

    replaced(stack, OrderRun, "to_the_end", mutated)


@mutant
def no_new_confirmation_after_a_wait(stack: ExitStack) -> None:
    """After waiting for a permit the worker submits the confirmation page from before the wait."""
    obtain = worker.orders.submit.obtain_permit

    async def mutated(*args: Any) -> Any:
        permit = await obtain(*args)
        return permit if isinstance(permit, End) else replace(permit, waited=False)

    replaced(stack, worker.orders.submit, "obtain_permit", mutated)


@mutant
def cart_not_emptied(stack: ExitStack) -> None:
    """The cart is not emptied first: what an earlier run or somebody else left stays in it."""

    async def nothing(_self: SimSite) -> Cart:
        return Cart((), Page("", "GET", 200, b""))

    replaced(stack, SimSite, "clear_cart", nothing)


@mutant
def evidence_written_over(stack: ExitStack) -> None:
    """A repeated step overwrites its earlier evidence."""
    replaced(stack, EvidenceStore, "_free_name", lambda _self, _folder, step: step)


@mutant
def no_margin_in_the_lease_guard(stack: ExitStack) -> None:
    """The lease guard has no margin, so a write can arrive after the lease's end."""
    replaced(stack, worker.gateway.lease_guard, "margin_of", lambda _ttl: 0.0)


# Coming back


@mutant
def ended_task_run_again(stack: ExitStack) -> None:
    """A task that the journal has ended is executed again."""

    async def again(order: OrderRun, _known: Any) -> Any:
        return await execute(order)

    replaced(stack, worker.orders.intake, "report_end_again", again)


@mutant
def recovered_judged_by_lease_count_alone(stack: ExitStack) -> None:
    """A task with its first lease counts as new, even if the journal knows it."""
    take = Orders.take_lease

    async def mutated(self: Orders, lease: Any) -> Taken | None:
        taken = await take(self, lease)
        return None if taken is None else replace(taken, known=False)

    replaced(stack, Orders, "take_lease", mutated)


@mutant
def lease_taken_twice(stack: ExitStack) -> None:
    """A lease that the journal already has is executed again."""
    take = Orders.take_lease

    async def mutated(self: Orders, lease: Any) -> Taken | None:
        taken = await take(self, lease)
        order = await self.find(lease.task_id)
        return Taken(order=order, known=True) if taken is None and order is not None else taken

    replaced(stack, Orders, "take_lease", mutated)


@mutant
def placed_but_not_found_goes_on(stack: ExitStack) -> None:
    """An order that was reported, and is not in the list, is placed again."""
    settle = worker.orders.recovery.apply_finding

    async def mutated(order: OrderRun, finding: Any) -> End | None:
        if not order.clicked and order.state.is_placed and finding.judgement.verdict == Verdict.VERDICT_NOT_ORDERED:
            order.state = OrderState.IN_CART
        return await settle(order, finding)

    replaced(stack, worker.orders.recovery, "apply_finding", mutated)


# Looking


@mutant
def first_page_only(stack: ExitStack) -> None:
    """Only the first page of the order list is read, and counts as all of it."""
    list_orders = SimSite.list_orders

    async def mutated(self: SimSite, *, since: Any, max_pages: int) -> OrderList:
        del max_pages
        listed = await list_orders(self, since=since, max_pages=1)
        return replace(listed, window_fully_covered=True)

    replaced(stack, SimSite, "list_orders", mutated)


@mutant
def a_failing_list_is_empty(stack: ExitStack) -> None:
    """An order list that cannot be read counts as empty."""
    list_orders = SimSite.list_orders

    async def mutated(self: SimSite, **about: Any) -> OrderList:
        try:
            return await list_orders(self, **about)
        except Exception:  # noqa: BLE001 -- it is the fault
            return OrderList((), True, (), (self._page("/account/orders"),))

    replaced(stack, SimSite, "list_orders", mutated)


@mutant
def others_numbers_not_left_out(stack: ExitStack) -> None:
    """The numbers of other tasks' orders are not excluded from the matches."""
    _judged(stack, lambda _listed, _numbers: frozenset())


@mutant
def others_numbers_by_suffix(stack: ExitStack) -> None:
    """Other tasks' orders are compared by the last four characters of their numbers only."""

    def alike(listed: OrderList, numbers: frozenset[str]) -> frozenset[str]:
        ends = {number[-4:] for number in numbers}
        return frozenset(order.order_number for order in listed.orders if order.order_number[-4:] in ends)

    _judged(stack, alike)


@mutant
def own_numbers_of_others_forgotten(stack: ExitStack) -> None:
    """Other tasks' order numbers come from the gateway only, not from the worker's own journal."""

    async def none(*_: Any) -> frozenset[str]:
        return frozenset()

    replaced(stack, Orders, "numbers_of_others", none)


@mutant
def first_of_several_matches(stack: ExitStack) -> None:
    """Of several matching orders the first one counts."""
    judge = worker.orders.verification.judge

    def mutated(listed: OrderList, wanted: Sequence[Any], others: OtherTasks) -> Judgement:
        judgement = judge(listed, wanted, others)
        alone = [judge(replace(listed, orders=(order,)), wanted, others) for order in listed.orders]
        full = [one for one in alone if one.order_number is not None]
        return full[0] if judgement.verdict == Verdict.VERDICT_UNKNOWN and len(full) > 1 else judgement

    replaced(stack, worker.orders.verification, "judge", mutated)


def _judged(stack: ExitStack, numbers_as: Any) -> None:
    judge = worker.orders.verification.judge

    def mutated(listed: OrderList, wanted: Sequence[Any], others: OtherTasks) -> Judgement:
        return judge(listed, wanted, replace(others, numbers=numbers_as(listed, others.numbers)))

    replaced(stack, worker.orders.verification, "judge", mutated)
