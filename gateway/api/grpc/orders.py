"""OrderService over gRPC."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Final

from google.protobuf import timestamp_pb2
from ordergateway.v1 import orders_pb2, orders_pb2_grpc

from gateway.api import convert, requests
from gateway.api.grpc.answers import accepted
from gateway.api.grpc.guard import Context, caller
from gateway.domain import fields
from gateway.domain.models import Actor, Policy
from gateway.orders.read import get_task, list_tasks
from gateway.orders.submit import cancel, submit
from gateway.store.port import Store
from gateway.waiting.hub import Hub
from gateway.waiting.stream import Heartbeat
from gateway.waiting.watch import watch_task

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


class OrderServicer(orders_pb2_grpc.OrderServiceServicer):
    """Orders for upstream services; orders.proto says what each method does and refuses."""

    def __init__(self, store: Store, hub: Hub, policy: Policy, new_task_id: Callable[[], str]) -> None:
        self._store = store
        self._hub = hub
        self._policy = policy
        self._new_task_id = new_task_id

    async def SubmitOrder(
        self, request: orders_pb2.SubmitOrderRequest, context: Context
    ) -> orders_pb2.SubmitOrderResponse:
        """File an intent."""
        wanted = requests.submission(request, self._policy, self._new_task_id(), _traceparent(context))
        done = await self._store.write(submit, self._policy, wanted, Actor(caller.get().name))
        return orders_pb2.SubmitOrderResponse(
            task_id=done.task_id,
            status=convert.task_status_to(done.status),
            created=done.created,
            intent_matches=done.intent_matches,
        )

    async def GetOrder(self, request: orders_pb2.GetOrderRequest, context: Context) -> orders_pb2.GetOrderResponse:
        """Return one task."""
        task_id = fields.key("task_id", request.task_id)
        found = accepted(await self._store.read(get_task, task_id))
        return orders_pb2.GetOrderResponse(task=convert.task_message(found))

    async def ListOrders(
        self, request: orders_pb2.ListOrdersRequest, context: Context
    ) -> orders_pb2.ListOrdersResponse:
        """Return one page of tasks."""
        status = requests.task_status("status", request.status)
        site = fields.site("site", request.site, self._policy.sites) if request.site else None
        filters = [status or "", site or ""]
        below = requests.page_token(request.page_token, filters)
        size = fields.page_size("page_size", request.page_size)
        page = await self._store.read(list_tasks, status, site, below, size)
        return orders_pb2.ListOrdersResponse(
            tasks=[convert.task_message(detail) for detail in page.tasks],
            next_page_token=requests.make_page_token(page.next_row, filters),
        )

    async def WatchOrder(
        self, request: orders_pb2.WatchOrderRequest, context: Context
    ) -> AsyncIterator[orders_pb2.WatchOrderResponse]:
        """Follow one task until it ends."""
        task_id = fields.key("task_id", request.task_id)
        async with aclosing(watch_task(self._store, self._hub, task_id)) as changes:
            async for change in changes:
                if isinstance(change, Heartbeat):
                    yield orders_pb2.WatchOrderResponse(heartbeat=heartbeat())
                else:
                    yield orders_pb2.WatchOrderResponse(task=convert.task_message(change))

    async def CancelOrder(
        self, request: orders_pb2.CancelOrderRequest, context: Context
    ) -> orders_pb2.CancelOrderResponse:
        """Withdraw a task that was never leased."""
        task_id = fields.key("task_id", request.task_id)
        reason = fields.text("reason", request.reason, limit=fields.MAX_REASON_CHARACTERS, required=True)
        done = accepted(await self._store.write(cancel, task_id, reason, Actor(caller.get().name)))
        return orders_pb2.CancelOrderResponse(task=convert.task_message(done))


def heartbeat() -> orders_pb2.Heartbeat:
    """Make a sign of life that carries the time of sending."""
    sent_at = timestamp_pb2.Timestamp()
    sent_at.FromDatetime(datetime.now(UTC))
    return orders_pb2.Heartbeat(sent_at=sent_at)


def _traceparent(context: Context) -> str:
    for key, value in context.invocation_metadata() or ():
        if key == "traceparent" and isinstance(value, str) and _TRACEPARENT.fullmatch(value):
            return value
    return ""
