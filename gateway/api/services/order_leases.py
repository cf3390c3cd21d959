"""OrderLeaseService: order leases for workers; order_leases.proto says what each method does and refuses."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing

from ordergateway.v1 import order_leases_pb2

from gateway.api.answers import accepted, heartbeat
from gateway.api.call import Call
from gateway.api.codec import leases as codec
from gateway.api.codec.orders import task_status_to
from gateway.dispatch.order_lease_source import OrderDispatcher
from gateway.dispatch.stream import Heartbeat
from gateway.domain import fields
from gateway.domain.models import Policy
from gateway.orders.hold import renew
from gateway.orders.lease import reclaim
from gateway.orders.permit import request_permit
from gateway.orders.report import report
from gateway.store.port import Store


class OrderLeaseService:
    """The methods of the service, free of any transport."""

    def __init__(self, store: Store, dispatcher: OrderDispatcher, policy: Policy, new_token: Callable[[], str]) -> None:
        self._store = store
        self._dispatcher = dispatcher
        self._policy = policy
        self._new_token = new_token

    async def lease_orders(
        self, request: order_leases_pb2.LeaseOrdersRequest, call: Call
    ) -> AsyncIterator[order_leases_pb2.LeaseOrdersResponse]:
        """Wait for an order."""
        wanted = codec.lease_request(request, self._policy, call.identity.name)
        wait = codec.wait_of(request, self._policy)
        async with aclosing(self._dispatcher.stream(wanted, wait.total_seconds())) as events:
            async for event in events:
                if isinstance(event, Heartbeat):
                    yield order_leases_pb2.LeaseOrdersResponse(heartbeat=heartbeat())
                else:
                    yield order_leases_pb2.LeaseOrdersResponse(lease=codec.lease_message(event, self._policy))

    async def renew_lease(
        self, request: order_leases_pb2.RenewLeaseRequest, call: Call
    ) -> order_leases_pb2.RenewLeaseResponse:
        """Acknowledge and extend a lease."""
        holder = codec.holder(request, call.identity.name)
        renewed = accepted(await self._store.write(renew, self._policy, holder, request.with_other_orders))
        return codec.renewed_message(renewed, self._policy)

    async def report_order(
        self, request: order_leases_pb2.ReportOrderRequest, call: Call
    ) -> order_leases_pb2.ReportOrderResponse:
        """Record what happened."""
        holder = codec.holder(request, call.identity.name)
        done = accepted(await self._store.write(report, holder, codec.report(request)))
        return order_leases_pb2.ReportOrderResponse(
            task_id=done.task_id, status=task_status_to(done.status), recorded=done.recorded
        )

    async def request_submit_permit(
        self, request: order_leases_pb2.RequestSubmitPermitRequest, call: Call
    ) -> order_leases_pb2.RequestSubmitPermitResponse:
        """Grant or refuse leave to click."""
        wanted = codec.permit_request(request, call.identity.name)
        return codec.permit_message(accepted(await self._store.write(request_permit, self._policy, wanted)))

    async def reclaim_order(
        self, request: order_leases_pb2.ReclaimOrderRequest, call: Call
    ) -> order_leases_pb2.ReclaimOrderResponse:
        """Lease a stale task again."""
        task_id = fields.key("task_id", request.task_id)
        wanted = codec.reclaim_request(request, self._policy, call.identity.name)
        command = codec.command(request.requested_by, request.reason)
        lease = accepted(await self._store.write(reclaim, self._policy, task_id, wanted, self._new_token(), command))
        return order_leases_pb2.ReclaimOrderResponse(lease=codec.lease_message(lease, self._policy))
