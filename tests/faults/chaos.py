"""The chaos test: gateway and worker as processes, a shop that counts, a person who decides, and blows from all sides.

Each task buys a product of its own, so the shop's book tells for each task how often it was ordered and paid.
"""

import asyncio
import json
import random
import signal
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
from grpc.aio import AioRpcError
from ordergateway.v1 import operations_pb2, orders_pb2
from ordergateway.v1.operations_pb2_grpc import OperationsServiceStub
from ordergateway.v1.orders_pb2_grpc import OrderServiceStub

from demo.programs import free_port
from sandbox_shop.catalogue import Product
from tests.e2e.parts import AUTHORIZED, GATEWAY_SETTINGS, TOKEN
from tests.faults.armed import GATEWAY_PLACES
from tests.faults.program import PATIENCE_SECONDS, Program
from tests.faults.promises import Kept, Promises, compare, waiting_reports
from tests.faults.proxy import FaultyProxy, Mode
from tests.worker.running_shop import RunningShop, running_shop
from tests.worker.virtual import ManualClock
from worker.failpoints import FailpointName
from worker.journal.errors import JournalError
from worker.journal.journal import Journal

LEASE_SECONDS = 2.5
SETTLE_SECONDS = 0.3
LOOK_SECONDS = 0.1
ENDED = (orders_pb2.TASK_STATUS_SUCCEEDED, orders_pb2.TASK_STATUS_FAILED)
ACTIVE = (orders_pb2.TASK_STATUS_LEASED, orders_pb2.TASK_STATUS_RUNNING)
STALE = orders_pb2.TASK_STATUS_STALE
NEEDS_HUMAN = orders_pb2.TASK_STATUS_NEEDS_HUMAN
QUANTITY = 2

SETTINGS = GATEWAY_SETTINGS | {
    "RAKUTEN_LEASE_TTL_SECONDS": str(LEASE_SECONDS),
    "RAKUTEN_LEASE_ACK_SECONDS": str(LEASE_SECONDS),
    "RAKUTEN_PERMIT_SETTLE_SECONDS": str(SETTLE_SECONDS),
}


