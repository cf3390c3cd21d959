"""QueryLeaseService: query leases for workers; query_leases.proto says what each method does and refuses."""

from collections.abc import AsyncIterator
from contextlib import aclosing

from ordergateway.v1 import query_leases_pb2

from gateway.account_queries.result import Observer, report_result
from gateway.api.answers import accepted, heartbeat
from gateway.api.call import Call
from gateway.api.codec import account_queries as codec
from gateway.api.offload import checked
from gateway.dispatch.query_lease_source import QueryDispatcher
from gateway.dispatch.stream import Heartbeat
from gateway.domain.account_queries import QueryPolicy
from gateway.store.port import Store


class QueryLeaseService:
    """The methods of the service, free of any transport. `on_success` sees every result as it is taken."""

    def __init__(self, store: Store, dispatcher: QueryDispatcher, policy: QueryPolicy, on_success: Observer) -> None:
        self._store = store
        self._dispatcher = dispatcher
        self._policy = policy
        self._on_success = on_success

    async def lease_queries(
        self, request: query_leases_pb2.LeaseQueriesRequest, call: Call
    ) -> AsyncIterator[query_leases_pb2.LeaseQueriesResponse]:
        """Wait for a query."""
        wanted = codec.query_lease_request(request, self._policy, call.identity.name)
        wait = codec.query_wait(request, self._policy)
        async with aclosing(self._dispatcher.stream(wanted, wait.total_seconds())) as events:
            async for event in events:
                if isinstance(event, Heartbeat):
                    yield query_leases_pb2.LeaseQueriesResponse(heartbeat=heartbeat())
                else:
                    yield query_leases_pb2.LeaseQueriesResponse(lease=codec.query_lease_message(event))

    async def report_query_result(
        self, request: query_leases_pb2.ReportQueryResultRequest, call: Call
    ) -> query_leases_pb2.ReportQueryResultResponse:
        """Take the result of one attempt."""
        size = len(request.result_json)
        told = await checked(size, lambda: codec.query_outcome(request, self._policy, call.identity.name))
        status = accepted(await self._store.write(report_result, self._policy, told, self._on_success))
        return query_leases_pb2.ReportQueryResultResponse(query_id=told.query_id, status=codec.query_status_to(status))
