"""A small gateway for queries on a real socket, and a query loop beside it, wired as in production."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from ordergateway.v1 import account_queries_pb2
from ordergateway.v1 import query_leases_pb2 as pb
from ordergateway.v1.query_leases_pb2_grpc import QueryLeaseServiceServicer, add_QueryLeaseServiceServicer_to_server

from tests.worker.scripted_gateway import Refusal
from worker.account_lock import AccountLocks
from worker.account_queries.client import QueryClient
from worker.account_queries.execution import QueryPolicy, Reader
from worker.account_queries.loop import QueryLoop
from worker.clock import SystemClock, SystemEntropy
from worker.gateway.wire import to_duration
from worker.sites.port import Site, by_target


@dataclass
class ScriptedQueries(QueryLeaseServiceServicer):
    """Leases what the test offers and keeps what it was told. `script`: what the coming reports are answered with."""

    ttl: float = 60.0
    leases: asyncio.Queue[pb.QueryLease] = field(default_factory=asyncio.Queue)
    asked: list[pb.LeaseQueriesRequest] = field(default_factory=list)
    reports: list[pb.ReportQueryResultRequest] = field(default_factory=list)
    script: list[Refusal | None] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    def offer(
        self, kind: str = "order_list", query_id: str = "q-1", *, attempt: int = 1, site: str = "sandbox", **params: Any
    ) -> None:
        lease = pb.QueryLease(
            query_id=query_id,
            site=site,
            kind=account_queries_pb2.QueryKind.Value(f"QUERY_KIND_{kind.upper()}"),
            params_json=json.dumps(params),
            attempt=attempt,
            lease_ttl=to_duration(self.ttl),
        )
        self.leases.put_nowait(lease)

    async def told(self, count: int = 1, seconds: float = 60) -> list[pb.ReportQueryResultRequest]:
        """The reports, once there are so many."""
        async with asyncio.timeout(seconds), self.changed:
            await self.changed.wait_for(lambda: len(self.reports) >= count)
        return self.reports

    async def was_asked(self, count: int, seconds: float = 60) -> None:
        async with asyncio.timeout(seconds), self.changed:
            await self.changed.wait_for(lambda: len(self.asked) >= count)

    async def _note(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def LeaseQueries(  # noqa: N802
        self, request: pb.LeaseQueriesRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[pb.LeaseQueriesResponse]:
        self.asked.append(request)
        await self._note()
        heartbeat = pb.LeaseQueriesResponse()
        heartbeat.heartbeat.sent_at.GetCurrentTime()
        yield heartbeat
        try:
            async with asyncio.timeout(request.wait.ToNanoseconds() / 1e9):
                lease = await self.leases.get()
        except TimeoutError:
            return
        yield pb.LeaseQueriesResponse(lease=lease)

    async def ReportQueryResult(  # noqa: N802
        self, request: pb.ReportQueryResultRequest, context: grpc.aio.ServicerContext
    ) -> pb.ReportQueryResultResponse:
        self.reports.append(request)
        await self._note()
        refusal = self.script.pop(0) if self.script else None
        if refusal is not None:
            if refusal.reason:
                context.set_trailing_metadata((("grpc-status-details-bin", refusal.details()),))
            await context.abort(refusal.code, "refused by the script")
        return pb.ReportQueryResultResponse(query_id=request.query_id)


@dataclass
class Running:
    """A query loop at work."""

    gateway: ScriptedQueries
    accounts: AccountLocks
    stop: asyncio.Event
    loop: "asyncio.Task[None]"


@asynccontextmanager
async def running_queries(
    sites: Sequence[Site], *, at_once: int = 4, ttl: float = 60.0, **policy: Any
) -> AsyncIterator[Running]:
    """Runs a loop over these sites; stopped, and its end awaited, on the way out."""
    gateway = ScriptedQueries(ttl=ttl)
    server = grpc.aio.server()
    add_QueryLeaseServiceServicer_to_server(gateway, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    accounts, stop = AccountLocks(), asyncio.Event()
    defaults: dict[str, Any] = {"timeout_seconds": 20, "default_max_pages": 3, "max_result_bytes": 1024 * 1024}
    async with grpc.aio.insecure_channel(
        f"127.0.0.1:{port}", options=(("grpc.use_local_subchannel_pool", 1),)
    ) as channel:
        loop = QueryLoop(
            QueryClient(channel, worker_id="worker-1", session_id="session-of-worker-1", token=None),
            Reader(by_target(sites), accounts, QueryPolicy(**(defaults | policy))),
            [site.name for site in sites if site.can_read_orders],
            SystemClock(),
            SystemEntropy(),
            at_once=at_once,
            lease_wait=20,
            stopping=stop,
        )
        running = asyncio.create_task(loop.run())
        try:
            yield Running(gateway, accounts, stop, running)
        finally:
            stop.set()
            await asyncio.wait({running}, timeout=10)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await server.stop(0)


def outcome(report: pb.ReportQueryResultRequest) -> tuple[int, str]:
    """Code and words of a failure."""
    assert report.WhichOneof("outcome") == "error", report
    return report.error.code, report.error.message


def result(report: pb.ReportQueryResultRequest) -> dict[str, Any]:
    """A result as it was told."""
    assert report.WhichOneof("outcome") == "result_json", report
    found: dict[str, Any] = json.loads(report.result_json)
    return found
