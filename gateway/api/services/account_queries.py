"""AccountQueryService: queries for upstream services; account_queries.proto says what each method does and refuses."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing

from ordergateway.v1 import account_queries_pb2

from gateway.account_queries.read import get_query, list_queries
from gateway.account_queries.submit import submit_query
from gateway.account_queries.topics import topic_of_query
from gateway.api.answers import accepted, converted, heartbeat
from gateway.api.call import Call
from gateway.api.codec import account_queries as codec
from gateway.api.codec.page_tokens import make_page_token, page_token
from gateway.api.offload import checked
from gateway.dispatch.notifier import Notifier
from gateway.dispatch.stream import Heartbeat
from gateway.dispatch.watch import watch
from gateway.domain import fields
from gateway.domain.account_queries import QueryPolicy
from gateway.store.port import Store


class AccountQueryService:
    """The methods of the service, free of any transport."""

    def __init__(self, store: Store, notifier: Notifier, policy: QueryPolicy, new_query_id: Callable[[], str]) -> None:
        self._store = store
        self._notifier = notifier
        self._policy = policy
        self._new_query_id = new_query_id

    async def submit_query(
        self, request: account_queries_pb2.SubmitQueryRequest, call: Call
    ) -> account_queries_pb2.SubmitQueryResponse:
        """File a query."""
        wanted = await checked(
            len(request.params_json),
            lambda: codec.query_submission(request, self._policy, self._new_query_id, call.traceparent),
        )
        done = accepted(await self._store.write(submit_query, self._policy, wanted, call.identity.name))
        return account_queries_pb2.SubmitQueryResponse(
            query_id=done.query_id,
            status=codec.query_status_to(done.status),
            created=done.created,
            differs=done.differs,
        )

    async def get_query(
        self, request: account_queries_pb2.GetQueryRequest, call: Call
    ) -> account_queries_pb2.GetQueryResponse:
        """Return one query with its result."""
        query_id = fields.key("query_id", request.query_id)
        found = accepted(await self._store.read(get_query, query_id))
        return account_queries_pb2.GetQueryResponse(query=codec.query_detail_message(found))

    async def list_queries(
        self, request: account_queries_pb2.ListQueriesRequest, call: Call
    ) -> account_queries_pb2.ListQueriesResponse:
        """Return one page of queries."""
        status = codec.query_status("status", request.status)
        kind = codec.query_kind("kind", request.kind)
        filters = ["queries", status or "", kind or ""]
        below = page_token(request.page_token, filters)
        size = fields.page_size("page_size", request.page_size)
        page = await self._store.read(list_queries, status, kind, below, size)
        return account_queries_pb2.ListQueriesResponse(
            queries=await converted(codec.query_message, page.items),
            next_page_token=make_page_token(page.next_after, filters),
        )

    async def watch_query(
        self, request: account_queries_pb2.WatchQueryRequest, call: Call
    ) -> AsyncIterator[account_queries_pb2.WatchQueryResponse]:
        """Follow one query until it ends."""
        query_id = fields.key("query_id", request.query_id)
        async with aclosing(
            watch(self._store, self._notifier, topic_of_query(query_id), get_query, query_id)
        ) as changes:
            async for change in changes:
                if isinstance(change, Heartbeat):
                    yield account_queries_pb2.WatchQueryResponse(heartbeat=heartbeat())
                else:
                    yield account_queries_pb2.WatchQueryResponse(query=codec.query_detail_message(change))
                del change  # it may be large, and the next one a long time coming
