"""Workers that somebody else wrote: a script over REST, where nobody needs a permit, and one over gRPC that asks late.

Both buy by hand, write nothing down, and may break off at any point; to the gateway they are as good as dead then.
"""

import asyncio
import random
from datetime import timedelta
from typing import Any

from google.protobuf.duration_pb2 import Duration
from grpc.aio import AioRpcError
from ordergateway.v1 import order_leases_pb2, orders_pb2
from ordergateway.v1.order_leases_pb2_grpc import OrderLeaseServiceStub

from gateway.domain.refusals import RefusedError
from gateway.domain.states import OrderState
from gateway.store.port import StoreUnavailableError
from sandbox_shop.orders import FREE_SHIPPING_FROM_YEN, SHIPPING_YEN
from tests.simulation.books import Books
from tests.simulation.gateway_machine import GatewayMachine
from tests.simulation.people import METADATA
from tests.simulation.shop import REFLECTION_SECONDS, SimShop
from tests.simulation.site_auditor import SiteAuditor, code_of
from tests.simulation.wire import CallWatch, Channel

NAME = "script"
PATIENCE = 8.0


class _Buyer:
    """What both have in common."""

    SHOWS_AFTER = timedelta(seconds=REFLECTION_SECONDS)
    """How long after the purchase the site's list shows it."""

    def __init__(self, shop: SimShop, chance: random.Random, books: Books, auditor: SiteAuditor) -> None:
        self._shop = shop
        self._chance = chance
        self._books = books
        self._auditor = auditor

    def _breaks_off(self) -> bool:
        return self._chance.random() < 0.3

    def _buy(self, task_id: str) -> str | None:
        """The order's number; None if it cannot be had at that price."""
        items = self._books.intents[task_id]["items"]
        if not self._affordable(task_id, items):
            return None
        articles = [(code_of(item["item_url"]), item.get("variant_id"), (), item["quantity"]) for item in items]
        order = self._shop.add_order_from_elsewhere(self._shop.now(), articles)
        order.visible_at += self.SHOWS_AFTER
        self._books.by_hand.add(task_id)
        self._auditor.placed(NAME, task_id, order)
        return order.number

    def _affordable(self, task_id: str, items: list[dict[str, Any]]) -> bool:
        total = 0
        for item in items:
            product = self._shop.products[code_of(item["item_url"])]
            if product.stock[item.get("variant_id")] < item["quantity"]:
                return False
            total += product.price_yen * item["quantity"]
        total += 0 if total >= FREE_SHIPPING_FROM_YEN else SHIPPING_YEN
        return total <= int(self._books.intents[task_id]["max_total_yen"])


class RestScript(_Buyer):
    """Over REST, one order after the other."""

    def __init__(self, gateway: GatewayMachine, *about: Any) -> None:
        super().__init__(*about)
        self._gateway = gateway

    async def run(self, until: float) -> None:
        """Up to that moment of the loop."""
        while asyncio.get_running_loop().time() < until:
            await asyncio.sleep(self._chance.uniform(1.0, 12.0))
            try:
                async with asyncio.timeout(PATIENCE):
                    lease = await self._gateway.rest.lease(NAME, 5.0) if self._gateway.rest else None
                if lease is not None:
                    self._books.trace.count("leases over REST")
                    self._books.trace(NAME, f"{lease.task_id}: has lease {lease.lease_count}")
                    await self._work(lease.task_id, is_first=lease.lease_count == 1)
            except (TimeoutError, RefusedError, StoreUnavailableError) as error:
                self._books.trace(NAME, f"gives up: {error!r}")

    async def _work(self, task_id: str, *, is_first: bool) -> None:
        await asyncio.sleep(self._chance.uniform(0.1, 3.0))
        if self._breaks_off():
            return
        number = self._buy(task_id) if is_first else None
        if number is None:
            await self._report(task_id, OrderState.CREATED, None, terminal=True)
            return
        if self._breaks_off():
            return
        await self._report(task_id, OrderState.ORDERED, number, terminal=False)
        if not self._breaks_off():
            await self._report(task_id, OrderState.PAID, number, terminal=True)

    async def _report(self, task_id: str, state: OrderState, number: str | None, *, terminal: bool) -> None:
        door = self._gateway.rest
        if door is not None:
            async with asyncio.timeout(PATIENCE):
                await door.report(task_id, NAME, state, number, terminal=terminal)


class _ReportWatch(CallWatch):
    def __init__(self, auditor: SiteAuditor) -> None:
        self._auditor = auditor

    def requested(self, path: str, request: Any) -> None:
        if path.endswith("/ReportOrder"):
            self._auditor.reported(request)


class LateAsker(_Buyer):
    """Over gRPC: it buys, tells of it, and only then asks for the permit, which it must not get.

    It may be gone before it has told, and who buys without a permit has no settle time to protect the order from a
    second one: so its orders show at once.
    """

    SHOWS_AFTER = timedelta(0)

    def __init__(self, channel: Channel, *about: Any) -> None:
        super().__init__(*about)
        channel.watch = _ReportWatch(self._auditor)
        self._stub: Any = OrderLeaseServiceStub(channel)  # type: ignore[arg-type]
        self._session = 0
        self._sequence = 0

    async def run(self, until: float) -> None:
        """Up to that moment of the loop."""
        while asyncio.get_running_loop().time() < until:
            await asyncio.sleep(self._chance.uniform(1.0, 15.0))
            self._session += 1
            request = order_leases_pb2.LeaseOrdersRequest(
                worker_id=NAME, session_id=f"somebody-elses-session-{self._session}", journal_id=f"no-journal-{NAME}",
                sites=["sandbox"], wait=Duration(seconds=4),
            )  # fmt: skip
            try:
                async for message in self._stub.LeaseOrders(request, metadata=METADATA, timeout=PATIENCE):
                    if message.HasField("lease"):
                        await self._work(message.lease)
            except AioRpcError as error:
                self._books.trace(NAME, f"gives up: {error.details()}")

    async def _work(self, lease: Any) -> None:
        task_id, token = lease.task_id, lease.lease_token
        self._books.trace(NAME, f"{task_id}: has lease {lease.lease_count}")
        about: dict[str, Any] = {"task_id": task_id, "worker_id": NAME, "lease_token": token}
        await self._call("RenewLease", order_leases_pb2.RenewLeaseRequest(**about))
        number = self._buy(task_id) if lease.lease_count == 1 else None
        if self._breaks_off():
            return
        self._sequence += 1
        report = order_leases_pb2.ReportOrderRequest(**about, sequence=self._sequence)
        if number is None:
            report.state, report.terminal = orders_pb2.ORDER_STATE_CREATED, True
            await self._call("ReportOrder", report)
            return
        report.state, report.site_order_id = orders_pb2.ORDER_STATE_ORDERED, number
        await self._call("ReportOrder", report)
        permit = order_leases_pb2.RequestSubmitPermitRequest(
            **about, journal_id=f"no-journal-{NAME}", attests_no_click_record=True
        )
        try:
            await self._call("RequestSubmitPermit", permit)
        except AioRpcError as error:
            self._books.trace(NAME, f"{task_id}: gets no permit: {error.details()}")
            self._books.trace.count("permits asked for too late")
        self._sequence += 1
        report.state, report.terminal, report.sequence = orders_pb2.ORDER_STATE_PAID, True, self._sequence
        await self._call("ReportOrder", report)

    async def _call(self, method: str, request: Any) -> None:
        await getattr(self._stub, method)(request, metadata=METADATA, timeout=PATIENCE)
