"""Account queries as their users see them, over gRPC and over REST, with one face for both."""

import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

import grpc
import httpx
from google.protobuf.json_format import MessageToDict
from ordergateway.v1 import account_queries_pb2 as queries_pb
from ordergateway.v1 import catalog_pb2, query_leases_pb2
from ordergateway.v1.account_queries_pb2_grpc import AccountQueryServiceStub
from ordergateway.v1.catalog_pb2_grpc import CatalogServiceStub
from ordergateway.v1.query_leases_pb2_grpc import QueryLeaseServiceStub

from tests.gateway.support.grpc_api import RefusedCallError, duration, told


class QueryRefusedError(Exception):
    """A refusal: the code of the documented JSON contract, and the words."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class Queries(Protocol):
    """What both transports offer. Queries, leases and answers are dictionaries with the documented names."""

    async def submit(
        self, query_id: str = "q-1", kind: str = "order_list", params_json: str = "{}", site: str = "sandbox"
    ) -> dict[str, Any]: ...
    async def lease(self, worker: str = "w1", wait: float = 0) -> dict[str, Any] | None: ...
    async def bring(
        self,
        lease: dict[str, Any],
        result_json: str | None = '{"kind":"order_list"}',
        *,
        worker: str = "w1",
        code: int = 0,
        message: str = "",
    ) -> str: ...
    async def get(self, query_id: str = "q-1") -> dict[str, Any]: ...
    async def listed(self, status: str | None = None, kind: str | None = None) -> list[dict[str, Any]]: ...
    async def discover(self, site: str = "") -> dict[str, Any]: ...
    async def catalog(self) -> list[dict[str, Any]]: ...
    async def discrepancies(self, kind: str | None = None) -> list[dict[str, Any]]: ...


class OverGrpc:
    """The contract's own services."""

    def __init__(
        self,
        channel: grpc.aio.Channel,
        session: str = "session-of-queries-1",
        sites: tuple[str, ...] = ("rakuten", "sandbox"),
    ) -> None:
        self.sites = sites
        self.upstream: Any = AccountQueryServiceStub(channel)
        self.worker: Any = QueryLeaseServiceStub(channel)
        self.operator: Any = CatalogServiceStub(channel)
        self.session = session

    async def submit(
        self, query_id: str = "q-1", kind: str = "order_list", params_json: str = "{}", site: str = "sandbox"
    ) -> dict[str, Any]:
        number = queries_pb.QueryKind.Value(f"QUERY_KIND_{kind.upper()}") if kind != "nonsense" else 99
        request = queries_pb.SubmitQueryRequest(query_id=query_id, site=site, kind=number, params_json=params_json)
        answer = await _told(self.upstream.SubmitQuery(request))
        differs = ["params" if name == "params_json" else name for name in answer.differs]
        told = {"query_id": answer.query_id, "status": _status(answer.status), "created": answer.created}
        return told | {"differs": differs}

    async def lease(
        self, worker: str = "w1", wait: float = 0, held: tuple[str, ...] | None = None, session: str = ""
    ) -> dict[str, Any] | None:
        """Without `held` each lease is asked for by a session of its own, as over REST."""
        own = uuid.uuid4().hex if held is None else self.session
        stream = self.stream(worker, wait, held or (), session or own)
        found = None
        async for message in stream:
            assert found is None, "the stream goes on after its lease"
            if message.HasField("lease"):
                found = lease_dict(message.lease)
        return found

    def stream(self, worker: str, wait: float, held: tuple[str, ...], session: str) -> Any:
        return self.worker.LeaseQueries(
            query_leases_pb2.LeaseQueriesRequest(
                worker_id=worker,
                session_id=session,
                sites=self.sites,
                wait=duration(wait),
                held_query_ids=held,
            )
        )

    async def bring(
        self,
        lease: dict[str, Any],
        result_json: str | None = '{"kind":"order_list"}',
        *,
        worker: str = "w1",
        code: int = 0,
        message: str = "",
    ) -> str:
        request = query_leases_pb2.ReportQueryResultRequest(
            query_id=lease["query_id"], worker_id=worker, attempt=lease["attempt"]
        )
        if result_json is not None:
            request.result_json = result_json
        else:
            request.error.code, request.error.message = code, message
        return _status((await _told(self.worker.ReportQueryResult(request))).status)

    async def get(self, query_id: str = "q-1") -> dict[str, Any]:
        return query_dict((await _told(self.upstream.GetQuery(queries_pb.GetQueryRequest(query_id=query_id)))).query)

    async def listed(self, status: str | None = None, kind: str | None = None) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        token = ""
        while True:
            request = queries_pb.ListQueriesRequest(
                status=queries_pb.QueryStatus.Value(f"QUERY_STATUS_{(status or 'unspecified').upper()}"),
                kind=queries_pb.QueryKind.Value(f"QUERY_KIND_{(kind or 'unspecified').upper()}"),
                page_size=2,
                page_token=token,
            )
            page = await _told(self.upstream.ListQueries(request))
            found += [query_dict(query) for query in page.queries]
            token = page.next_page_token
            if not token:
                return found

    async def ended(self, query_id: str = "q-1") -> dict[str, Any]:
        """Watch a query until its stream ends, and return it as it was last."""
        last = None
        async for message in self.upstream.WatchQuery(queries_pb.WatchQueryRequest(query_id=query_id)):
            last = message.query if message.HasField("query") else last
        assert last is not None
        return query_dict(last)

    async def until(self, status: str, query_id: str = "q-1") -> dict[str, Any]:
        """Watch a query until it stands there."""
        async for message in self.upstream.WatchQuery(queries_pb.WatchQueryRequest(query_id=query_id)):
            if message.HasField("query") and _status(message.query.status) == status:
                return query_dict(message.query)
        raise AssertionError(f"{query_id} ended without being {status}")

    async def discover(self, site: str = "") -> dict[str, Any]:
        answer = await _told(self.operator.Discover(catalog_pb2.DiscoverRequest(site=site)))
        return {"query_id": answer.query_id, "status": _status(answer.status), "created": answer.created}

    async def catalog(self) -> list[dict[str, Any]]:
        answer = await _told(self.operator.ListCatalogOrders(catalog_pb2.ListCatalogOrdersRequest()))
        return [_plain(order) for order in answer.orders]

    async def discrepancies(self, kind: str | None = None) -> list[dict[str, Any]]:
        number = catalog_pb2.DiscrepancyKind.Value(f"DISCREPANCY_KIND_{(kind or 'unspecified').upper()}")
        request = catalog_pb2.ListDiscrepanciesRequest(kind=number)
        found = (await _told(self.operator.ListDiscrepancies(request))).discrepancies
        return [_plain(each) for each in found]


