"""gRPC's health service asks for no token: nobody who sends much of it takes it from the others."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from gateway.api.grpc import health
from tests.gateway.support.grpc_api import connected
from tests.gateway.support.in_process import RunningGateway, running_gateway
from tests.hostile.grpc.attacks import CHECK, TOKEN, WATCH
from tests.hostile.grpc.http2 import DATA, HEADERS, SETTINGS, Connection, call_headers, frame

SERVING = health_pb2.HealthCheckResponse.SERVING
EMPTY = bytes(5)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[RunningGateway]:
    async with running_gateway(tmp_path, upstream_token=TOKEN) as running:
        yield running


@pytest.mark.parametrize(
    ("path", "then"), [(WATCH, EMPTY), (CHECK, b""), (WATCH, b""), (CHECK, b"\0\0\x10\0\0" + bytes(100))]
)
async def test_a_thousand_calls_of_a_stranger_leave_health_to_the_others(
    served: RunningGateway, path: str, then: bytes
) -> None:
    async with AsyncExitStack() as stack:
        stranger = await Connection.open(served.port)
        stack.callback(stranger.close)
        await stranger.told(SETTINGS)
        for _ in range(1_000):
            stream = stranger.call(call_headers(path))
            stranger.writer.write(frame(DATA, 0, stream, then))
        await stranger.told(HEADERS)
        api = await stack.enter_async_context(connected(served.port))
        stub = health_pb2_grpc.HealthStub(api.channel)
        for _ in range(20):
            assert (await stub.Check(health_pb2.HealthCheckRequest(), timeout=60)).status == SERVING
        watch = stub.Watch(health_pb2.HealthCheckRequest(), timeout=60)
        assert (await watch.read()).status == SERVING
        watch.cancel()


async def test_a_health_request_has_room_for_a_name_and_no_more(served: RunningGateway) -> None:
    async with connected(served.port) as api:
        stub = health_pb2_grpc.HealthStub(api.channel)
        longest = "x" * (health.MAX_REQUEST_BYTES - 3)
        watch = stub.Watch(health_pb2.HealthCheckRequest(service=longest))
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
        watch.cancel()
        for call in (stub.Check, stub.Watch):
            answer = call(health_pb2.HealthCheckRequest(service=longest + "x"))
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await (answer if call is stub.Check else answer.read())
            assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_watch_ends(served: RunningGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "WATCH_SECONDS", 0.1)
    async with connected(served.port) as api:
        watch = health_pb2_grpc.HealthStub(api.channel).Watch(health_pb2.HealthCheckRequest(), timeout=60)
        assert [answer.status async for answer in watch] == [SERVING]


async def test_whoever_watches_is_told_of_the_stop(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        gateway = await stack.enter_async_context(running_gateway(tmp_path, upstream_token=TOKEN))
        api = await stack.enter_async_context(connected(gateway.port))
        watch = health_pb2_grpc.HealthStub(api.channel).Watch(health_pb2.HealthCheckRequest(), timeout=60)
        assert (await watch.read()).status == SERVING
        gateway.stop.set()
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
        assert await watch.read() is grpc.aio.EOF
