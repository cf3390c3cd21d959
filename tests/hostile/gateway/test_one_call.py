"""The channel never repeats a call by itself: what may be repeated, and when, is the worker's to say."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.worker.conftest import make_settings
from worker.gateway.client import GatewayClient, open_channel
from worker.gateway.port import Unreachable

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADERS, SETTINGS, PING, GOAWAY = 1, 4, 6, 7
ACK = 1


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


class RefusingServer:
    """HTTP/2 by hand: says of every stream that it was not taken up."""

    def __init__(self) -> None:
        self.streams = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            assert await reader.readexactly(len(PREFACE)) == PREFACE
            writer.write(frame(SETTINGS, 0, 0))
            while True:
                head = await reader.readexactly(9)
                kind, flags, _stream = struct.unpack(">BBI", head[3:])
                payload = await reader.readexactly(int.from_bytes(head[:3]))
                if kind == SETTINGS and not flags & ACK:
                    writer.write(frame(SETTINGS, ACK, 0))
                elif kind == PING and not flags & ACK:
                    writer.write(frame(PING, ACK, 0, payload))
                elif kind == HEADERS:
                    self.streams += 1
                    # Of none of the streams: grpc may then try again by itself, over a new connection.
                    writer.write(frame(GOAWAY, 0, 0, struct.pack(">II", 0, 0)))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def refusing() -> AsyncIterator[tuple[RefusingServer, str]]:
    served = RefusingServer()
    server = await asyncio.start_server(served.serve, "127.0.0.1", 0)
    async with server:
        yield served, f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_a_refused_call_is_made_once(tmp_path: Path) -> None:
    async with refusing() as (server, target):
        settings = make_settings(tmp_path, order_gateway_url=f"grpc://{target}")
        async with open_channel(settings) as channel:
            client = GatewayClient(channel, worker_id="w", session_id="s" * 16, journal_id="j" * 16, token=None)
            with pytest.raises(Unreachable):
                await client.request_permit(
                    "po-1", "x" * 43, attests_no_click_record=True, verification=None, terms=None
                )
        assert server.streams == 1
