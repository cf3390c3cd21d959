"""The query machine as any client of the contract reaches it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ordergateway.v1 import account_queries_pb2, query_leases_pb2
from ordergateway.v1.account_queries_pb2_grpc import AccountQueryServiceStub
from ordergateway.v1.query_leases_pb2_grpc import QueryLeaseServiceStub

from gateway.domain.account_queries import QueryKind, QueryStatus
from tests.gateway.support.grpc_api import RefusedCallError, duration, told
from tests.gateway.support.manual_time import ManualTime
from tests.properties.order_terms import Refused
from tests.properties.query_terms import POLICY, Failure, Outcome, Page, Reader, SeenQuery, Taken
from tests.properties.served_gateway import ServedGateway


class QueriesOverGrpc:
    """See `tests.properties.query_terms.Queries`."""

    inside = False

    def __init__(self, folder: Path, time: ManualTime) -> None:
        self._settings = {"query_result_max_bytes": POLICY.max_result_bytes}
        self._gateway = ServedGateway(folder, time, **self._settings)

    def submit(self, query_id: str, site: str, kind: QueryKind, params_json: str) -> tuple[QueryStatus, bool]:
        request = account_queries_pb2.SubmitQueryRequest(
            query_id=query_id, site=site, kind=_kind_number(kind), params_json=params_json
        )
        done = self._call(self._upstream.SubmitQuery(request))
        return _status(done.status), done.created

    def lease(self, reader: Reader, sites: tuple[str, ...], held: frozenset[str]) -> Taken | None:
        assert reader.session is not None
        request = query_leases_pb2.LeaseQueriesRequest(
            worker_id=reader.worker, session_id=reader.session, sites=sites, wait=duration(0), held_query_ids=held
        )
        return self._gateway.run(self._leased(request))

    async def _leased(self, request: query_leases_pb2.LeaseQueriesRequest) -> Taken | None:
        taken = None
        async for message in self._worker.LeaseQueries(request):
            assert taken is None, "the stream goes on after its lease"
            if message.HasField("lease"):
                lease = message.lease
                lives = lease.lease_ttl.ToMicroseconds()
                taken = Taken(lease.query_id, lease.site, _kind(lease.kind), lease.params_json, lease.attempt, lives)
        return taken

    def bring(self, query_id: str, worker: str, attempt: int | None, outcome: Outcome) -> QueryStatus | Refused:
        assert attempt is not None
        request = query_leases_pb2.ReportQueryResultRequest(query_id=query_id, worker_id=worker, attempt=attempt)
        if isinstance(outcome, Failure):
            request.error.code, request.error.message = outcome.code, outcome.message
        else:
            request.result_json = outcome
        done = self._call(self._worker.ReportQueryResult(request))
        return done if isinstance(done, Refused) else _status(done.status)

    def give_back(self, query_id: str, attempt: int) -> bool:
        raise NotImplementedError

    def sweep(self) -> None:
        raise NotImplementedError

    def restart(self, *, crash: bool = False, meanwhile: Callable[[], None] = lambda: None) -> None:
        assert not crash
        self._gateway.restart(meanwhile, **self._settings)

    def get(self, query_id: str) -> SeenQuery | Refused:
        found = self._call(self._upstream.GetQuery(account_queries_pb2.GetQueryRequest(query_id=query_id)))
        return found if isinstance(found, Refused) else _seen(found.query)

    def page(self, status: QueryStatus | None, kind: QueryKind | None, size: int, token: str) -> Page | Refused:
        request = account_queries_pb2.ListQueriesRequest(page_size=size, page_token=token)
        if status is not None:
            request.status = account_queries_pb2.QueryStatus.Value(f"QUERY_STATUS_{status.name}")
        if kind is not None:
            request.kind = _kind_number(kind)
        page = self._call(self._upstream.ListQueries(request))
        return page if isinstance(page, Refused) else (tuple(map(_seen, page.queries)), page.next_page_token)

    def close(self) -> None:
        self._gateway.close()

    @property
    def _upstream(self) -> Any:
        stub: Any = AccountQueryServiceStub(self._gateway.api.channel)
        return stub

    @property
    def _worker(self) -> Any:
        stub: Any = QueryLeaseServiceStub(self._gateway.api.channel)
        return stub

    def _call(self, call: Any) -> Any:
        try:
            return self._gateway.run(told(call))
        except RefusedCallError as error:
            return Refused(frozenset({error.reason}))


def _seen(query: account_queries_pb2.Query) -> SeenQuery:
    code, message = query.error.code, query.error.message
    return SeenQuery(
        query_id=query.query_id,
        site=query.site,
        kind=_kind(query.kind),
        params_json=query.params_json,
        status=_status(query.status),
        owner=query.lease_owner if query.HasField("lease_owner") else None,
        attempts=query.attempts,
        has_ended=query.HasField("completed_at"),
        error=Failure(code, message if code else "") if query.HasField("error") else None,
        result_json=query.result_json if query.HasField("result_json") else None,
    )


def _status(number: int) -> QueryStatus:
    name = account_queries_pb2.QueryStatus.Name(account_queries_pb2.QueryStatus.ValueType(number))
    return QueryStatus(name.removeprefix("QUERY_STATUS_").lower())


def _kind(number: int) -> QueryKind:
    name = account_queries_pb2.QueryKind.Name(account_queries_pb2.QueryKind.ValueType(number))
    return QueryKind(name.removeprefix("QUERY_KIND_").lower())


def _kind_number(kind: QueryKind) -> account_queries_pb2.QueryKind.ValueType:
    return account_queries_pb2.QueryKind.Value(f"QUERY_KIND_{kind.name}")