class OverRest:
    """The documented JSON contract."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client

    async def submit(
        self, query_id: str = "q-1", kind: str = "order_list", params_json: str = "{}", site: str = "sandbox"
    ) -> dict[str, Any]:
        head = json.dumps({"query_id": query_id, "kind": kind, "site": site})
        return await self._post("/api/account/queries", f'{head[:-1]}, "params": {params_json}}}')

    async def lease(self, worker: str = "w1", wait: float = 0) -> dict[str, Any] | None:
        answer = await self.client.get("/api/account/queries/lease", params={"worker_id": worker, "wait": wait})
        found: dict[str, Any] | None = _data(answer)
        return found

    async def bring(
        self,
        lease: dict[str, Any],
        result_json: str | None = '{"kind":"order_list"}',
        *,
        worker: str = "w1",
        code: int = 0,
        message: str = "",
    ) -> str:
        attempt = {} if lease.get("attempt") is None else {"attempt": lease["attempt"]}
        if result_json is not None:
            body = f'{json.dumps({"worker_id": worker, "success": True, **attempt})[:-1]}, "result": {result_json}}}'
        else:
            error = {"success": False, "error_code": code, "error_message": message}
            body = json.dumps({"worker_id": worker, **attempt, **error})
        status: str = (await self._post(f"/api/account/queries/{lease['query_id']}/result", body))["status"]
        return status

    async def get(self, query_id: str = "q-1") -> dict[str, Any]:
        found: dict[str, Any] = _data(await self.client.get(f"/api/account/queries/{query_id}"))
        return found

    async def listed(self, status: str | None = None, kind: str | None = None) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        filters = {name: value for name, value in (("status", status), ("kind", kind)) if value}
        while True:
            data = _data(
                await self.client.get("/api/account/queries", params={**filters, "limit": 2, "offset": len(found)})
            )
            assert (data["limit"], data["offset"]) == (2, len(found))
            found += data["items"]
            if len(found) >= data["total"]:
                return found

    async def discover(self, site: str = "") -> dict[str, Any]:
        return await self._post("/api/account/orders/discovery", json.dumps({"site": site} if site else {}))

    async def catalog(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = _data(await self.client.get("/api/account/orders"))["items"]
        return items

    async def discrepancies(self, kind: str | None = None) -> list[dict[str, Any]]:
        params = {} if kind is None else {"kind": kind}
        items: list[dict[str, Any]] = _data(await self.client.get("/api/account/orders/discrepancies", params=params))[
            "items"
        ]
        return items

    async def _post(self, path: str, body: str) -> dict[str, Any]:
        answer = await self.client.post(path, content=body, headers={"content-type": "application/json"})
        found: dict[str, Any] = _data(answer)
        return found


@asynccontextmanager
async def over_rest(port: int) -> AsyncIterator[OverRest]:
    """A client of the REST facade on this port."""
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        yield OverRest(client)


def lease_dict(lease: query_leases_pb2.QueryLease) -> dict[str, Any]:
    return {
        "query_id": lease.query_id,
        "site": lease.site,
        "kind": queries_pb.QueryKind.Name(lease.kind).removeprefix("QUERY_KIND_").lower(),
        "params": json.loads(lease.params_json),
        "attempt": lease.attempt,
    }


def query_dict(query: queries_pb.Query) -> dict[str, Any]:
    return {
        "query_id": query.query_id,
        "site": query.site,
        "kind": queries_pb.QueryKind.Name(query.kind).removeprefix("QUERY_KIND_").lower(),
        "params": json.loads(query.params_json),
        "status": _status(query.status),
        "lease_owner": query.lease_owner or None,
        "attempts": query.attempts,
        "result": json.loads(query.result_json) if query.HasField("result_json") else None,
        "error": {"code": query.error.code, "message": query.error.message} if query.HasField("error") else None,
    }


def _status(number: int) -> str:
    name = queries_pb.QueryStatus.Name(queries_pb.QueryStatus.ValueType(number))
    return name.removeprefix("QUERY_STATUS_").lower()


def _plain(message: Any) -> dict[str, Any]:
    """A message as the documented JSON writes it: enums as lower-case words, empty ones as None."""
    plain = MessageToDict(message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
    for field, prefix in (("order_state", "ORDER_STATE_"), ("task_state", "ORDER_STATE_"),
                          ("site_state", "ORDER_STATE_"), ("kind", "DISCREPANCY_KIND_")):  # fmt: skip
        if field in plain:
            word = plain[field].removeprefix(prefix).lower()
            plain[field] = None if word == "unspecified" else word
    if plain.get("task_id") == "":
        plain["task_id"] = None
    return plain


async def _told(call: Any) -> Any:
    try:
        return await told(call)
    except RefusedCallError as error:
        raise QueryRefusedError(error.detail.code, error.detail.message) from None


def _data(answer: httpx.Response) -> Any:
    body = answer.json()
    if not body["success"]:
        raise QueryRefusedError(body["code"], body["msg"])
    assert answer.status_code == 200
    return body["data"]
