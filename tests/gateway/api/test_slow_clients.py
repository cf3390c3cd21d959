"""Clients that are slow on purpose are cut off; those who are only many are not."""

import asyncio
from collections.abc import Callable

import psutil
import pytest

from gateway.api.http import app, protocol
from gateway.api.rest import route
from tests.gateway.support.in_process import RunningGateway
from tests.gateway.support.rest_api import body_of, exchange, rest_client, submit

HEAD = b"POST /api/orders HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"

Shorten = Callable[[], None]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Shorten:
    """Shortens what a client may take; called after all that has to succeed."""

    def shorten() -> None:
        monkeypatch.setattr(protocol, "HEADER_SECONDS", 0.3)
        monkeypatch.setattr(protocol, "UNREAD_SECONDS", 0.3)
        monkeypatch.setattr(protocol, "LINGER_SECONDS", 0.3)
        monkeypatch.setattr(route, "BODY_SECONDS", 0.3)
        monkeypatch.setattr(app, "BODY_SECONDS", 0.3)

    return shorten


def connections_of(gateway: RunningGateway) -> list[object]:
    """The gateway's own ends of its HTTP connections."""
    ends = psutil.Process().net_connections("tcp")
    return [end for end in ends if end.status == "ESTABLISHED" and end.laddr.port == gateway.http_port]


async def ended(reader: asyncio.StreamReader) -> bytes:
    """What comes until the gateway ends the connection."""
    try:
        return await asyncio.wait_for(reader.read(), 60)
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize("sent", [b"", b"GET /livez HT", b"GET /livez HTTP/1.1\r\nHost: x\r\nX: "])
async def test_headers_that_do_not_come_end_the_connection(
    gateway: RunningGateway, impatient: Shorten, sent: bytes
) -> None:
    impatient()
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.http_port)
    writer.write(sent)
    assert await ended(reader) == b""
    writer.close()


async def test_headers_that_drip_end_the_connection_too(gateway: RunningGateway, impatient: Shorten) -> None:
    impatient()
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.http_port)

    async def drip() -> None:
        writer.write(b"GET /livez HTTP/1.1\r\n")
        while not writer.is_closing():
            writer.write(b"X: 1\r\n")
            await asyncio.sleep(0.05)

    dripping = asyncio.create_task(drip())
    assert await ended(reader) == b""
    dripping.cancel()
    writer.close()


async def test_the_next_headers_of_a_kept_connection_may_not_drip_either(
    gateway: RunningGateway, impatient: Shorten
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.http_port)
    writer.write(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert (await reader.readuntil(b'"code":0}')).startswith(b"HTTP/1.1 200")
    impatient()
    # Idle it may be, for longer than headers may take.
    await asyncio.sleep(0.5)
    writer.write(b"GET /livez HTTP/1.1\r\n")
    assert await ended(reader) == b""
    writer.close()


async def test_a_body_that_does_not_come_is_told_so(gateway: RunningGateway, impatient: Shorten) -> None:
    impatient()
    answer = await exchange(gateway.http_port, HEAD + b'{"task_id"')
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert body_of(answer)["code"] == 408


async def test_a_body_over_connect_that_does_not_come_ends_the_call(
    gateway: RunningGateway, impatient: Shorten
) -> None:
    impatient()
    path = b"/ordergateway.v1.OrderService/SubmitOrder"
    answer = await exchange(gateway.http_port, HEAD.replace(b"/api/orders", path) + b"{")
    assert answer.startswith(b"HTTP/1.1 499 ")
    assert b'"canceled"' in answer


async def test_of_too_many_unread_answers_the_oldest_is_cut_off(
    gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused: asyncio.Queue[None] = asyncio.Queue()
    pause = protocol.BoundedH11.pause_writing

    def pause_and_tell(connection: protocol.BoundedH11) -> None:
        pause(connection)
        paused.put_nowait(None)

    monkeypatch.setattr(protocol, "UNREAD_SECONDS", 60)
    monkeypatch.setattr(protocol, "MAX_UNREAD", 2)
    monkeypatch.setattr(protocol.BoundedH11, "pause_writing", pause_and_tell)
    async with rest_client(gateway.http_port) as client:
        for number in range(40):
            await submit(client, f"po-{number}", text="x" * 200_000)
    clients = []
    for _ in range(3):
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.http_port, limit=1024)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(b"GET /api/orders?limit=200 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 3)
        clients.append((reader, writer))
        await asyncio.wait_for(paused.get(), 60)
    reader, writer = clients[0]
    writer.transport.resume_reading()  # type: ignore[attr-defined]
    await ended(reader)
    left = await asyncio.to_thread(connections_of, gateway)
    assert len(left) == 2
    for _, writer in clients:
        writer.transport.abort()


async def test_a_client_that_does_not_read_its_answers_is_cut_off(gateway: RunningGateway, impatient: Shorten) -> None:
    async with rest_client(gateway.http_port) as client:
        for number in range(40):
            await submit(client, f"po-{number}", text="x" * 200_000)
    impatient()
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.http_port, limit=1024)
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    writer.write(b"GET /api/orders?limit=200 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 3)
    async with asyncio.timeout(60):
        while await asyncio.to_thread(connections_of, gateway):  # noqa: ASYNC110 - the closed socket is the signal
            await asyncio.sleep(0.02)
    writer.transport.abort()
    assert not reader.at_eof()
