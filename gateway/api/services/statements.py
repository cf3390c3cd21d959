"""The part of OperationsService that is about statements; statements.proto says what it answers."""

from ordergateway.v1 import statements_pb2

from gateway.api.answers import converted
from gateway.api.call import Call
from gateway.api.codec.search import make_search_token, search_position
from gateway.api.codec.statements import line_message, statement_day, totals_message
from gateway.api.codec.times import timestamp
from gateway.domain import fields
from gateway.domain.models import Policy
from gateway.operations.day import list_statement, tasks_of
from gateway.store.port import Store


class Statements:
    """That method, free of any transport."""

    def __init__(self, store: Store, policy: Policy) -> None:
        self._store = store
        self._policy = policy

    async def list_statement(
        self, request: statements_pb2.ListStatementRequest, call: Call
    ) -> statements_pb2.ListStatementResponse:
        """Return one page of the statement of a day."""
        day = statement_day(request.day, request.time_zone, self._policy.budget_zone)
        after = search_position(request.page_token, tasks_of(day))
        size = fields.page_size("page_size", request.page_size)
        page = await self._store.read(list_statement, day, after, size)
        return statements_pb2.ListStatementResponse(
            time_zone=day.zone,
            starts_at=timestamp(day.starts_at),
            ends_at=timestamp(day.ends_at),
            lines=await converted(line_message, page.items),
            totals=totals_message(page.items),
            next_page_token=make_search_token(page.next_after, tasks_of(day)),
        )
