"""Connections that show no token, before and after TLS: few, small, and the newest always finds a place."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gateway.api.http import listener
from tests.gateway.api.test_auth import certificates
from tests.gateway.support.in_process import running_gateway
from tests.hostile.http.test_framing import answers_in, request
from tests.hostile.watched import WatchedGateway, watched_gateway

__all__ = ["certificates"]

TOKEN = "an-upstream-token-00000001"
HELLO = b"\x01" + (130_000).to_bytes(3) + b"\x03\x03" + bytes(119_994)
RECORDS = b"".join(
    b"\x16\x03\x01" + len(piece).to_bytes(2) + piece
    for piece in (HELLO[begin : begin + 16_000] for begin in range(0, len(HELLO), 16_000))
)
"""All but the end of a handshake's first message that announces 130,000 bytes."""
LARGE = request("POST /api/orders", "Content-Type: application/json", "Content-Length: 250000", body=bytes(250_000))
ALIVE = request("GET /livez")
KNOWN = request("GET /api/orders?limit=1", f"Authorization: Bearer {TOKEN}")


def trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@pytest.fixture
async def watched(tmp_path: Path, certificates: Path) -> AsyncIterator[WatchedGateway]:
    files = {"gateway_tls_cert": certificates / "server.pem", "gateway_tls_key": certificates / "server.key"}
    async with watched_gateway(
        tmp_path, upstream_token=TOKEN, **{name: str(path) for name, path in files.items()}
    ) as gateway:
        yield gateway


async def held(stack: AsyncExitStack, port: int, context: ssl.SSLContext | None, data: bytes) -> asyncio.StreamReader:
    """A connection that stays, over which this has been sent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    stack.callback(writer.close)
    writer.write(data)
    return reader


async def test_a_handshake_that_begins_with_a_large_message_takes_no_memory(watched: WatchedGateway) -> None:
    await watched.begin()
    before = (await watched.figures()).memory_mib
    async with AsyncExitStack() as stack:
        readers = [await held(stack, watched.http_port, None, RECORDS) for _ in range(150)]
        ended = await asyncio.gather(*(reader.read() for reader in readers), return_exceptions=True)
        assert all(each == b"" or isinstance(each, ConnectionError) for each in ended)
        figures = await watched.figures()
        reader = await held(stack, watched.http_port, trusting(), ALIVE)
        assert answers_in(await reader.readuntil(b"\r\n\r\n")) == [200]
    assert figures.most_memory_mib - before < 30, figures
    assert figures.longest_stall_ms < 50, figures


async def test_a_refused_body_is_not_kept_with_its_connection(watched: WatchedGateway) -> None:
    await watched.begin()
    before = (await watched.figures()).memory_mib
    async with AsyncExitStack() as stack:
        for _ in range(60):
            reader = await held(stack, watched.http_port, trusting(), LARGE)
            assert answers_in(await reader.readuntil(b"\r\n\r\n")) == [401]
        figures = await watched.figures()
    assert figures.most_memory_mib - before < 20, figures


async def test_connections_count_before_their_handshake_has_ended(tmp_path: Path, certificates: Path) -> None:
    files = {"gateway_tls_cert": certificates / "server.pem", "gateway_tls_key": certificates / "server.key"}
    async with (
        running_gateway(tmp_path, upstream_token=TOKEN, max_connections=10, **files) as gateway,
        AsyncExitStack() as stack,
    ):
        for _ in range(10):
            await held(stack, gateway.http_port, None, RECORDS[:5])
        with pytest.raises((ConnectionError, ssl.SSLError)):
            await held(stack, gateway.http_port, trusting(), ALIVE)


async def test_a_handshake_that_does_not_begin_ends(
    tmp_path: Path, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "HANDSHAKE_SECONDS", 0.2)
    files = {"gateway_tls_cert": certificates / "server.pem", "gateway_tls_key": certificates / "server.key"}
    async with running_gateway(tmp_path, upstream_token=TOKEN, **files) as gateway, AsyncExitStack() as stack:
        for sent in (b"", b"\x16", RECORDS[:11]):
            reader = await held(stack, gateway.http_port, None, sent)
            with contextlib.suppress(ConnectionResetError):
                assert await asyncio.wait_for(reader.read(), 60) == b""


async def test_of_many_strangers_the_oldest_goes_and_whoever_is_known_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "MAX_STRANGERS", 5)
    async with running_gateway(tmp_path, upstream_token=TOKEN) as gateway, AsyncExitStack() as stack:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.http_port)
        stack.callback(writer.close)
        writer.write(KNOWN)
        assert answers_in(await reader.readuntil(b"\r\n\r\n")) == [200]
        strangers = []
        for _ in range(8):
            strangers.append(await held(stack, gateway.http_port, None, ALIVE))
            assert answers_in(await strangers[-1].readuntil(b"\r\n\r\n")) == [200]
        for gone in strangers[:3]:
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await asyncio.wait_for(gone.readuntil(b"never"), 60)
        writer.write(KNOWN)
        while b"HTTP/1.1 200" not in await asyncio.wait_for(reader.readline(), 60):
            pass