class ChaosTest:
    """Everything that runs, and what was promised to the upstream."""

    def __init__(
        self,
        folder: Path,
        shop: RunningShop,
        proxy: FaultyProxy,
        port: int,
        seed: int,
        of_gateway: dict[str, str],
        of_worker: dict[str, str],
    ) -> None:
        self.chance = random.Random(seed)  # noqa: S311 -- reproducible as far as processes are
        self.figures: Counter[str] = Counter()
        self._thaw_at = 0.0
        self.violations: list[str] = []
        self._folder = folder
        self.database = folder / "data" / "gateway.db"
        self.journal = Path(of_worker.get("RAKUTEN_TRADING_DB_PATH", folder / "data" / "trading.db"))
        self._shop = shop
        self.proxy = proxy
        self.promises = Promises()
        self.gateway = Program("gateway", folder, SETTINGS | {"RAKUTEN_GATEWAY_GRPC_PORT": str(port)} | of_gateway)
        self.worker = Program(
            "worker",
            folder,
            {
                "RAKUTEN_ORDER_GATEWAY_URL": f"grpc://127.0.0.1:{proxy.port}",
                "RAKUTEN_API_TOKEN": TOKEN,
                "RAKUTEN_WORKER_ID": "worker-1",
                "RAKUTEN_SANDBOX_URL": shop.url,
                "RAKUTEN_SCREENSHOTS": "false",
                "RAKUTEN_ORDER_MAX_TOTAL_YEN": "100000",
                "RAKUTEN_LOST_ANSWER_LOOK_SECONDS": "0.5",
                "RAKUTEN_LOST_ANSWER_INTERVAL_SECONDS": "0.1",
            }
            | of_worker,
        )
        self._channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.max_reconnect_backoff_ms", 200)])
        self.orders: Any = OrderServiceStub(self._channel)
        self.operations: Any = OperationsServiceStub(self._channel)

    async def close(self) -> None:
        await self._channel.close()
        for program in (self.worker, self.gateway):
            await program.end()

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

    # The blows

    def blows(self) -> list[Callable[[], Awaitable[None]]]:
        return [
            self._kill_worker_at_a_failpoint, self._kill_worker_at_a_failpoint, self._kill_worker,
            self._kill_gateway_at_a_commit, self._kill_gateway_at_a_commit, self._kill_gateway, self._kill_both,
            self._freeze_worker, self._bad_network,
        ]  # fmt: skip

    async def _kill_worker_at_a_failpoint(self) -> None:
        self.figures["worker armed at a failpoint"] += 1
        self.worker.arm(self.chance.choice(list(FailpointName)))

    async def _kill_worker(self) -> None:
        await asyncio.sleep(self.chance.uniform(0, 0.5))
        self.figures["worker killed"] += 1
        self.worker.send(signal.SIGKILL)

    async def _kill_gateway_at_a_commit(self) -> None:
        await asyncio.sleep(self.chance.uniform(0, 0.3))
        self.figures["gateway armed at a commit"] += 1
        self.gateway.arm(self.chance.choice(GATEWAY_PLACES))

    async def _kill_gateway(self) -> None:
        await asyncio.sleep(self.chance.uniform(0, 0.5))
        self.figures["gateway killed"] += 1
        self.gateway.send(signal.SIGKILL)

    async def _kill_both(self) -> None:
        await asyncio.sleep(self.chance.uniform(0, 0.5))
        self.figures["both killed"] += 1
        self.gateway.send(signal.SIGKILL)
        self.worker.send(signal.SIGKILL)

    async def freeze_worker_at(self, place: FailpointName, task_id: str) -> None:
        """Submits a task and returns once the worker stands still there with it."""
        await self.keep_up()
        self.worker.arm(place, signal.SIGSTOP)
        await self.submit(task_id)
        await self.worker.until_frozen()

    async def _freeze_worker(self) -> None:
        """It may stand still much later, where the place is one that only a recovered task passes."""
        self.worker.arm(self.chance.choice(list(FailpointName)), signal.SIGSTOP)

    def _thaw(self) -> None:
        """Lets a worker go on that has stood still for longer than its lease."""
        now = time.monotonic()
        if not self.worker.is_frozen:
            self._thaw_at = now + LEASE_SECONDS * self.chance.uniform(1.0, 1.6)
        elif now > self._thaw_at:
            self.figures["worker frozen past its lease"] += 1
            self.worker.send(signal.SIGCONT)

    async def _bad_network(self) -> None:
        mode = self.chance.choice([mode for mode in Mode if mode is not Mode.PASS])
        self.figures[f"network: {mode}"] += 1
        await asyncio.sleep(self.chance.uniform(0, 0.3))
        self.proxy.set(mode)
        await asyncio.sleep(self.chance.uniform(0.2, LEASE_SECONDS * 1.3))
        self.proxy.set(Mode.PASS)

    # The person

    async def keep_up(self) -> None:
        """Starts what was killed. A program that ended in any other way is a finding."""
        self._thaw()
        for program in (self.gateway, self.worker):
            if program.is_up:
                continue
            code = program.ended_with
            if code == -signal.SIGKILL:
                self.figures[f"kills of the {program.name}"] += 1
            elif code is not None:
                self.violations.append(f"the {program.name} ended by itself, with code {code}")
            await program.end()
            await program.start()
            self.figures[f"starts of the {program.name}"] += 1

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
        """Compares the shop's book with what the gateway says of an ended task."""
        request = orders_pb2.GetOrderRequest(task_id=task_id)
        try:
            task = (await self.orders.GetOrder(request, metadata=AUTHORIZED, timeout=30, wait_for_ready=True)).task
        except AioRpcError as error:
            self.violations.append(f"{task_id}: {error.details()}")
            return
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
        return kept

    def compare(self, database: Path) -> Kept:
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
        up = f"gateway up {self.gateway.is_up}, worker up {self.worker.is_up}"
        try:
            request = operations_pb2.ListEventsRequest(subject=task_id, page_size=8)
            told = await self.operations.ListEvents(request, metadata=AUTHORIZED, timeout=3)
        except AioRpcError as error:
            return f"{up}, no answer: {error.details()}"
        events = ", ".join(event.kind for event in reversed(told.events))
        log = (self._folder / "worker.log").read_text()[-1_500:]
        return f"{up}, last events {events}; the worker's log ends:\n{log}"

    # The two ways of testing

    async def round(self, number: int) -> None:
        """One task, one blow, and the person until its end."""
        await self.keep_up()
        blow = asyncio.ensure_future(self.chance.choice(self.blows())())
        await self._while_started(self.submit(f"t-{number}"))
        await blow
        await self.until_ended(f"t-{number}")

    async def _while_started(self, work: Awaitable[None]) -> None:
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
                await self.chance.choice(self.blows())()

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
    folder: Path, seed: int = 1, of_gateway: dict[str, str] | None = None, of_worker: dict[str, str] | None = None
) -> AsyncIterator[ChaosTest]:
    """Everything that a chaos test needs, with further settings of the two programs; nothing of it is left."""
    async with AsyncExitStack() as stack:
        shop = await stack.enter_async_context(running_shop())
        port = free_port()
        proxy = await stack.enter_async_context(FaultyProxy(port))
        chaos = ChaosTest(folder, shop, proxy, port, seed, of_gateway or {}, of_worker or {})
        stack.push_async_callback(chaos.close)
        yield chaos
