"""The two people (and the program) who use the gateway: the upstream that submits, the person who decides."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from typing import Any

from grpc.aio import AioRpcError
from ordergateway.v1 import operations_pb2, orders_pb2
from ordergateway.v1.operations_pb2_grpc import OperationsServiceStub
from ordergateway.v1.orders_pb2_grpc import OrderServiceStub

from tests.simulation.auditor import Auditor
from tests.simulation.site import item_url
from tests.simulation.trace import Trace
from tests.simulation.wire import Channel
from tests.simulation.worker_machine import WorkerMachine
from worker.sandbox_shop.shop import Shop

METADATA = (("authorization", "Bearer secret"),)
CALL_SECONDS = 6.0
STALE = orders_pb2.TASK_STATUS_STALE
NEEDS_HUMAN = orders_pb2.TASK_STATUS_NEEDS_HUMAN
QUEUED = orders_pb2.TASK_STATUS_QUEUED
SUCCEEDED = orders_pb2.TASK_STATUS_SUCCEEDED
FAILED = orders_pb2.TASK_STATUS_FAILED
ACTIVE = (orders_pb2.TASK_STATUS_LEASED, orders_pb2.TASK_STATUS_RUNNING)
CATALOGUE = (
    ("sencha-100g", None, 1_080),
    ("tshirt-basic", "white-m", 1_980),
    ("tshirt-basic", "navy-m", 1_980),
    ("sencha-100g", None, 1_080),
    ("yokan-limited", None, 3_240),
    ("camera-body", None, 298_000),
    ("earphones-soldout", None, 5_980),
)
WAYS_TO_PAY = ("card", "card", "card", "convenience_store", "card_3ds")


def make_intent(chance: random.Random) -> dict[str, Any]:
    """One to two items, sometimes too dear, sometimes sold out."""
    weights = (8, 8, 8, 8, 2, 1, 1)
    chosen = chance.choices(CATALOGUE, weights, k=chance.choice((1, 1, 1, 2)))
    items = {}
    for code, variant, price in chosen:
        item: dict[str, Any] = {"item_url": item_url(code), "quantity": chance.randint(1, 3)}
        if variant is not None:
            item["variant_id"] = variant
        items[code, variant] = (item, price)
    total = sum(item["quantity"] * price for item, price in items.values()) + 550
    return {
        "items": [item for item, _ in items.values()],
        "max_total_yen": total + chance.choice((500, 8_000)),
        "options": {"payment_method": chance.choice(WAYS_TO_PAY)},
    }


class Upstream:
    """Submits each task until it is acknowledged, and sometimes once more."""

    def __init__(self, channel: Channel, chance: random.Random, auditor: Auditor, trace: Trace) -> None:
        self._stub: Any = OrderServiceStub(channel)  # type: ignore[arg-type]
        self._chance = chance
        self._auditor = auditor
        self._trace = trace

    async def submit(self, task_id: str, at: float) -> None:
        intent = make_intent(self._chance)
        self._auditor.intents[task_id] = intent
        request = orders_pb2.SubmitOrderRequest(task_id=task_id, site="sandbox", intent_json=json.dumps(intent))
        await asyncio.sleep(at)
        for repeat in range(self._chance.choice((1, 1, 2))):
            await self._until_acknowledged(task_id, request)
            if repeat == 0 and self._chance.random() < 0.05:
                await self._cancel(task_id)
            await asyncio.sleep(self._chance.uniform(0, 60))

    async def _until_acknowledged(self, task_id: str, request: Any) -> None:
        while True:
            try:
                answer = await self._stub.SubmitOrder(request, metadata=METADATA, timeout=CALL_SECONDS)
            except AioRpcError as error:
                self._trace("upstream", f"{task_id}: submit failed: {error.details()}")
                await asyncio.sleep(self._chance.uniform(0.5, 5))
            else:
                self._trace("upstream", f"{task_id}: acknowledged, created={answer.created}")
                self._auditor.accepted_submits.add(task_id)
                return

    async def _cancel(self, task_id: str) -> None:
        request = orders_pb2.CancelOrderRequest(task_id=task_id, reason="no longer wanted")
        try:
            await self._stub.CancelOrder(request, metadata=METADATA, timeout=CALL_SECONDS)
            self._trace("upstream", f"{task_id}: cancelled")
        except AioRpcError as error:
            self._trace("upstream", f"{task_id}: not cancelled: {error.details()}")


class Person:
    """Looks at what is stuck and decides; states only what the shop shows."""

    def __init__(self, channel: Channel, chance: random.Random, auditor: Auditor, shop: Shop, trace: Trace) -> None:
        self._operations: Any = OperationsServiceStub(channel)  # type: ignore[arg-type]
        self._orders: Any = OrderServiceStub(channel)  # type: ignore[arg-type]
        self._chance = chance
        self._auditor = auditor
        self._shop = shop
        self._trace = trace
        self._attempts: dict[str, int] = {}

    async def meddle(self) -> None:
        """One decision about one task, at a moment that nobody chose well."""
        tasks = await self.tasks()
        if not tasks:
            return
        task = self._chance.choice(tasks)
        choices: list[Callable[[Any], Awaitable[None]]] = {
            STALE: [self._reclaim, self._reclaim, self._reclaim, self._requeue, self._requeue, self._resolve],
            NEEDS_HUMAN: [self._resolve],
            FAILED: [self._resolve],
            QUEUED: [self._withdraw],
            ACTIVE[0]: [self._expire],
            ACTIVE[1]: [self._expire],
        }.get(task.status, [])
        # An impatient person: mostly the stale tasks are acted on.
        if choices and (task.status == STALE or self._chance.random() < 0.15):
            await self._chance.choice(choices)(task)

    async def settle(self) -> bool:
        """One round of a patient person over all tasks; True if nothing is left to do."""
        tasks = await self.tasks()
        done = bool(tasks)
        for task in tasks:
            if task.status in (SUCCEEDED, FAILED):
                continue
            done = False
            attempts = self._attempts[task.task_id] = self._attempts.get(task.task_id, 0) + 1
            if task.status == STALE and attempts < 12:
                await self._chance.choice((self._reclaim, self._reclaim, self._requeue))(task)
            elif task.status in (STALE, NEEDS_HUMAN):
                await self._resolve(task)
        return done

    async def tasks(self) -> list[Any]:
        try:
            request = orders_pb2.ListOrdersRequest(page_size=50)
            answer = await self._orders.ListOrders(request, metadata=METADATA, timeout=CALL_SECONDS)
        except AioRpcError:
            return []
        return list(answer.tasks)

    async def pause(self, seconds: float) -> None:
        await self._act("PauseDispatch", operations_pb2.PauseDispatchRequest(reason="looking at something"))
        await asyncio.sleep(seconds)
        await self.resume()

    async def resume(self) -> None:
        await self._act("ResumeDispatch", operations_pb2.ResumeDispatchRequest(reason="looked at it"))

    async def _reclaim(self, task: Any) -> None:
        worker: WorkerMachine = self._chance.choice(self._auditor.workers)
        self._trace("person", f"{task.task_id}: reclaim on {worker.name}")
        self._trace.count("reclaims wished")
        self._auditor.wished.add(task.task_id)
        worker.wish(task.task_id)

    async def _requeue(self, task: Any) -> None:
        await self._act("RequeueOrder", operations_pb2.RequeueOrderRequest(task_id=task.task_id, reason="try again"))

    async def _withdraw(self, task: Any) -> None:
        await self._act("WithdrawOrder", operations_pb2.WithdrawOrderRequest(task_id=task.task_id, reason="stop"))

    async def _expire(self, task: Any) -> None:
        await self._act("ExpireOrder", operations_pb2.ExpireOrderRequest(task_id=task.task_id, reason="it is dead"))

    async def _resolve(self, task: Any) -> None:
        placed = self._auditor.orders.get(task.task_id, [])
        request = operations_pb2.ResolveOrderRequest(task_id=task.task_id, reason="looked at the shop")
        if placed:
            if placed[0].visible_at > self._shop.now():
                return
            request.outcome = SUCCEEDED
            request.site_order_id = placed[0].number
        elif task.status == FAILED:
            return
        else:
            request.outcome = FAILED
        await self._act("ResolveOrder", request)

    async def _act(self, method: str, request: Any) -> None:
        task_id = getattr(request, "task_id", "")
        self._trace("person", f"{task_id}: {method}")
        try:
            await getattr(self._operations, method)(request, metadata=METADATA, timeout=CALL_SECONDS)
        except AioRpcError as error:
            self._trace("person", f"{task_id}: {method} refused: {error.details()}")
