"""The two people (and the program) who use the gateway: the upstream that submits, the person who decides."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from typing import Any

from grpc.aio import AioRpcError
from ordergateway.v1 import budgets_pb2, operations_pb2, orders_pb2
from ordergateway.v1.operations_pb2_grpc import OperationsServiceStub
from ordergateway.v1.orders_pb2_grpc import OrderServiceStub

from common.target import Target
from tests.simulation.approvers import APPROVER, Approvers
from tests.simulation.books import Books, settled_at
from tests.simulation.budgets import Wanted
from tests.simulation.conditions import NONE, Conditions
from tests.simulation.shop import SimShop
from tests.simulation.site import item_url
from tests.simulation.wire import Channel
from tests.simulation.worker_machine import WorkerMachine

METADATA = (("authorization", "Bearer secret"),)
CALL_SECONDS = 6.0
SOON = 18.0
STALE = orders_pb2.TASK_STATUS_STALE
NEEDS_HUMAN = orders_pb2.TASK_STATUS_NEEDS_HUMAN
IMPOSSIBLE = orders_pb2.PLACEMENT_IMPOSSIBLE
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
PRICES = {item_url(code): price for code, _, price in CATALOGUE}
WAYS_TO_PAY = ("card", "card", "card", "convenience_store", "card_3ds")


def make_intent(chance: random.Random, *, dear: bool = False) -> dict[str, Any]:
    """One to two items, sometimes too dear, sometimes sold out; mostly too dear if `dear`."""
    weights = (8, 8, 8, 8, 2, 1, 1)
    chosen = chance.choices(CATALOGUE, weights, k=chance.choice((1, 1, 1, 2)))
    items = {}
    for code, variant, price in chosen:
        item: dict[str, Any] = {"item_url": item_url(code), "quantity": chance.randint(1, 3)}
        if variant is not None:
            item["variant_id"] = variant
        items[code, variant] = (item, price)
    total = sum(item["quantity"] * price for item, price in items.values())
    spare = -100 if dear and chance.random() < 0.7 else chance.choice((1_050, 8_550))
    return {
        "items": [item for item, _ in items.values()],
        "max_total_yen": total + spare,
        "options": {"payment_method": chance.choice(WAYS_TO_PAY)},
    }


class Upstream:
    """Submits each task until it is acknowledged, and sometimes once more."""

    def __init__(self, channel: Channel, chance: random.Random, books: Books) -> None:
        self._stub: Any = OrderServiceStub(channel)  # type: ignore[arg-type]
        self._chance = chance
        self._books = books
        self._trace = books.trace
        self._filed: list[str] = []
        self._under_way: list[asyncio.Task[None]] = []

    @property
    def is_done(self) -> bool:
        """True if everything was acknowledged."""
        return all(task.done() for task in self._under_way)

    def submit(
        self, task_id: str, intent: dict[str, Any], at: float, target: Target, conditions: Conditions = NONE
    ) -> None:
        """Files a task, some seconds from now."""
        self._books.intents[task_id], self._books.targets[task_id] = intent, target
        self._books.conditions[task_id] = conditions
        self._under_way.append(asyncio.ensure_future(self._submit(task_id, at)))

    def file_all_again(self) -> None:
        """The gateway may have forgotten what it had acknowledged: the newest first, as it is still waited for."""
        for number, task_id in enumerate(reversed(self._filed)):
            self._under_way.append(asyncio.ensure_future(self._file_again(task_id, number * 0.5)))

    async def _file_again(self, task_id: str, after: float) -> None:
        await asyncio.sleep(after)
        await self._until_acknowledged(task_id)

    async def _submit(self, task_id: str, at: float) -> None:
        await asyncio.sleep(at)
        self._filed.append(task_id)
        for repeat in range(self._chance.choice((1, 1, 2))):
            await self._until_acknowledged(task_id)
            if repeat == 0 and self._chance.random() < 0.05:
                await self._cancel(task_id)
            if repeat == 0 and (after := self._books.conditions[task_id].cancelled_after) is not None:
                self._under_way.append(asyncio.ensure_future(self._cancel_later(task_id, after)))
            await asyncio.sleep(self._chance.uniform(0, 60))

    async def _until_acknowledged(self, task_id: str) -> None:
        intent = json.dumps(self._books.intents[task_id])
        site, account = self._books.targets[task_id]
        wanted = self._books.conditions[task_id]
        demanded = wanted.as_fields()
        who = APPROVER if wanted.filed_by_approver else METADATA
        request = orders_pb2.SubmitOrderRequest(
            task_id=task_id, site=site, account=account, intent_json=intent, **demanded
        )
        while True:
            try:
                answer = await self._stub.SubmitOrder(request, metadata=who, timeout=CALL_SECONDS)
            except AioRpcError as error:
                self._trace("upstream", f"{task_id}: submit failed: {error.details()}")
                await asyncio.sleep(self._chance.uniform(0.5, 5))
            else:
                self._trace("upstream", f"{task_id}: acknowledged, created={answer.created}")
                self._books.accepted_submits.add(task_id)
                return

    async def _cancel_later(self, task_id: str, after: float) -> None:
        await asyncio.sleep(after)
        await self._cancel(task_id, while_leased=True)

    async def _cancel(self, task_id: str, *, while_leased: bool = False) -> None:
        request = orders_pb2.CancelOrderRequest(task_id=task_id, reason="no longer wanted", while_leased=while_leased)
        try:
            await self._stub.CancelOrder(request, metadata=METADATA, timeout=CALL_SECONDS)
            self._trace("upstream", f"{task_id}: cancelled")
        except AioRpcError as error:
            self._trace("upstream", f"{task_id}: not cancelled: {error.details()}")


class Person:
    """Looks at what is stuck and decides; states only what the shop shows."""

    def __init__(self, channel: Channel, chance: random.Random, books: Books, shop: SimShop) -> None:
        self._operations: Any = OperationsServiceStub(channel)  # type: ignore[arg-type]
        self._orders: Any = OrderServiceStub(channel)  # type: ignore[arg-type]
        self._chance = chance
        self._books = books
        self._shop = shop
        self._trace = books.trace
        self._attempts: dict[str, int] = {}
        self.approvers = Approvers(channel, chance, books)
        self.waits = False
        """True: leaves a task alone until a click must soon show on the site."""

    async def meddle(self) -> None:
        """One decision about one task, at a moment that nobody chose well."""
        tasks = await self.tasks()
        if self.waits:
            tasks = [task for task in tasks if task.status != STALE or self._is_soon_settled(task.task_id)]
        if not tasks:
            return
        is_down = any(not worker.is_up for worker in self._books.workers)
        urgent = [task for task in tasks if task.status == STALE or (is_down and task.status in ACTIVE)]
        task = self._chance.choice(urgent if urgent and self._chance.random() < 0.7 else tasks)
        choices: list[Callable[[Any], Awaitable[None]]] = {
            STALE: [*[self._reclaim] * 4, *[self._requeue] * 2, self._resolve],
            NEEDS_HUMAN: [self._resolve, self._requeue],
            FAILED: [self._resolve],
            QUEUED: [self._withdraw],
            ACTIVE[0]: [self._expire],
            ACTIVE[1]: [self._expire],
        }.get(task.status, [])
        # An impatient person: mostly the stale tasks are acted on.
        if choices and (task in urgent or self._chance.random() < 0.15):
            await self._chance.choice(choices)(task)

    def _is_soon_settled(self, task_id: str) -> bool:
        leases = [lease for lease in self._books.tasks[task_id].leases if lease.may_have_clicked]
        return not leases or self._books.now() > settled_at(leases) - SOON

    async def settle(self) -> bool:
        """One round of a patient person over all tasks; True if nothing is left to do."""
        tasks = await self.tasks()
        done = bool(tasks)
        for task in tasks:
            if task.status in (SUCCEEDED, FAILED):
                continue
            done = False
            if task.held_for_approval:
                await self._let_go(task)
                continue
            attempts = self._attempts[task.task_id] = self._attempts.get(task.task_id, 0) + 1
            if task.status == STALE and attempts < 12:
                await self._chance.choice((self._reclaim, self._reclaim, self._requeue))(task)
            elif task.status in (STALE, NEEDS_HUMAN):
                await self._resolve(task)
        return done

    async def _let_go(self, task: Any) -> None:
        """Somebody agrees at last, mostly, so that nothing is left waiting."""
        if self._chance.random() < 0.2:
            await self.approvers.deny(task.task_id)
        await self.approvers.approve_at_last(task.task_id, None if task.HasField("max_total_yen") else 1_000_000)

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

    async def keep_budget(self, wanted: Wanted) -> None:
        """Sets a budget as soon as the gateway takes it, and raises it later."""
        await self._set_budget(wanted, wanted.limit_yen)
        if wanted.raised_to is not None:
            await asyncio.sleep(wanted.raised_after)
            await self._set_budget(wanted, wanted.raised_to)

    async def _set_budget(self, wanted: Wanted, yen: int) -> None:
        request = budgets_pb2.SetBudgetRequest(
            budget_id=wanted.budget_id, limit_yen=yen, reason="so much is there",
            scope=budgets_pb2.BudgetScope(**wanted.scope),
            period=budgets_pb2.BudgetPeriod.Value(f"BUDGET_PERIOD_{wanted.period.upper()}"),
        )  # fmt: skip
        taken = await self._act("SetBudget", request)
        while not taken:
            await asyncio.sleep(1.0)
            taken = await self._act("SetBudget", request)

    async def expire_and_reclaim(self, task_id: str) -> None:
        """Takes a worker for dead that is not, and has the task taken up at once."""
        request = operations_pb2.ExpireOrderRequest(task_id=task_id, reason="it is dead")
        await self._act("ExpireOrder", request)
        self._reclaimed(task_id)

    async def resume(self) -> None:
        await self._act("ResumeDispatch", operations_pb2.ResumeDispatchRequest(reason="looked at it"))

    async def _reclaim(self, task: Any) -> None:
        self._reclaimed(task.task_id)

    def _reclaimed(self, task_id: str) -> None:
        able = [worker for worker in self._books.workers if worker.is_up] or self._books.workers
        worker: WorkerMachine = self._chance.choice(able)
        self._trace("person", f"{task_id}: reclaim on {worker.name}")
        self._trace.count("reclaims wished")
        self._books.wished.add(task_id)
        worker.reclaim_request(task_id)

    async def _requeue(self, task: Any) -> None:
        await self._act("RequeueOrder", operations_pb2.RequeueOrderRequest(task_id=task.task_id, reason="try again"))

    async def _withdraw(self, task: Any) -> None:
        await self._act("WithdrawOrder", operations_pb2.WithdrawOrderRequest(task_id=task.task_id, reason="stop"))

    async def _expire(self, task: Any) -> None:
        await self._act("ExpireOrder", operations_pb2.ExpireOrderRequest(task_id=task.task_id, reason="it is dead"))

    async def _resolve(self, task: Any) -> None:
        placed = self._books.orders.get(task.task_id, [])
        request = operations_pb2.ResolveOrderRequest(task_id=task.task_id, reason="looked at the shop")
        if placed:
            if placed[0].visible_at > self._shop.now():
                return
            request.outcome = SUCCEEDED
            if task.placement == IMPOSSIBLE or self._chance.random() < 0.8:
                request.site_order_id = placed[0].number
        elif task.status == FAILED:
            return
        else:
            request.outcome = FAILED
        await self._act("ResolveOrder", request)

    async def _act(self, method: str, request: Any) -> bool:
        """Tell whether the gateway took it."""
        task_id = getattr(request, "task_id", "")
        self._trace("person", f"{task_id}: {method}")
        try:
            await getattr(self._operations, method)(request, metadata=METADATA, timeout=CALL_SECONDS)
        except AioRpcError as error:
            self._trace("person", f"{task_id}: {method} refused: {error.details()}")
            return False
        return True
