"""The people who must agree to orders in a world of conditions: late, for less, for a short time, or not at all."""

import asyncio
import random
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from google.protobuf.duration_pb2 import Duration
from grpc.aio import AioRpcError
from ordergateway.v1 import operations_pb2, orders_pb2
from ordergateway.v1.operations_pb2_grpc import OperationsServiceStub
from ordergateway.v1.orders_pb2_grpc import OrderServiceStub

from tests.simulation.books import Books
from tests.simulation.conditions import Conditions
from tests.simulation.wire import Channel

Metadata = tuple[tuple[str, str], ...]
APPROVER: Metadata = (("authorization", "Bearer secret-of-the-approver"),)
COLLEAGUE: Metadata = (("authorization", "Bearer secret-of-the-colleague"),)
CALL_SECONDS = 6.0
APPROVALS, AN_ORDER, A_DENIAL = 0.4, 0.7, 0.15
"""How many worlds have orders that need an approval, how many of their orders do, and how many of those get none."""
STALE, NEEDS_HUMAN = orders_pb2.TASK_STATUS_STALE, orders_pb2.TASK_STATUS_NEEDS_HUMAN


@dataclass(frozen=True, slots=True)
class Consent:
    """What comes of one order that needs an approval: so many seconds late, for so many yen and seconds."""

    after: float
    total_yen: int
    valid_for: float
    filed_by_approver: bool
    denied: bool


def with_approval(chance: random.Random, wanted: Conditions) -> Conditions:
    """The same order, which waits until somebody agrees to it; of its other conditions mostly the cap is left."""
    kept = wanted if chance.random() < 0.2 else Conditions(max_total_yen=chance.choice((None, wanted.max_total_yen)))
    return replace(kept, requires_approval=True, filed_by_approver=chance.random() < 0.5)


def make_consent(chance: random.Random, wanted: Conditions, payable: int) -> Consent:
    """What comes of an order, drawn around what it costs and around how long it takes."""
    total = chance.choice((payable - 1, payable, payable, payable + 1, payable + 5_000))
    return Consent(
        after=chance.choice((0.0, chance.uniform(0.0, 15.0))),
        total_yen=max(1, total if wanted.max_total_yen is None else min(total, wanted.max_total_yen)),
        valid_for=chance.choice((chance.uniform(2.0, 12.0), chance.uniform(8.0, 40.0), 3_600.0, 3_600.0)),
        filed_by_approver=wanted.filed_by_approver,
        denied=chance.random() < A_DENIAL,
    )


class Approvers:
    """Two people with tokens of their own. The first one also tries what they have filed themselves."""

    def __init__(self, channel: Channel, chance: random.Random, books: Books) -> None:
        self._operations: Any = OperationsServiceStub(channel)  # type: ignore[arg-type]
        self._orders: Any = OrderServiceStub(channel)  # type: ignore[arg-type]
        self._chance = chance
        self._books = books
        self._times = 0

    async def decide(self, task_id: str, consent: Consent) -> None:
        """Looks after one order from its submission on: whenever it waits, something is decided, until cancelled."""
        while task_id not in self._books.accepted_submits:  # noqa: ASYNC110 - nothing else tells of it
            await asyncio.sleep(0.5)
        await asyncio.sleep(consent.after)
        while True:
            task = await self._look(task_id)
            if task is not None and task.held_for_approval:
                if consent.denied:
                    await self.deny(task_id)
                else:
                    await self._approve(task_id, consent)
            elif task is not None and task.status in (STALE, NEEDS_HUMAN) and self._chance.random() < 0.1:
                await self._approve(task_id, consent)
            await asyncio.sleep(self._chance.uniform(1.0, 12.0))

    async def _approve(self, task_id: str, consent: Consent) -> None:
        told = self._request(task_id, consent.total_yen)
        duration = Duration()
        duration.FromTimedelta(timedelta(seconds=consent.valid_for))
        told.valid_for.CopyFrom(duration)
        if await self._act("ApproveOrder", told, APPROVER) or not consent.filed_by_approver:
            return
        await self._act("ApproveOrder", told, COLLEAGUE)

    async def approve_at_last(self, task_id: str, total_yen: int | None) -> None:
        """Agrees, so that nothing is left waiting; `total_yen` None: to its cap."""
        await self._act("ApproveOrder", self._request(task_id, total_yen), COLLEAGUE)

    async def deny(self, task_id: str) -> None:
        """Does not agree."""
        await self._act("DenyOrder", operations_pb2.DenyOrderRequest(task_id=task_id, reason="no"), COLLEAGUE)

    def _request(self, task_id: str, total_yen: int | None) -> operations_pb2.ApproveOrderRequest:
        self._times += 1
        reason = f"needed, said for the time {self._times}"
        return operations_pb2.ApproveOrderRequest(task_id=task_id, reason=reason, max_total_yen=total_yen)

    async def _look(self, task_id: str) -> Any:
        try:
            request = orders_pb2.GetOrderRequest(task_id=task_id)
            return (await self._orders.GetOrder(request, metadata=APPROVER, timeout=CALL_SECONDS)).task
        except AioRpcError:
            return None

    async def _act(self, method: str, request: Any, who: Metadata) -> bool:
        try:
            await getattr(self._operations, method)(request, metadata=who, timeout=CALL_SECONDS)
        except AioRpcError as error:
            self._books.trace("approvers", f"{request.task_id}: {method} refused: {error.details()}")
            return False
        self._books.trace("approvers", f"{request.task_id}: {method}")
        return True
