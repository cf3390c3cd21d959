"""How many connections a port takes, and how many calls a connection."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.gateway.support.grpc_api import heartbeat_of
from tests.gateway.support.in_process import RunningGateway, running_gateway

LIMIT = 10


@pytest.fixture
async def small(tmp_path: Path) -> AsyncIterator[RunningGateway]:
    async with running_gateway(tmp_path, max_connections=LIMIT, grpc_calls_per_connection=LIMIT) as running:
        yield running


@pytest.mark.parametrize("port", ["port", "http_port"])
async def test_one_connection_more_than_the_limit_is_closed_and_the_others_stay(
    small: RunningGateway, port: str
) -> None:
    await small.api.health()  # the client's own connection is one of them on the gRPC port
    number = getattr(small, port)
    most = LIMIT - (port == "port")
    opened = [await asyncio.open_connection("127.0.0.1", number) for _ in range(most)]
    reader, writer = await asyncio.open_connection("127.0.0.1", number)
    with contextlib.suppress(ConnectionResetError):
        assert await asyncio.wait_for(reader.read(), 60) == b""
    assert all(not reader.at_eof() for reader, _ in opened)
    await small.api.health()
    for _, one in [*opened, (reader, writer)]:
        one.transport.abort()
    await asyncio.sleep(0)  # the sockets close in the next turn


async def test_a_call_over_the_limit_of_its_connection_waits_for_a_place(small: RunningGateway) -> None:
    streams = [small.api.stream(f"w{number}", wait=50) for number in range(LIMIT)]
    for stream in streams:
        await heartbeat_of(stream)
    further = asyncio.ensure_future(small.api.health())
    async with small.client() as other:
        for _ in range(30):  # one answer of the gateway may still be quicker than one that came before it
            await other.health()
    assert not further.done()
    streams[0].cancel()
    await asyncio.wait_for(further, 60)
    for stream in streams:
        stream.cancel()
