"""A long poll whose client goes away: it gets nothing, and the task stays for the next one."""

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.domain.refusals import Reason
from tests.gateway.support import databases, dump
from tests.gateway.support.grpc_api import RefusedCallError
from tests.gateway.support.in_process import RunningGateway, running_gateway
from tests.gateway.support.process import GatewayProcess
from tests.gateway.support.rest_api import data_of, envelope_of, lease, post, rest_client, submit, task

REPETITIONS = 80


async def poll(port: int, worker_id: str = "gone", wait: float = 30, path: str = "/api/orders/lease") -> Any:
    """Send a long poll over a connection of its own; return the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path}?worker_id={worker_id}&wait={wait} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    await writer.drain()
    return reader, writer


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection as a killed client does."""
    writer.transport.abort()


async def until_waiting(path: Path, worker_id: str) -> None:
    """Wait until the gateway on this database has begun to serve a worker's poll."""
    async with asyncio.timeout(60):
        with databases.beside(path) as connection:
            seen = "SELECT 1 FROM workers WHERE worker_id = ?"
            while not connection.execute(seen, (worker_id,)).fetchone():  # noqa: ASYNC110 - the row is the signal
                await asyncio.sleep(0.002)


@pytest.mark.parametrize("moment", [pytest.param("before", marks=pytest.mark.extended), "during"])
async def test_a_client_that_is_killed_gets_no_lease(process: GatewayProcess, tmp_path: Path, moment: str) -> None:
    """80 in all, against the program itself: killed right after sending, or while it waits."""
    database = tmp_path / "gateway.db"
    tasks = REPETITIONS // 2
    async with rest_client(process.http_port) as client:
        for number in range(tasks):
            worker, task_id = f"gone-{number}", f"po-{number}"
            _, writer = await poll(process.http_port, worker)
            if moment != "before":
                await until_waiting(database, worker)
            reset(writer)
            await submit(client, task_id)
            taken = await asyncio.wait_for(lease(client, "next", wait=10), 60)
            assert (taken["task_id"], taken["lease_count"]) == (task_id, 1)
            end = {"worker_id": "next", "state": "paid", "terminal": True}
            assert data_of(await post(client, f"/api/orders/{task_id}/report", end))["status"] == "succeeded"
    assert dump.rows(database, "SELECT worker_id, count(*) AS leases FROM leases GROUP BY worker_id") == [
        {"worker_id": "next", "leases": tasks}
    ]
    assert dump.rows(database, "SELECT status, count(*) AS tasks FROM tasks GROUP BY status") == [
        {"status": "succeeded", "tasks": tasks}
    ]


@pytest.mark.extended
async def test_a_client_that_is_killed_as_a_task_comes_has_it_or_has_it_not(
    process: GatewayProcess, tmp_path: Path
) -> None:
    """The answer may be on its way already; then the lease stands, as one that the client has got. Nothing else is
    possible, and no lease is counted twice.
    """
    async with rest_client(process.http_port) as client:
        for number in range(30):
            worker, task_id = f"gone-{number}", f"po-{number}"
            _, writer = await poll(process.http_port, worker)
            await until_waiting(tmp_path / "gateway.db", worker)
            submission = asyncio.create_task(submit(client, task_id))
            await asyncio.sleep(random.uniform(0, 0.004))  # noqa: S311 - no secret
            reset(writer)
            await submission
            taken = None
            async with asyncio.timeout(60):
                # Until the gateway has noticed that the client is gone, the lease may still be given back.
                while (seen := await task(client, task_id))["status"] != "succeeded":
                    taken = taken or await lease(client, "next", wait=0.1)
                    end = {"worker_id": worker if taken is None else "next", "state": "paid", "terminal": True}
                    await post(client, f"/api/orders/{task_id}/report", end)
            assert seen["lease_count"] == 1
            leases = dump.rows(tmp_path / "gateway.db", "SELECT worker_id FROM leases WHERE task_id = ?", task_id)
            assert leases == [{"worker_id": worker if taken is None else "next"}]


async def test_a_client_that_half_closes_counts_as_gone(gateway: RunningGateway) -> None:
    _, writer = await poll(gateway.http_port, "half")
    await until_waiting(gateway.path, "half")
    writer.write_eof()
    async with rest_client(gateway.http_port) as client:
        await submit(client)
        assert (await lease(client, "next", wait=10))["task_id"] == "po-1"
    writer.close()


