"""OrderService: orders for upstream services; orders.proto says what each method does and refuses."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing

from ordergateway.v1 import orders_pb2

from gateway.api.answers import accepted, converted, heartbeat
from gateway.api.call import Call
from gateway.api.codec import orders as codec
from gateway.api.codec.search import list_search, make_search_token, search_position
from gateway.api.offload import checked
from gateway.api.submission import checked_each, file_order, file_orders
from gateway.dispatch.notifier import Notifier
from gateway.dispatch.stream import Heartbeat
from gateway.dispatch.watch import watch
from gateway.domain import fields
from gateway.domain.models import Actor, Policy
from gateway.domain.states import ACTIVE
from gateway.orders.cancel import cancel
from gateway.orders.read import get_task
from gateway.orders.search import search_tasks
from gateway.orders.topics import topic_of
from gateway.store.port import Store


class OrderService:
    """The methods of the service, free of any transport."""

    def __init__(self, store: Store, notifier: Notifier, policy: Policy, new_task_id: Callable[[], str]) -> None:
        self._store = store
        self._notifier = notifier
        self._policy = policy
        self._new_task_id = new_task_id

    async def submit_order(self, request: orders_pb2.SubmitOrderRequest, call: Call) -> orders_pb2.SubmitOrderResponse:
        """File an intent."""
        wanted = await checked(
            len(request.intent_json),
            lambda: codec.submission(request, self._policy, self._new_task_id, call.traceparent),
        )
        done = await file_order(self._store, self._policy, wanted, Actor(call.identity.name))
        return codec.submitted_message(done)

    async def submit_orders(
        self, request: orders_pb2.SubmitOrdersRequest, call: Call
    ) -> orders_pb2.SubmitOrdersResponse:
        """File many intents by one commit."""
        wanted = await checked_each(
            [len(order.intent_json) for order in codec.batch(request)],
            lambda index: codec.submission(request.orders[index], self._policy, self._new_task_id, call.traceparent),
        )
        done = await file_orders(self._store, self._policy, wanted, Actor(call.identity.name))
        return orders_pb2.SubmitOrdersResponse(
            results=[codec.batch_result(index, outcome) for index, outcome in enumerate(done)]
        )

    async def get_order(self, request: orders_pb2.GetOrderRequest, call: Call) -> orders_pb2.GetOrderResponse:
        """Return one task."""
        task_id = fields.key("task_id", request.task_id)
        found = accepted(await self._store.read(get_task, task_id))
        return orders_pb2.GetOrderResponse(task=codec.task_message(found))

    async def list_orders(self, request: orders_pb2.ListOrdersRequest, call: Call) -> orders_pb2.ListOrdersResponse:
        """Return one page of tasks."""
        wanted = list_search(request, self._policy)
        after = search_position(request.page_token, wanted)
        size = fields.page_size("page_size", request.page_size)
        page = await self._store.read(search_tasks, wanted, after, size)
        return orders_pb2.ListOrdersResponse(
            tasks=await converted(codec.task_message, page.items),
            next_page_token=make_search_token(page.next_after, wanted),
        )

    async def watch_order(
        self, request: orders_pb2.WatchOrderRequest, call: Call
    ) -> AsyncIterator[orders_pb2.WatchOrderResponse]:
        """Follow one task until it ends."""
        task_id = fields.key("task_id", request.task_id)
        async with aclosing(watch(self._store, self._notifier, topic_of(task_id), get_task, task_id)) as changes:
            async for change in changes:
                if isinstance(change, Heartbeat):
                    yield orders_pb2.WatchOrderResponse(heartbeat=heartbeat())
                else:
                    yield orders_pb2.WatchOrderResponse(task=codec.task_message(change))
                del change  # it may be large, and the next one a long time coming

    async def cancel_order(self, request: orders_pb2.CancelOrderRequest, call: Call) -> orders_pb2.CancelOrderResponse:
        """Withdraw a task that was never leased, or request the end of one that is."""
        task_id = fields.key("task_id", request.task_id)
        reason = fields.text("reason", request.reason, limit=fields.MAX_REASON_CHARACTERS, required=True)
        actor = Actor(call.identity.name)
        done = accepted(await self._store.write(cancel, task_id, reason, actor, while_leased=request.while_leased))
        return orders_pb2.CancelOrderResponse(task=codec.task_message(done), requested=done.task.status in ACTIVE)
