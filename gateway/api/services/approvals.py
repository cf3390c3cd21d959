"""The part of OperationsService that is about approvals; operations.proto says what each method does."""

from ordergateway.v1 import operations_pb2

from gateway.api.answers import accepted, converted
from gateway.api.call import Call
from gateway.api.codec.approvals import consent
from gateway.api.codec.operations import reason
from gateway.api.codec.orders import task_message
from gateway.api.codec.search import make_search_token, search_position
from gateway.domain import fields
from gateway.domain.models import Actor, Policy
from gateway.domain.search import HELD_FOR_APPROVAL
from gateway.operations.approvals import approve, deny
from gateway.orders.search import search_tasks
from gateway.store.port import Store


class ApprovalOperations:
    """See which orders wait for an approval, give it, or deny it."""

    _store: Store
    _policy: Policy

    async def list_approvals(
        self, request: operations_pb2.ListApprovalsRequest, call: Call
    ) -> operations_pb2.ListApprovalsResponse:
        """Return one page of the tasks that wait."""
        after = search_position(request.page_token, HELD_FOR_APPROVAL)
        size = fields.page_size("page_size", request.page_size)
        page = await self._store.read(search_tasks, HELD_FOR_APPROVAL, after, size)
        return operations_pb2.ListApprovalsResponse(
            tasks=await converted(task_message, page.items),
            next_page_token=make_search_token(page.next_after, HELD_FOR_APPROVAL),
        )

    async def approve_order(
        self, request: operations_pb2.ApproveOrderRequest, call: Call
    ) -> operations_pb2.ApproveOrderResponse:
        """Let a task be handed out, for a total and a time."""
        given, actor = consent(request), Actor(call.identity.name)
        done = accepted(await self._store.write(approve, self._policy, given, actor))
        return operations_pb2.ApproveOrderResponse(task=task_message(done.task), already_decided=done.repeated)

    async def deny_order(
        self, request: operations_pb2.DenyOrderRequest, call: Call
    ) -> operations_pb2.DenyOrderResponse:
        """End a task that waits as failed."""
        task_id, why = fields.key("task_id", request.task_id), reason(request)
        done = accepted(await self._store.write(deny, task_id, why, Actor(call.identity.name)))
        return operations_pb2.DenyOrderResponse(task=task_message(done.task), already_decided=done.repeated)