async def test_a_query_is_not_led_to_a_client_that_has_gone(gateway: RunningGateway) -> None:
    async with rest_client(gateway.http_port) as client:
        for number in range(20):
            _, writer = await poll(gateway.http_port, "gone", path="/api/account/queries/lease")
            reset(writer)
            data_of(await post(client, "/api/account/queries", {"query_id": f"aq-{number}", "kind": "order_list"}))
            answer = await client.get("/api/account/queries/lease?worker_id=next&wait=10")
            assert data_of(answer)["query_id"] == f"aq-{number}"
    assert gateway.rows("SELECT DISTINCT worker_id FROM query_attempts") == [{"worker_id": "next"}]


async def test_a_wait_that_ends_leaves_the_connection_usable(gateway: RunningGateway) -> None:
    reader, writer = await poll(gateway.http_port, wait=0)
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    assert json.loads(await reader.readexactly(size))["data"] is None
    writer.write(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
    writer.close()


async def test_no_more_than_the_limit_wait_at_once_over_all_ports(tmp_path: Any) -> None:
    async with running_gateway(tmp_path, max_waiters=2) as gateway, rest_client(gateway.http_port) as client:
        stream = gateway.api.stream("w1", 30)
        await stream.read()
        waiting = asyncio.create_task(lease(client, "w2", wait=30))
        await until_waiting(gateway.path, "w2")
        refused = await client.get("/api/orders/lease?worker_id=w3&wait=30")
        assert refused.status_code == envelope_of(refused)["code"] == 429
        assert refused.headers["retry-after"] == "5"
        watch = await client.post(
            "/ordergateway.v1.OrderService/WatchOrder",
            content=b"\0\0\0\0\2{}",
            headers={"Content-Type": "application/connect+json"},
        )
        assert b"resource_exhausted" in watch.content
        with pytest.raises(RefusedCallError) as over_grpc:
            await gateway.api.lease("w4", wait=30)
        assert (over_grpc.value.status, over_grpc.value.reason) == ("RESOURCE_EXHAUSTED", Reason.TOO_MANY)
        stream.cancel()
        async with asyncio.timeout(60):
            while (await client.get("/api/orders/lease?worker_id=w3&wait=0")).status_code == 429:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await submit(client)
        assert (await waiting)["task_id"] == "po-1"


async def test_those_who_wait_are_told_to_come_back_when_the_gateway_stops(gateway: RunningGateway) -> None:
    async with rest_client(gateway.http_port) as client:
        waiting = [asyncio.create_task(client.get(f"/api/orders/lease?worker_id=w{n}&wait=60")) for n in range(50)]
        for number in range(50):
            await until_waiting(gateway.path, f"w{number}")
        started = asyncio.get_running_loop().time()
        gateway.stop.set()
        answers: list[httpx.Response] = await asyncio.gather(*waiting)
        await asyncio.wait_for(asyncio.shield(gateway.ended), 60)
        assert asyncio.get_running_loop().time() - started < 10
    assert {(answer.status_code, envelope_of(answer)["code"]) for answer in answers} == {(503, 503)}
    assert all(answer.headers["retry-after"] == "1" for answer in answers)


@pytest.mark.extended
async def test_the_program_stops_in_time_whatever_clients_do(process: GatewayProcess, tmp_path: Path) -> None:
    """Those who wait, who send half a request, who read nothing, and who keep an idle connection."""
    port = process.http_port
    async with rest_client(port) as client:
        for number in range(30):
            await submit(client, f"po-{number}", text="x" * 200_000)
        data_of(await client.get("/api/orders/lease?worker_id=holder&wait=0"))
    held = [await poll(port, f"w{number}", wait=60) for number in range(20)]
    for number in range(20):
        await until_waiting(tmp_path / "gateway.db", f"w{number}")
    body = (
        b"POST /api/orders HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
    )
    listing = b"GET /api/orders?limit=200 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    for request in (b"", b"GET /live", body, listing):
        held.append(await asyncio.open_connection("127.0.0.1", port))
        held[-1][1].transport.pause_reading()
        held[-1][1].write(request)
    started = asyncio.get_running_loop().time()
    assert await process.terminate() == 0
    assert asyncio.get_running_loop().time() - started < 10
    answers = [await reader.read() for reader, _ in held[:20]]
    assert all(answer.startswith(b"HTTP/1.1 503 ") for answer in answers)
    assert "Traceback" not in process.log
    for _, writer in held:
        reset(writer)
