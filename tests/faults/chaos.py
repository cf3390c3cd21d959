"""The chaos test: gateways and worker as processes, a shop that counts, a person who decides, and blows from all sides.

Each task buys a product of its own, so the shop's book tells for each task how often it was ordered and paid. Upstream
and person call any of the gateways, and another one where that does not answer.
"""

import asyncio
import json
import signal
import time
import uuid
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
from grpc.aio import AioRpcError
from ordergateway.v1 import operations_pb2, orders_pb2
from ordergateway.v1.operations_pb2_grpc import OperationsServiceStub
from ordergateway.v1.orders_pb2_grpc import OrderServiceStub

from sandbox_shop.catalogue import Product
from tests.e2e.parts import AUTHORIZED
from tests.faults.blows import Blows
from tests.faults.program import PATIENCE_SECONDS, Program
from tests.faults.promises import Database, Kept, Promises, compare, rows, waiting_reports
from tests.faults.proxy import Mode
from tests.faults.stage import LEASE_SECONDS, SETTINGS, Stage, running_stage
from tests.gateway.support.replay import contradictions
from tests.worker.virtual import ManualClock
from worker.failpoints import FailpointName
from worker.journal.errors import JournalError
from worker.journal.journal import Journal

__all__ = ["LEASE_SECONDS", "SETTINGS"]

LOOK_SECONDS = 0.1
ENDED = (orders_pb2.TASK_STATUS_SUCCEEDED, orders_pb2.TASK_STATUS_FAILED)
STALE = orders_pb2.TASK_STATUS_STALE
NEEDS_HUMAN = orders_pb2.TASK_STATUS_NEEDS_HUMAN
QUANTITY = 2
NO_DATABASE_AT_START = "the gateway can be started again once that is over"


