"""The load of account queries: one client process. `python -m bench.query_load KIND AMOUNT TARGET...` prints JSON.

    lease COUNT     a worker takes queued queries and ends each    stream opened to lease received
    list COUNT      an upstream lists the queued, then the ended   one page of 50 each
    beside SECONDS  serial cycles of orders and of queries, each alone and beside the other queue, turn by turn
                    {"orders": [alone, beside], "queries": [alone, beside]}: cycles a second

`lease` and `list` take turns over the targets, call by call, and print a list of milliseconds for each target. Every
answer is checked; a wrong one ends the run with an error.
"""

import asyncio
import json
import sys
import time
import uuid
from contextlib import AsyncExitStack
from statistics import median
from typing import TYPE_CHECKING, Final

import grpc
from google.protobuf.duration_pb2 import Duration
from ordergateway.v1 import (
    account_queries_pb2,
    account_queries_pb2_grpc,
    order_leases_pb2_grpc,
    orders_pb2,
    orders_pb2_grpc,
    query_leases_pb2,
    query_leases_pb2_grpc,
)

from bench.load import METADATA, OWN_CONNECTION, Client, cycle, in_milliseconds, next_lease

if TYPE_CHECKING:
    from ordergateway.v1.account_queries_pb2_grpc import AccountQueryServiceAsyncStub
    from ordergateway.v1.query_leases_pb2_grpc import QueryLeaseServiceAsyncStub

IN_FLIGHT: Final = 100
TURNS: Final = 10
RESULT: Final = json.dumps({"kind": "order_list", "window_fully_covered": True, "orders": [], "raw_pages": ["x" * 900]})


class Queries:
    """Both sides of the query queue."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._upstream: AccountQueryServiceAsyncStub = account_queries_pb2_grpc.AccountQueryServiceStub(channel)
        self._worker: QueryLeaseServiceAsyncStub = query_leases_pb2_grpc.QueryLeaseServiceStub(channel)

    async def submit(self) -> str:
        """Files a query under a new query_id."""
        query_id = uuid.uuid4().hex
        request = account_queries_pb2.SubmitQueryRequest(
            query_id=query_id, site="sandbox", kind=account_queries_pb2.QUERY_KIND_ORDER_LIST
        )
        answer = await self._upstream.SubmitQuery(request, metadata=METADATA)
        if answer.query_id != query_id or not answer.created:
            raise AssertionError(f"unexpected answer to a submission: {answer}")
        return query_id

    async def lease(self) -> query_leases_pb2.QueryLease:
        """Takes a query, as a session that has nothing else in hand."""
        request = query_leases_pb2.LeaseQueriesRequest(
            worker_id="bench", session_id=uuid.uuid4().hex, sites=["sandbox"], wait=Duration(seconds=60)
        )
        async for message in self._worker.LeaseQueries(request, metadata=METADATA):
            if message.HasField("lease"):
                return message.lease
        raise AssertionError("the lease stream ended without a query")

    async def bring(self, lease: query_leases_pb2.QueryLease) -> None:
        """Ends a query with a result."""
        request = query_leases_pb2.ReportQueryResultRequest(
            query_id=lease.query_id, worker_id="bench", attempt=lease.attempt, result_json=RESULT
        )
        answer = await self._worker.ReportQueryResult(request, metadata=METADATA)
        if answer.status != account_queries_pb2.QUERY_STATUS_SUCCEEDED:
            raise AssertionError(f"unexpected answer to a result: {answer}")

    async def list(self, status: "account_queries_pb2.QueryStatus.ValueType") -> None:
        """Reads one full page."""
        request = account_queries_pb2.ListQueriesRequest(status=status, page_size=50)
        answer = await self._upstream.ListQueries(request, metadata=METADATA)
        if len(answer.queries) != 50:  # noqa: PLR2004 - the page asked for
            raise AssertionError(f"a page of {len(answer.queries)} queries")

    async def cycles(self, seconds: float) -> float:
        """Whole queries, one after the other; how many a second."""
        done = 0
        started = time.perf_counter()
        while time.perf_counter() - started < seconds:
            query_id = await self.submit()
            taken = await self.lease()
            if taken.query_id != query_id:
                raise AssertionError("another query was leased")
            await self.bring(taken)
            done += 1
        return done / (time.perf_counter() - started)


async def lease(targets: list[Queries], count: int) -> list[list[float]]:
    """Leases from queues that are not empty."""
    times: list[list[float]] = [[] for _ in targets]
    for _ in range(count):
        for queries, measured in zip(targets, times, strict=True):
            started = time.perf_counter()
            taken = await queries.lease()
            measured.append(time.perf_counter() - started)
            await queries.bring(taken)
    return [in_milliseconds(measured) for measured in times]


async def list_(targets: list[Queries], count: int) -> list[list[float]]:
    """Pages of what is queued and of what has ended."""
    times: list[list[float]] = [[] for _ in targets]
    for _ in range(count):
        for queries, measured in zip(targets, times, strict=True):
            started = time.perf_counter()
            await queries.list(account_queries_pb2.QUERY_STATUS_QUEUED)
            await queries.list(account_queries_pb2.QUERY_STATUS_SUCCEEDED)
            measured.append(time.perf_counter() - started)
    return [in_milliseconds(measured) for measured in times]


async def beside(orders: Client, queries: Queries, seconds: float) -> dict[str, list[float]]:
    """Cycles of each queue while the other is idle, then while it is in use; medians of TURNS turns."""
    turn = seconds / TURNS
    await cycle(orders, turn)
    await queries.cycles(turn)
    rates: dict[str, list[float]] = {name: [] for name in ("orders", "orders beside", "queries", "queries beside")}
    for _ in range(TURNS):
        rates["orders"].append(float(str((await cycle(orders, turn))["per_second"])))
        await asyncio.gather(*(queries.submit() for _ in range(IN_FLIGHT)))
        in_flight = [await queries.lease() for _ in range(IN_FLIGHT)]
        rates["orders beside"].append(float(str((await cycle(orders, turn))["per_second"])))
        await asyncio.gather(*(queries.bring(taken) for taken in in_flight))

        rates["queries"].append(await queries.cycles(turn))
        await orders.submit()
        held = await next_lease(orders.open_stream())
        await orders.acknowledge(held)
        rates["queries beside"].append(await queries.cycles(turn))
        await orders.report(held, orders_pb2.ORDER_STATE_PAID, 1)
    return {name: [median(rates[name]), median(rates[f"{name} beside"])] for name in ("orders", "queries")}


async def run(kind: str, amount: float, targets: list[str]) -> None:
    """Runs one kind of load and prints what it measured."""
    async with AsyncExitStack() as stack:

        async def connected(target: str) -> grpc.aio.Channel:
            return await stack.enter_async_context(grpc.aio.insecure_channel(target, options=OWN_CONNECTION))

        readers = [Queries(await connected(target)) for target in targets]
        if kind != "beside":
            print(json.dumps(await {"lease": lease, "list": list_}[kind](readers, int(amount))))
            return
        orders = Client(
            orders_pb2_grpc.OrderServiceStub(await connected(targets[0])),
            order_leases_pb2_grpc.OrderLeaseServiceStub(await connected(targets[0])),
        )
        print(json.dumps(await beside(orders, readers[0], amount)))


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], float(sys.argv[2]), sys.argv[3:]))
