"""Answers that a client does not take although it answers pings: its connection is cut off, and others go on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from ordergateway.v1 import orders_pb2

from gateway.api.grpc import outgoing
from tests.gateway.support.in_process import RunningGateway, running_gateway
from tests.hostile.grpc.attacks import GET, KNOWN, TOKEN, WATCH_ORDER
from tests.hostile.grpc.http2 import DATA, HEADERS, NO_WINDOW, SETTINGS, Connection, call_headers, frame

OTHER = "another-token-of-sixteen-letters"
WATCHED = orders_pb2.WatchOrderRequest(task_id="po-1").SerializeToString()
FRAMED = b"\0" + len(WATCHED).to_bytes(4) + WATCHED


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[RunningGateway]:
    async with running_gateway(tmp_path, upstream_token=TOKEN, operator_token=OTHER) as running:
        async with running.client(TOKEN) as api:
            await api.submit("po-1")
        yield running


async def untaken(stack: AsyncExitStack, port: int, path: str) -> Connection:
    """A call whose answer does not fit the client's window, on a connection of its own."""
    connection = await Connection.open(port, settings=NO_WINDOW)
    stack.callback(connection.close)
    await connection.told(SETTINGS)
    connection.writer.write(frame(DATA, 1, connection.call(call_headers(path, KNOWN)), FRAMED))
    await connection.told(HEADERS)
    return connection


@pytest.mark.parametrize("path", [WATCH_ORDER, GET])
async def test_after_a_while_its_connection_is_cut_off_and_no_other(
    served: RunningGateway, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    async with AsyncExitStack() as stack:
        kept = await untaken(stack, served.port, path)
        monkeypatch.setattr(outgoing, "UNREAD_SECONDS", 0.2)
        cut = await untaken(stack, served.port, path)
        async with asyncio.timeout(20):
            await cut.ended()
        assert not kept.has_ended
        async with served.client(TOKEN) as api:
            assert (await api.task("po-1")).task_id == "po-1"


async def test_what_one_token_leaves_lying_is_bounded_and_makes_room_when_others_wait(
    served: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outgoing, "MAX_BYTES_OF_ONE", 2 * 4096)
    monkeypatch.setattr(outgoing, "PATIENCE_SECONDS", 0.5)
    async with AsyncExitStack() as stack:
        first = await untaken(stack, served.port, WATCH_ORDER)
        await untaken(stack, served.port, WATCH_ORDER)
        async with served.client(OTHER) as other:
            assert (await other.task("po-1")).task_id == "po-1"
        assert not first.has_ended
        async with served.client(TOKEN) as api, asyncio.timeout(20):
            assert (await api.task("po-1")).task_id == "po-1"
            await first.ended()