class ChaosTest:
    """Everything that runs, and what was promised to the upstream."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._shop = stage.shop
        self._blows = Blows(stage)
        self.chance, self.figures, self.violations = stage.chance, stage.figures, stage.violations
        self.database, self.journal, self.proxy = stage.database, stage.journal, stage.proxy
        self.gateway, self.worker = stage.gateways[0].program, stage.worker
        self.promises = Promises()
        self._orders = [OrderServiceStub(gateway.channel) for gateway in stage.gateways]
        self._operations = [OperationsServiceStub(gateway.channel) for gateway in stage.gateways]

    @property
    def orders(self) -> Any:
        """Calls one of the gateways, each time another one."""
        return self.chance.choice(self._orders)

    @property
    def operations(self) -> Any:
        """As `orders`."""
        return self.chance.choice(self._operations)

    # The upstream

    async def submit(self, task_id: str) -> None:
        """Submits until it is acknowledged."""
        code = f"item-{task_id}"
        product = Product(len(self._shop.shop.products), code, code, "made for one task", 1_000, {None: 10_000})
        self._shop.shop.products[code] = product
        body = json.dumps({"item_url": self._shop.item_url(code), "quantity": QUANTITY})
        request = orders_pb2.SubmitOrderRequest(task_id=task_id, site="sandbox", intent_json=body)
        while True:
            try:
                await self.orders.SubmitOrder(request, metadata=AUTHORIZED, timeout=3)
            except AioRpcError:
                self.figures["submits without an answer"] += 1
                await asyncio.sleep(0.1)
            else:
                self.promises.submits[task_id] = body
                return

    async def freeze_worker_at(self, place: FailpointName, task_id: str) -> None:
        """Submits a task and returns once the worker stands still there with it."""
        await self.keep_up()
        await self.worker.armed(place, signal.SIGSTOP)
        await self.submit(task_id)
        await self.worker.until_frozen()

    # The person

    async def keep_up(self) -> None:
        """Starts what was killed. A program that ended in any other way is a finding."""
        self._blows.thaw()
        for program in self._stage.programs:
            if not program.is_up:
                self._note_the_end_of(program)
                await program.end()
                await program.start()
                self.figures[f"starts of the {program.name}"] += 1

    def _note_the_end_of(self, program: Program) -> None:
        code = program.ended_with
        if code == -signal.SIGKILL:
            self.figures[f"kills of the {program.name}"] += 1
        elif code is not None and program.last_words.rstrip().endswith(NO_DATABASE_AT_START):
            self.figures[f"starts of the {program.name} without its database"] += 1
        elif code is not None:
            self.violations.append(f"the {program.name} ended by itself, with code {code}")

    async def decide(self, task_id: str) -> bool:
        """Looks at a task and acts; True once it has ended, or is unknown."""
        try:
            request = orders_pb2.GetOrderRequest(task_id=task_id)
            task = (await self.orders.GetOrder(request, metadata=AUTHORIZED, timeout=3)).task
            if task.status in ENDED:
                return True
            if task.status == STALE:
                await self._take_again(task_id)
            elif task.status == NEEDS_HUMAN:
                await self._resolve(task_id)
        except AioRpcError as error:
            return error.code() is grpc.StatusCode.NOT_FOUND
        return False

    async def _take_again(self, task_id: str) -> None:
        self.figures["stale, taken again"] += 1
        if self.chance.random() < 0.3:
            reason = f"once more, {uuid.uuid4()}"
            request = operations_pb2.RequeueOrderRequest(task_id=task_id, reason=reason)
            await self.operations.RequeueOrder(request, metadata=AUTHORIZED, timeout=3)
            self.promises.decisions.append((task_id, "requeue", reason))
            return
        with suppress(JournalError):
            journal = await Journal.open_beside(self.journal, clock=ManualClock())
            try:
                self.promises.reclaim_requests[await journal.reclaims.file(task_id)] = task_id
            finally:
                await journal.close()

    async def _resolve(self, task_id: str) -> None:
        numbers = [order.number for order in self.ordered(task_id)]
        reason = f"looked at the shop, {uuid.uuid4()}"
        request = operations_pb2.ResolveOrderRequest(task_id=task_id, reason=reason)
        if numbers:
            request.outcome, request.site_order_id = ENDED[0], numbers[0]
        else:
            request.outcome = ENDED[1]
        await self.operations.ResolveOrder(request, metadata=AUTHORIZED, timeout=3)
        self.promises.decisions.append((task_id, "resolve", reason))

    def ordered(self, task_id: str) -> list[Any]:
        code = f"item-{task_id}"
        orders = self._shop.shop.orders.values()
        return [order for order in orders if any(line.code == code for line in order.quote.lines)]

    async def judge(self, task_id: str) -> None:
        """Compares the shop's book with what the gateways say of an ended task."""
        request = orders_pb2.GetOrderRequest(task_id=task_id)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                task = (await self.orders.GetOrder(request, metadata=AUTHORIZED, timeout=5, wait_for_ready=True)).task
                break
            except AioRpcError as error:
                if error.code() is grpc.StatusCode.NOT_FOUND or time.monotonic() > deadline:
                    self.violations.append(f"{task_id}: {error.details()}")
                    return
                await self.keep_up()
        orders = self.ordered(task_id)
        self.figures["orders placed"] += len(orders)
        if len(orders) > 1:
            self.figures["duplicates"] += 1
            self.violations.append(f"{task_id}: ORDERED {len(orders)} TIMES")
        if (task.status == ENDED[0]) != bool(orders):
            self.violations.append(f"{task_id}: status {task.status} with {len(orders)} orders")
        for order in orders:
            units = sum(line.quantity for line in order.quote.lines)
            if len(order.quote.lines) != 1 or units != QUANTITY:
                self.violations.append(f"{task_id}: {units} units in {len(order.quote.lines)} lines")
            if order.payments > 1:
                self.violations.append(f"{task_id}: paid {order.payments} times")
            self.figures["payments"] += order.payments

    async def judge_books(self) -> Kept:
        """Compares what was acknowledged with what is there, once every report has arrived."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while waiting := waiting_reports(self.journal):
            await self.keep_up()
            await asyncio.sleep(LOOK_SECONDS)
            if time.monotonic() > deadline:
                self.violations.append(f"{waiting} reports wait for ever")
                break
        kept = self.compare(self.database)
        self.violations += kept.violations
        self.violations += [f"{count} times: {what}" for what, count in self.contradictions().items()]
        return kept

    def contradictions(self) -> dict[str, int]:
        """Replays the history; says what of it cannot have been, and how often."""
        return contradictions(
            rows(self.database, "SELECT * FROM events WHERE subject <> '' ORDER BY sequence"),
            rows(self.database, "SELECT * FROM tasks"),
            rows(self.database, "SELECT * FROM leases ORDER BY task_id, lease_number"),
            permit_seconds=float(self._stage.settings["RAKUTEN_PERMIT_TTL_SECONDS"]),
            settle_seconds=float(self._stage.settings["RAKUTEN_PERMIT_SETTLE_SECONDS"]),
        )

    def compare(self, database: Database) -> Kept:
        """Looks for everything acknowledged in that database of the gateway."""
        ordered = {task_id: [order.number for order in self.ordered(task_id)] for task_id in self.promises.submits}
        return compare(self.promises, ordered, self.journal, database)

    async def until_ended(self, task_id: str) -> None:
        """The person stays with a task until it has ended."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            await self.keep_up()
            if await self.decide(task_id):
                await self.judge(task_id)
                return
            await asyncio.sleep(LOOK_SECONDS)
        self.violations.append(
            f"{task_id}: did not end within {PATIENCE_SECONDS:g} s; {await self._last_word(task_id)}"
        )

    async def _last_word(self, task_id: str) -> str:
        """What a person would want to know of a task that hangs."""
        up = ", ".join(f"{program.name} up {program.is_up}" for program in self._stage.programs)
        try:
            request = operations_pb2.ListEventsRequest(subject=task_id, page_size=8)
            told = await self.operations.ListEvents(request, metadata=AUTHORIZED, timeout=3)
        except AioRpcError as error:
            return f"{up}, no answer: {error.details()}"
        events = ", ".join(event.kind for event in reversed(told.events))
        return f"{up}, last events {events}; the worker's log ends:\n{self.worker.last_words}"

    # The two ways of testing

    async def round(self, number: int) -> None:
        """One task, one blow, and the person until its end."""
        await self.keep_up()
        blow = self.chance.choice(self._blows.all())
        await self._while_started(asyncio.gather(blow(), self.submit(f"t-{number}")))
        await self.until_ended(f"t-{number}")

    async def _while_started(self, work: Awaitable[object]) -> None:
        """Starts again what is killed while `work` goes on."""
        task = asyncio.ensure_future(work)
        while not task.done():
            await asyncio.wait({task}, timeout=LOOK_SECONDS)
            await self.keep_up()
        await task

    async def soak(self, seconds: float) -> None:
        """Submissions, blows and decisions all at once for that long; then peace, and the judgement of every task."""
        end = time.monotonic() + seconds
        open_tasks: set[str] = set()
        number = 0

        async def submit() -> None:
            nonlocal number
            while time.monotonic() < end:
                number += 1
                await self.submit(f"s-{number}")
                open_tasks.add(f"s-{number}")
                await asyncio.sleep(self.chance.uniform(0.0, 1.5))

        async def strike() -> None:
            while time.monotonic() < end:
                await asyncio.sleep(self.chance.uniform(0.2, 2.5))
                await self.chance.choice(self._blows.all())()

        async def decide() -> None:
            while time.monotonic() < end:
                for task_id in sorted(open_tasks):
                    await self.decide(task_id)
                await asyncio.sleep(0.3)

        chaotic_work = [asyncio.ensure_future(work()) for work in (submit, strike, decide)]
        while not all(work.done() for work in chaotic_work):
            await self.keep_up()
            await asyncio.sleep(0.2)
        await asyncio.gather(*chaotic_work)
        self.proxy.set(Mode.PASS)
        for task_id in sorted(open_tasks):
            await self.until_ended(task_id)


@asynccontextmanager
async def chaos_test(
    folder: Path,
    seed: int = 1,
    of_gateway: dict[str, str] | None = None,
    of_worker: dict[str, str] | None = None,
    gateways: int | None = None,
) -> AsyncIterator[ChaosTest]:
    """Everything that a chaos test needs, with further settings of the programs; nothing of it is left.

    `gateways` None: one, on a SQLite file; else so many on a PostgreSQL server of this test.
    """
    async with running_stage(folder, seed, of_gateway or {}, of_worker or {}, gateways) as stage:
        yield ChaosTest(stage)
